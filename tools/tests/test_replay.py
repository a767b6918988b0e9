"""`spillway replay`: both forms of a failed event, what is refused, and when a message is deleted."""

from __future__ import annotations

import json
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from failed_events.event import read

from .standin import StandIn

EVENTS = Path(__file__).parents[2] / "events"
NOTICED = datetime(2026, 11, 21, 3, 12, tzinfo=timezone.utc)
NOW = "%Y-%m-%dT%H:%M:%SZ"


def sample(name: str, **fields: Any) -> dict[str, Any]:
    return {**json.loads((EVENTS / f"{name}.json").read_text()), **fields}


def message(body: Any, id: str = "0a1b2c3d-1111", **attributes: str) -> dict[str, Any]:
    named = {name: {"StringValue": value, "DataType": "String"} for name, value in attributes.items()}
    text = body if isinstance(body, str) else json.dumps(body)
    return {"MessageId": id, "ReceiptHandle": f"handle-{id[0]}", "Body": text, "Attributes": {"SentTimestamp": "1795230720000"}, "MessageAttributes": named}


def from_eventbridge(event: Any, **more: Any) -> dict[str, Any]:
    return message(event, ERROR_CODE="NO_PERMISSIONS", ERROR_MESSAGE="not authorized", RULE_ARN="arn:rule", **more)


def from_lambda(event: Any, type: str = "PodsLost", error: str = "1 pod was still on node ip-10-0-1-2.ec2.internal when the time was up", **more: Any) -> dict[str, Any]:
    context = {"requestId": "r-1", "functionArn": "arn:f", "condition": "RetriesExhausted", "approximateInvokeCount": 3}
    answer = {"errorType": type, "errorMessage": error}
    return message({"version": "1.0", "requestContext": context, "requestPayload": event, "responsePayload": answer}, **more)


class Forms(unittest.TestCase):
    def test_event_is_the_same_in_both_forms(self) -> None:
        event = sample("terminate-lifecycle-action")
        for form, error, node in ((from_eventbridge, "NO_PERMISSIONS: not authorized", ""), (from_lambda, "PodsLost: 1 pod", "ip-10-0-1-2.ec2.internal")):
            found = read(form(event))
            self.assertEqual((found.payload, found.kind, found.instance), (event, "terminate hook", "i-1234567890abcdef0"))
            self.assertTrue(found.error.startswith(error), found.error)
            self.assertEqual((found.node, found.from_lambda), (node, form is from_lambda))

    def test_every_sample_event_is_recognized(self) -> None:
        for file in EVENTS.glob("*.json"):
            for form in (from_eventbridge, from_lambda):
                found = read(form(json.loads(file.read_text())))
                self.assertIsNotNone(found.payload, file)
                self.assertNotEqual(found.kind, "no event", file)
        continued = read(from_lambda(sample("drain-continuation")))
        self.assertEqual((continued.kind, continued.instance), ("terminate hook, continuation", "i-1234567890abcdef0"))

    def test_message_without_an_event_is_refused(self) -> None:
        for body in ("", "no JSON", "[]", "7", "{}", '{"requestPayload": 7, "requestContext": {}}', "[" * 100_000):
            found = read(message(body))
            self.assertEqual((found.payload, found.why_not(NOTICED)), (None, "the message has no event"), body[:20])

    def test_deadline_depends_on_the_kind_of_notice(self) -> None:
        for name, seconds in (
            ("spot-interruption", 120), ("capacity-reservation-interruption", 125), ("interruptible-capacity-reservation-interruption", 120),
            ("capacity-block-expiry", 600), ("state-change-stopping", 600), ("state-change-shutting-down", 600),
        ):  # fmt: skip
            found = read(from_lambda(sample(name)))
            end = NOTICED + timedelta(seconds=seconds)
            self.assertEqual((found.deadline, found.why_not(end - timedelta(seconds=1))), (end, None), name)
            self.assertEqual(found.why_not(end + timedelta(hours=3)), "too late: the instance went 3 h ago", name)
        for name in ("terminate-lifecycle-action", "health-scheduled-maintenance", "rebalance-recommendation", "state-change-running", "doctor", "undo-check"):
            self.assertIsNone(read(from_lambda(sample(name))).why_not(NOTICED + timedelta(days=9)), name)


