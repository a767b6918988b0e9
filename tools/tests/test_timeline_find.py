"""Receipts are found in whatever people have at hand."""

from __future__ import annotations

import csv
import io
import json
import unittest

from receipt_timeline.drain import drains_of
from receipt_timeline.find import NoReceipt, receipts_in
from receipt_timeline.page import page
from receipt_timeline.receipt import read
from receipt_timeline.text import text_of

from . import receipts

ONE, OTHER = receipts.drained(), receipts.ignored()
METRICS = {"_aws": {"Timestamp": 1}, "Notices": 1}
LOG = [
    "INIT_START Runtime Version: provided:al2023.v101\tRuntime Version ARN: arn:aws:lambda:us-east-1::runtime:0",
    json.dumps({"timestamp": "2026-11-21T03:12:01Z", "level": "INFO", "message": "claimed", "drain.window_ms": 119}),
    json.dumps(ONE),
    json.dumps(METRICS),
    "REPORT RequestId: r-1\tDuration: 42377.11 ms\tBilled Duration: 42378 ms\tMemory Size: 256 MB",
    json.dumps(OTHER),
]


STREAM = "2026/11/21/[$LATEST]0d3c"
PRETTY = [json.dumps(json.loads(line), indent=4) if line.startswith("{") else line for line in LOG]
CSV = io.StringIO()
csv.writer(CSV).writerows([("timestamp", "message"), *((1, line) for line in LOG)])
# The log, `aws logs tail` in its three formats, filter-log-events, Logs Insights, and an export.
FORMATS = {
    "log": "\n".join(LOG),
    "tail": "\n".join(f"2026-11-21T03:12:43.020000+00:00 {STREAM} {line}" for line in LOG),
    "tail --format short": "\n".join(f"2026-11-21T03:12:43 {line}" for line in LOG),
    "tail, pretty": "\n".join(f"2026-11-21T03:12:43.020000+00:00 {STREAM} \n{line}" for line in PRETTY),
    "filter-log-events": json.dumps({"events": [{"timestamp": 1, "message": line, "logStreamName": STREAM} for line in LOG]}, indent=4),
    "messages": json.dumps(LOG),
    "insights": json.dumps({"results": [[{"field": "@message", "value": line}, {"field": "@ptr", "value": "C"}] for line in LOG]}),
    "csv": CSV.getvalue(),
}


class Found(unittest.TestCase):
    def test_receipts_are_found_in_every_format(self) -> None:
        for name, text in FORMATS.items():
            with self.subTest(name):
                self.assertEqual(receipts_in(text), [ONE, OTHER])
        for alone in (json.dumps(ONE), json.dumps(ONE, indent=2)):
            self.assertEqual(receipts_in(alone), [ONE])

    def test_receipt_twice_in_the_input_is_one(self) -> None:
        answer = {name: value for name, value in ONE.items() if name not in ("timestamp", "level", "message")}
        self.assertEqual(receipts_in(json.dumps(answer) + json.dumps(ONE) + json.dumps(ONE)), [ONE])
        self.assertEqual(receipts_in(json.dumps(answer)), [answer])


class InSeveralLines(unittest.TestCase):
    def setUp(self) -> None:
        pods = [receipts.pod(f"shop/web-{n}", "clean") for n in range(6)]
        self.whole = receipts.receipt(pods=pods)
        first = {**self.whole, "pods": pods[:2], "receipt_parts": 3}
        shared = {name: self.whole[name] for name in ("timestamp", "level", "request_id", "notice", "node", "ending")}
        others = [{**shared, "receipt_part": part, "pods": pods[2 * part - 2 : 2 * part]} for part in (2, 3)]
        self.lines = [json.dumps(line) for line in (first, *others)]

    def test_lines_in_any_order_are_one_receipt(self) -> None:
        for lines in (self.lines, self.lines[::-1]):
            self.assertEqual(receipts_in("\n".join(lines)), [self.whole])

    def test_lines_of_a_retry_are_not_joined(self) -> None:
        earlier = [line.replace(self.whole["timestamp"], "2026-11-21T03:10:00Z").replace("web-", "api-") for line in self.lines]
        self.assertEqual([len(found["pods"]) for found in receipts_in("\n".join(earlier + self.lines))], [6, 6])

    def test_missing_line_is_counted_and_shown(self) -> None:
        [found] = receipts_in("\n".join(self.lines[:2]))
        self.assertEqual((len(found["pods"]), found["lines"]), (4, {"found": 2, "of": 3}))
        [drain] = drains_of([read(found)])
        for shown in (page([drain]), text_of([drain, drain])):
            self.assertIn("2 of 3 lines of the receipt: pods are missing", shown)


class NotFound(unittest.TestCase):
    def because(self, text: str, why: str) -> None:
        with self.assertRaisesRegex(NoReceipt, why):
            receipts_in(text)

    def test_each_reason_has_its_words(self) -> None:
        self.because("", "no receipt in it, nor any JSON")
        self.because("START RequestId: r-1", "no receipt in it, nor any JSON")
        self.because(json.dumps(METRICS), "there is JSON, but none with the fields receipt, notice, steps, ending and reason")
        self.because(json.dumps(ONE)[:400], "the receipt in it is cut off, or is not JSON")
        self.because("[" * 100_000, "no receipt in it")


if __name__ == "__main__":
    unittest.main()
