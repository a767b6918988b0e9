"""tools/receipts: what it asks of the AWS CLI, a stand-in for which answers here, and what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path

from botocore.session import Session

from receipt_log.times import NoTime, moment

from . import receipts

TOOLS = Path(__file__).parents[1]
NOW = datetime(2026, 11, 21, 4, tzinfo=timezone.utc)
# Notes what it is called with, and answers from the file that is named after the operation.
AWS = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
with open(here / "calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
answer = here / sys.argv[2]
if not answer.exists():
    sys.exit("An error occurred (AccessDenied) when calling it: \\x1b[31mno\\x1b[0m")
print(answer.read_text())
"""


class Typed(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        program = self.folder / "aws"
        program.write_text(AWS.format(python=sys.executable))
        program.chmod(0o755)

    def receipts(self, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": path if path is not None else f"{self.folder}:{os.environ['PATH']}"}
        command = [sys.executable, str(TOOLS / "receipts"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def answers(self, operation: str, answer: object) -> None:
        (self.folder / operation).write_text(json.dumps(answer))

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    def test_all_receipts_of_the_time_are_printed_a_line_each_as_timeline_takes_them(self) -> None:
        storm = receipts.storm(3)
        self.answers("describe-stacks", ["/aws/lambda/spillway"])
        self.answers("filter-log-events", [json.dumps(receipt) + "\n" for receipt in storm] + ["no JSON {"])
        done = self.receipts("--since", "2026-11-21T03:00", "--until", "2026-11-21T04:30+01:00")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], storm)
        page = self.folder / "storm.html"
        drawn = subprocess.run([sys.executable, str(TOOLS / "timeline"), "-o", str(page)], input=done.stdout, capture_output=True, text=True, check=True)
        self.assertEqual(drawn.returncode, 0)
        self.assertIn("3 nodes: 1 failed, 2 drained", page.read_text())
        call = self.calls()[-1]
        of = dict(zip(call[2::2], call[3::2]))
        self.assertEqual((of["--start-time"], of["--end-time"]), ("1795230000000", "1795231800000"))
        self.assertEqual((of["--log-group-name"], of["--output"]), ("/aws/lambda/spillway", "json"))
        self.assertEqual(of["--filter-pattern"], "{ ($.receipt = 2) || ($.receipt_part > 1) }", "as docs/receipt.md has it")

    def test_every_option_is_one_of_the_operations(self) -> None:
        self.answers("describe-stacks", ["g"])
        self.answers("filter-log-events", [])
        self.receipts()
        for service, operation, *options in self.calls():
            model = Session().get_service_model(service)
            name = "".join(word.title() for word in operation.split("-"))
            known = {member.lower() for member in model.operation_model(name).input_shape.members}
            asked = {option[2:].replace("-", "") for option in options[::2]} - {"query", "output"}
            self.assertLessEqual(asked, known)

    def test_a_log_group_is_taken_as_it_is(self) -> None:
        self.answers("filter-log-events", [json.dumps(receipts.drained())])
        self.assertEqual(self.receipts("--log-group", "/mine").returncode, 0)
        self.assertEqual([call[1] for call in self.calls()], ["filter-log-events"])

    def test_without_a_time_the_last_hour_is_asked_for(self) -> None:
        self.answers("filter-log-events", [json.dumps(receipts.drained())])
        self.receipts("--log-group", "/mine")
        (call,) = self.calls()
        of = dict(zip(call[2::2], call[3::2]))
        self.assertEqual(int(of["--end-time"]) - int(of["--start-time"]), 3_600_000)

    def test_a_time_without_receipts_is_an_error_that_names_the_time(self) -> None:
        self.answers("filter-log-events", None)
        none = self.receipts("--log-group", "/mine", "--since", "2026-11-21 03:00", "--until", "2026-11-21 04:00Z")
        said = "tools/receipts: /mine has no receipt from 2026-11-21 03:00:00 to 2026-11-21 04:00:00 UTC\n"
        self.assertEqual((none.returncode, none.stdout, none.stderr), (1, "", said))

    def test_what_goes_wrong_is_said_in_a_line_that_a_terminal_does_not_obey(self) -> None:
        denied = self.receipts("--log-group", "/mine")
        self.assertEqual(denied.returncode, 2)
        self.assertIn("aws logs filter-log-events: An error occurred (AccessDenied) when calling it: [31mno", denied.stderr)
        self.assertNotIn("\x1b", denied.stderr)
        self.answers("describe-stacks", [])
        self.assertIn("the stack other has no output LogGroupName", self.receipts("--stack", "other").stderr)
        self.assertIn("aws is not on the PATH", self.receipts(path="").stderr)
        self.assertIn("--since is not before --until", self.receipts("--since", "1h", "--until", "2h").stderr)
        self.assertIn("'yesterday' is no time", self.receipts("--since", "yesterday").stderr)


class Times(unittest.TestCase):
    def test_how_long_ago_or_when(self) -> None:
        for typed, ago in {"0s": 0, "90m": 5400, "3h": 10_800, "2d": 172_800}.items():
            self.assertEqual(moment(typed, NOW), NOW - timedelta(seconds=ago))
        for typed in ("2026-11-21T03:12", "2026-11-21 03:12:00", "2026-11-21T03:12:00Z", "2026-11-21T04:12:00+01:00"):
            self.assertEqual(moment(typed, NOW), NOW.replace(hour=3, minute=12))

    def test_what_is_no_time_is_refused(self) -> None:
        for typed in ("", "3", "h", "3 h", "-3h", "03:12", "1e3h"):
            with self.subTest(typed), self.assertRaises(NoTime):
                moment(typed, NOW)
        self.assertLess(moment("999999d", NOW), NOW, "more than a date can hold")


if __name__ == "__main__":
    unittest.main()
