"""`spillway show`: what it asks of the AWS CLI, a stand-in for which answers here, and what it shows."""

from __future__ import annotations

import gzip
import json
import subprocess
import unittest
from datetime import datetime, timedelta, timezone

from cli.times import NoTime, moment

from . import receipts
from .standin import StandIn

NOW = datetime(2026, 11, 21, 4, tzinfo=timezone.utc)


class Shown(StandIn):
    def show(self, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
        return self.spillway("show", *arguments, path=path)

    def log(self, *documents: receipts.Json) -> tuple[str, str]:
        (self.folder / "log").write_text("\n".join(json.dumps(document) for document in documents))
        return "--file", "log"

    def page(self) -> str:
        return (self.folder / "spillway.html").read_text()


class FromTheLog(Shown):
    def test_log_request_covers_the_whole_time(self) -> None:
        storm = receipts.storm(3)
        self.stack()
        self.answers("filter-log-events", [json.dumps(receipt) + "\n" for receipt in storm] + ["no JSON {"])
        done = self.show("--since", "2026-11-21T03:00", "--until", "2026-11-21T04:30+01:00", "-o", "html")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "spillway.html\n", ""))
        self.assertIn("3 drains: 1 failed, 2 drained", self.page())
        call = self.calls()[-1]
        of = dict(zip(call[2::2], call[3::2]))
        self.assertEqual((of["--start-time"], of["--end-time"]), ("1795230000000", "1795231800000"))
        self.assertEqual((of["--log-group-name"], of["--output"]), ("/aws/lambda/spillway", "json"))
        self.assertEqual(of["--filter-pattern"], "{ ($.receipt = 2) || ($.receipt_part > 1) }", "as docs/receipt.md has it")

    def test_a_log_group_is_taken_as_it_is_for_the_last_hour(self) -> None:
        self.answers("filter-log-events", [json.dumps(receipts.drained())])
        self.assertEqual(self.show("--log-group", "/mine", "--region", "eu-west-1").returncode, 0)
        (call,) = self.calls()
        of = dict(zip(call[2::2], call[3::2]))
        self.assertEqual((int(of["--end-time"]) - int(of["--start-time"]), of["--region"]), (3_600_000, "eu-west-1"))

    def test_a_time_without_receipts_is_a_finding(self) -> None:
        self.answers("filter-log-events", None)
        none = self.show("--log-group", "/mine", "--since", "2026-11-21 03:00", "--until", "2026-11-21 04:00Z")
        said = "spillway show: /mine has no receipt from 2026-11-21 03:00:00 to 2026-11-21 04:00:00 UTC\n"
        self.assertEqual((none.returncode, none.stdout, none.stderr), (1, "", said))

    def test_error_with_control_characters_is_one_plain_line(self) -> None:
        denied = self.show("--log-group", "/mine")
        self.assertEqual(denied.returncode, 2)
        self.assertEqual(denied.stderr, "spillway show: Some: [31mno [0m\n")
        self.assertNotIn("\x1b", denied.stderr)
        self.assertIn("aws is not on the PATH", self.show(path="/nowhere").stderr)
        self.assertIn("--since is not before --until", self.show("--since", "1h", "--until", "2h").stderr)
        self.assertIn("'yesterday' is no time", self.show("--since", "yesterday").stderr)


