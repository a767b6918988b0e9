"""The doctor's report as a person reads it at a terminal, and the two commands that print it.

To accept a change: UPDATE_SNAPSHOTS=1, then read the diff.
"""

import json
import os
import subprocess
import sys
import unicodedata
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from cli.options import colours
from doctor_report.command import explained
from doctor_report.page import Page
from doctor_report.report import read

from .standin import StandIn

TOOL = (str(Path(__file__).parents[1] / "spillway"), "doctor")
SAMPLES = Path(__file__).parent / "doctor"
BROKEN = (SAMPLES / "broken.json").read_text()


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(BROKEN), **fields})


def run(text: str, file: str = "-") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *TOOL, "--file", file], input=text, capture_output=True, text=True, check=False)


class ThePage(unittest.TestCase):
    maxDiff = None

    def test_reads_well(self) -> None:
        page = Page(width=80, colours=False).of(read(BROKEN)) + "\n"
        snapshot = SAMPLES / "broken.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            snapshot.write_text(page)
        self.assertEqual(page, snapshot.read_text())

    def test_shows_a_control_character_as_a_mark(self) -> None:
        report = json.loads(BROKEN)
        # It clears the screen, fills the clipboard, and turns the direction of the line.
        strange = "x\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b31m\u202egnp\u2028\r\n"
        finding = next(finding for check in report["checks"] for finding in check.get("findings", []))
        for field in ("object", "what", "to_do", "command"):
            finding[field] = strange
        finding["nodes"], report["summary"] = [strange], strange
        for check in report["checks"]:
            check["cluster"] = check.get("cluster") and strange
        page = Page(width=80, colours=False).of(read(json.dumps(report)))
        self.assertFalse([one for one in page if one != "\n" and unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp")])
        self.assertIn("\ufffd[2J", page)
        failed = run(json.dumps({"errorMessage": strange, "errorType": "x"}))
        self.assertNotIn("\x1b", failed.stderr)


class TheTool(unittest.TestCase):
    def test_ends_with_one_if_anything_failed(self) -> None:
        self.assertEqual(run(BROKEN).returncode, 1)
        self.assertEqual(run(changed(status="unknown")).returncode, 1, "nobody knows that nothing did")
        for status in ("ok", "warn"):
            self.assertEqual(run(changed(status=status)).returncode, 0)

    def test_takes_a_file_and_a_line_of_a_log(self) -> None:
        line = changed(timestamp="2026-11-21T12:00:03Z", level="ERROR", message="self-test: …")
        of_log = run(f'{{"level": "INFO", "message": "x"}}\n{line}\nREPORT RequestId: x')
        self.assertEqual(of_log.stdout, run("", str(SAMPLES / "broken.json")).stdout)

    def test_log_lines_of_one_report_are_joined(self) -> None:
        whole = json.loads(BROKEN)
        earlier = {**whole, "request_id": "r-0", "checks": whole["checks"][:1]}
        lines = [json.dumps(earlier)]
        for check in whole["checks"]:
            findings = check.get("findings", [])
            for part in [findings[at : at + 1] for at in range(len(findings))] or [[]]:
                nodes = [] if part != findings[:1] else check.get("nodes", [])
                lines.append(json.dumps({**whole, "checks": [{**check, "findings": part, "nodes": nodes}]}))
        self.assertGreater(len(lines), len(whole["checks"]) + 1, "a check has several")
        self.assertEqual(run("\n".join(lines)).stdout, run(BROKEN).stdout)

    def test_other_input_is_refused_with_its_reason(self) -> None:
        for text, said in (
            ('{"receipt": 2}', "this is no report of the doctor's"),
            ('{"errorType": "x", "errorMessage": "no setting"}', "the function failed: no setting"),
            (changed(self_test=1), "this is a report of version 1, and this tool knows version 2"),
            ('{"self_test": 2}', "the report is not whole: KeyError('time')"),
        ):
            with self.subTest(text=text[:30]):
                refused = run(text)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""))
                self.assertEqual(refused.stderr, f"spillway doctor: {said}\n")
        self.assertEqual(run("", "no/such/file").returncode, 2)

    def test_colours_are_for_a_terminal_only(self) -> None:
        for is_terminal, variables, coloured in ((True, {}, True), (True, {"NO_COLOR": "1"}, False), (False, {}, False)):
            stdout = mock.Mock(isatty=lambda: is_terminal)
            with mock.patch.object(sys, "stdout", stdout), mock.patch.dict(os.environ, variables, clear=True):
                self.assertEqual(colours(), coloured)
        self.assertIn("\x1b[31;1m", Page(80, colours=True).of(read(BROKEN)))


class AnExplanation(unittest.TestCase):
    def test_finding_error_type_or_alarm_prints_its_remedy(self) -> None:
        self.assertEqual(explained("rule-missing"), "rule-missing: no rule brings such notices to this function")
        for wanted, words in (
            ("PodsLost", "the pods went down with the instance"),
            ("AwsThrottled", "*… is throttled*"),
            ("DrainsAlarm", "read the failed receipts"),
            ("StillHeld", "let the instance go (--explain a-hook-hangs)"),
            ("a-hook-hangs", "complete-lifecycle-action"),
        ):
            text = explained(wanted)
            self.assertIn(words, text)
            self.assertNotRegex(text, r"\]\(|\.md#")

    def test_unknown_finding_ends_with_2_and_the_nearest(self) -> None:
        done = subprocess.run([*TOOL, "--explain", "rule-mising\x1b[2J"], capture_output=True, text=True, check=False)
        said = "spillway doctor: the pages have no finding and no error type rule-mising [2J; is it rule-missing?\n"
        self.assertEqual((done.returncode, done.stderr), (2, said))


class TheFunction(StandIn):
    def test_is_invoked_and_its_report_printed(self) -> None:
        self.stack()
        self.answers("invoke", {"StatusCode": 200})
        (self.folder / "function").write_text(BROKEN)
        done = self.spillway("doctor", "--stack", "of-tests", "prod")
        self.assertEqual((done.returncode, done.stdout), (1, run(BROKEN).stdout), done.stderr)
        (call,) = self.calls("invoke")
        self.assertEqual(call[call.index("--function-name") + 1], "spillway-Drain-1")
        event = json.loads((self.folder / "events").read_text())
        self.assertEqual(event, {"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": "prod"}})
        as_json = self.spillway("doctor", "prod", "-o", "json")
        self.assertEqual((as_json.returncode, json.loads(as_json.stdout)), (1, json.loads(BROKEN)))

    def test_foreign_stack_is_not_invoked(self) -> None:
        self.answers("describe-stacks", {"Stacks": [{"StackId": "a:a:a:eu-central-1"}]})
        done = self.spillway("doctor")
        self.assertEqual((done.returncode, done.stdout, self.calls("invoke")), (2, "", []))
        self.assertIn("the stack spillway has no outputs", done.stderr)


if __name__ == "__main__":
    unittest.main()
