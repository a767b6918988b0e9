"""The receipts of one drain's invocations are made one."""

from __future__ import annotations

import unittest
from typing import Any

from receipt_timeline.drain import Drain, drains_of
from receipt_timeline.receipt import Fate, read

from . import receipts
from .receipts import pod, receipt, steps


def invocation(begun: int, ending: str, *pods: Any, **fields: Any) -> Any:
    """A receipt of an invocation of ten seconds."""
    done = "handed_on" if ending == "continued" else "drained"
    at = steps(begun=begun, claimed=begun + 100, **{done: begun + 10_000})
    return read(receipt(request_id=f"r-{begun}", timestamp=None, steps=at, ending=ending, pods=list(pods), **fields))


def one(*of: Any) -> Drain:
    (drain,) = drains_of(list(of))
    return drain


class OneDrain(unittest.TestCase):
    def test_receipts_out_of_order_end_with_the_last(self) -> None:
        documents = [read(document) for document in receipts.hook_of_forty_minutes()]
        drain = one(*reversed(documents))
        self.assertEqual((drain.ending, drain.drained_ms, drain.request_id), ("drained", 2_400_000, "r-3"))

    def test_what_was_counted_in_each_invocation_is_added_up(self) -> None:
        drain = one(*(read(document) for document in receipts.hook_of_forty_minutes()))
        (db,) = [each for each in drain.pods if each.name == "shop/db-0"]
        self.assertEqual((db.evictions, db.refusals, db.requested_ms, db.accepted_ms), (240, 239, 1300, 2_340_000))

    def test_pod_clamped_or_forced_before_is_not_clean_later(self) -> None:
        before = invocation(
            0,
            "continued",
            pod("shop/a", "remaining", grace_s=600, given_s=9, accepted_ms=200),
            pod("shop/b", "remaining", given_s=9, accepted_ms=200, answers={"deleted": 1}),
        )
        after = invocation(11_000, "drained", pod("shop/a", "clean", gone_ms=12_000), pod("shop/b", "clean", gone_ms=12_000))
        self.assertEqual([each.fate for each in one(before, after).pods], [Fate.CLAMPED, Fate.FORCED])

    def test_pod_gone_between_invocations_goes_at_the_next_begin(self) -> None:
        before = invocation(0, "continued", pod("shop/a", "remaining", accepted_ms=200, why="it was still shutting down"))
        (gone,) = one(before, invocation(11_000, "drained")).pods
        self.assertEqual((gone.fate, gone.gone_ms), (Fate.CLEAN, 11_000))
        self.assertEqual(gone.why, "it had gone when the next invocation began")

    def test_invocation_without_pods_changes_no_pod(self) -> None:
        before = invocation(0, "failed", pod("shop/a", "lost"))
        blind = read(receipt(request_id="r-9", timestamp=None, steps=steps(begun=20_000), ending="failed"))
        self.assertEqual([each.fate for each in one(before, blind).pods], [Fate.LOST])

    def test_maintenance_counts_from_the_begin_of_the_drain(self) -> None:
        notice = {"event_id": "e-4", "time": "2026-11-07T03:12:00Z", "deadline": "2026-11-21T03:12:00Z"}
        begun = 14 * 86_400_000 - 3_600_000
        gone = pod("shop/web-0", "clean", requested_ms=begun + 300, accepted_ms=begun + 400, gone_ms=begun + 30_000)
        drain = one(invocation(500, "continued", notice=notice, decision="postpone"), invocation(begun, "drained", gone, notice=notice))
        self.assertEqual((drain.step_ms("claimed"), drain.drained_ms, drain.limit_ms), (100 - begun + 500, 10_000, 3_600_000))
        self.assertEqual((drain.pods[0].requested_ms, drain.pods[0].gone_ms), (300, 30_000))

    def test_a_pod_is_its_uid(self) -> None:
        before = invocation(0, "continued", pod("shop/db-0", "clean", gone_ms=900))
        after = invocation(11_000, "failed", pod("shop/db-0", "lost", uid="another"))
        self.assertEqual([each.fate for each in one(before, after).pods], [Fate.CLEAN, Fate.LOST])


class SeveralDrains(unittest.TestCase):
    def test_different_notice_or_instance_is_another_drain(self) -> None:
        other = {**receipts.drained(), "instance": "i-0000000000000000f", "request_id": "r-7"}
        drains = drains_of([read(receipts.drained()), read(receipts.ignored()), read(other)])
        self.assertEqual([drain.event_id for drain in drains], ["e-1", "e-2", "e-1"])

    def test_a_drain_is_known_by_all_its_names(self) -> None:
        names = one(*(read(document) for document in receipts.hook_of_forty_minutes())).names()
        self.assertLessEqual({"i-1234567890abcdef0", "ip-10-0-12-34.ec2.internal", "e-3", "r-2", "shop/db-0"}, names)


if __name__ == "__main__":
    unittest.main()