class FromAFile(Shown):
    def test_one_drain_is_text_pod_by_pod_with_the_lost_first(self) -> None:
        pods = [receipts.pod("shop/a", "clean"), receipts.pod("shop/b", "lost", blocked_by="web", answers={"blocked-by-budget": 9}, requested_ms=850)]
        done = self.show(*self.log(receipts.receipt(ending="failed", pods=pods)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "failed: ip-10-0-12-34.ec2.internal, spot interruption, 2026-11-21 03:12:00 UTC")
        self.assertLess(done.stdout.index("lost "), done.stdout.index("clean "))
        self.assertRegex(done.stdout, r"lost +shop/b  .*budget web")

    def test_failed_drains_are_chosen(self) -> None:
        failed = receipts.lost()
        for documents in (receipts.storm(3), [failed, {**failed, "instance": "i-0f"}]):
            done = self.show(*self.log(*documents), "--failed")
            self.assertEqual((done.returncode, done.stdout.count("drained: ")), (0, 0))
            self.assertIn("error     PodsLost (spillway doctor --explain PodsLost)", done.stdout)
        none = self.show(*self.log(receipts.drained()), "--failed")
        self.assertEqual((none.returncode, none.stderr), (1, "spillway show: no drain failed\n"))

    def test_json_has_the_chosen_receipts(self) -> None:
        done = self.show(*self.log(receipts.drained(), receipts.dry_run()), "i-0dddddddddddddddd", "-o", "json")
        self.assertEqual(json.loads(done.stdout), [receipts.dry_run()])

    def test_lone_surrogate_does_not_prevent_the_page(self) -> None:
        self.assertEqual(self.show(*self.log(receipts.receipt(pods=[receipts.pod("cut \ud83d", "clean")])), "-o", "html").returncode, 0)
        self.assertIn("<code>cut ?</code>", self.page())

    def test_a_packed_export_is_unpacked(self) -> None:
        (self.folder / "000000.gz").write_bytes(gzip.compress(json.dumps(receipts.drained()).encode()))
        self.assertEqual(self.show("--file", "000000.gz").returncode, 0)

    def test_several_drains_are_one_page_or_one_by_name(self) -> None:
        other = {**receipts.ignored(), "instance": "i-0000000000000000f"}
        log = (*self.log(receipts.drained(), receipts.ignored(), other), "-o", "html")
        self.assertEqual(self.show(*log).returncode, 0)
        self.assertIn("3 drains: 1 drained, 2 ignored", self.page())
        self.assertEqual(self.show(*log, "i-1234567890abcdef0").returncode, 0)
        self.assertIn("2 drains: 1 drained, 1 ignored", self.page(), "two notices of one instance")
        self.assertEqual(self.show(*log, "orders-0").returncode, 0, "a part of a pod's name")
        refused = self.show(*log, "e-9")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no drain is of e-9; there are:", refused.stderr)
        self.assertIn("  e-1  drained: ip-10-0-12-34.ec2.internal, spot interruption, 2026-11-21 03:12:00 UTC", refused.stderr)
        many = self.show(*self.log(*receipts.storm(30)), "nobody")
        self.assertIn("and 10 more", many.stderr)

    def test_input_without_receipt_is_refused_and_writes_nothing(self) -> None:
        refused = self.show(*self.log({"receipt": 2, "ending": "drained"}), "-o", "html")
        self.assertEqual(refused.returncode, 2)
        self.assertEqual(refused.stderr, "spillway show: not a receipt: `notice`, `steps` and `reason` are missing\n")
        self.assertFalse((self.folder / "spillway.html").exists())
        refused = self.show("--file", "nowhere")
        self.assertEqual((refused.returncode, refused.stderr), (2, "spillway show: nowhere: No such file or directory\n"))


class Times(unittest.TestCase):
    def test_typed_time_is_how_long_ago_or_when(self) -> None:
        for typed, ago in {"0s": 0, "90m": 5400, "3h": 10_800, "2d": 172_800}.items():
            self.assertEqual(moment(typed, NOW), NOW - timedelta(seconds=ago))
        for typed in ("2026-11-21T03:12", "2026-11-21 03:12:00", "2026-11-21T03:12:00Z", "2026-11-21T04:12:00+01:00"):
            self.assertEqual(moment(typed, NOW), NOW.replace(hour=3, minute=12))
        self.assertLess(moment("999999d", NOW), NOW, "more than a date can hold")
        for typed in ("", "3", "h", "3 h", "-3h", "03:12", "1e3h"):
            with self.subTest(typed), self.assertRaises(NoTime):
                moment(typed, NOW)


if __name__ == "__main__":
    unittest.main()