class Replay(StandIn):
    def setUp(self) -> None:
        super().setUp()
        self.stack()
        late, hook = sample("spot-interruption"), sample("terminate-lifecycle-action")
        messages = [from_lambda(late, id="aaaaaaaa-1"), from_eventbridge(hook, id="bbbbbbbb-2"), message("strange", id="cccccccc-3")]
        self.answers("receive-message", {"Messages": messages})
        self.answers("change-message-visibility", {})
        self.answers("delete-message", {})
        self.answers("invoke", {"StatusCode": 202})

    def sent(self) -> list[Any]:
        events = self.folder / "events"
        return [json.loads(line) for line in events.read_text().splitlines()] if events.exists() else []

    def deleted(self) -> list[str]:
        return [call[call.index("--receipt-handle") + 1] for call in self.calls("delete-message")]

    def test_list_changes_nothing_and_is_a_finding(self) -> None:
        done = self.spillway("replay", "--plan")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        rows = done.stdout.splitlines()
        self.assertEqual([row.split()[0] for row in rows], ["ID", "aaaaaaaa", "bbbbbbbb", "cccccccc"])
        self.assertIn("too late: the instance went", rows[1])
        self.assertIn("send again", rows[2])
        self.assertEqual((self.sent(), self.deleted()), ([], []))
        self.assertEqual(len(self.calls("change-message-visibility")), 3, "others see the messages at once")
        self.assertEqual([one["kind"] for one in json.loads(self.spillway("replay", "-o", "json").stdout)][:2], ["spot interruption", "terminate hook"])

    def test_accepted_events_are_deleted_and_late_ones_stay(self) -> None:
        done = self.spillway("replay", "--all", "--yes")
        self.assertEqual(done.returncode, 1, "two were refused")
        self.assertEqual((self.sent(), self.deleted()), ([sample("terminate-lifecycle-action")], ["handle-b"]))
        self.assertIn("aaaaaaaa is not sent: too late", done.stderr)
        self.assertIn("cccccccc is not sent: the message has no event", done.stderr)

    def test_force_sends_a_late_event_by_its_id(self) -> None:
        self.assertEqual(self.spillway("replay", "aaaaaaaa", "--force", "--yes").returncode, 0)
        self.assertEqual((self.sent(), self.deleted()), ([sample("spot-interruption")], ["handle-a"]))

    def test_event_stays_unless_lambda_accepts_it(self) -> None:
        for answer in ({"StatusCode": 200}, None):
            self.answers("invoke", answer) if answer else (self.folder / "invoke").unlink()
            done = self.spillway("replay", "bbbbbbbb", "--yes")
            self.assertEqual((done.returncode, self.deleted()), (1, []))
            self.assertIn("bbbbbbbb is not accepted and stays in the queue", done.stderr)

    def test_nothing_is_sent_without_consent_or_by_a_wrong_id(self) -> None:
        for arguments, code, said in (
            (["--all"], 2, "give --yes, or look with --plan"),
            (["eeeeeeee", "--yes"], 1, "the failure queue has no event eeeeeeee"),
            (["--all", "bbbbbbbb"], 2, "give either IDs or --all"),
        ):
            done = self.spillway("replay", *arguments)
            self.assertEqual((done.returncode, self.sent()), (code, []))
            self.assertIn(said, done.stderr)

    def test_empty_queue_is_fine_and_denied_queue_is_not(self) -> None:
        self.answers("receive-message", {})
        done = self.spillway("replay")
        self.assertEqual((done.returncode, done.stdout), (0, "The failure queue is empty.\n"))
        (self.folder / "receive-message").unlink()
        self.assertEqual(self.spillway("replay").returncode, 2)


if __name__ == "__main__":
    unittest.main()
