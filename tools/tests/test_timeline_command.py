"""What a person types, and what is answered."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from . import receipts

TIMELINE = Path(__file__).parents[1] / "timeline"


class Typed(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def timeline(self, *arguments: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(TIMELINE), *arguments]
        return subprocess.run(command, cwd=self.folder, input=typed, capture_output=True, text=True, check=False)

    def log(self, *documents: receipts.Json) -> str:
        (self.folder / "log").write_text("\n".join(json.dumps(document) for document in documents))
        return "log"

    def test_a_file_becomes_a_page_and_the_answer_is_where(self) -> None:
        done = self.timeline(self.log(receipts.drained()), "-o", "drain.html")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "drain.html\n", ""))
        self.assertIn("shop/", (self.folder / "drain.html").read_text())

    def test_the_standard_input_does_as_well_and_the_page_has_a_name(self) -> None:
        done = self.timeline(typed=json.dumps(receipts.drained()))
        self.assertEqual((done.returncode, done.stdout), (0, "timeline.html\n"))
        self.assertTrue((self.folder / "timeline.html").exists())

    def test_half_a_character_does_not_keep_the_page_from_being_written(self) -> None:
        self.assertEqual(self.timeline(self.log(receipts.receipt(reason="cut \ud83d"))).returncode, 0)
        self.assertIn("Cut ?.", (self.folder / "timeline.html").read_text())

    def test_a_packed_export_is_unpacked(self) -> None:
        (self.folder / "000000.gz").write_bytes(gzip.compress(json.dumps(receipts.drained()).encode()))
        self.assertEqual(self.timeline("000000.gz").returncode, 0)

    def test_a_dry_run_beside_a_drain_does_not_keep_it_from_being_drawn(self) -> None:
        log = self.log(receipts.dry_run(), receipts.drained())
        self.assertEqual(self.timeline(log, "--of", "i-1234567890abcdef0").returncode, 0)
        self.assertEqual(self.timeline(log, "--of", "i-0dddddddddddddddd").returncode, 0)

    def test_several_drains_are_one_page_and_one_of_them_is_chosen_by_name(self) -> None:
        other = {**receipts.ignored(), "instance": "i-0000000000000000f"}
        log = self.log(receipts.drained(), receipts.ignored(), other)
        self.assertEqual(self.timeline(log).returncode, 0)
        self.assertIn("2 nodes: 1 drained, 1 ignored", (self.folder / "timeline.html").read_text())
        self.assertEqual(self.timeline(log, "--of", "i-1234567890abcdef0").returncode, 0)
        self.assertIn("1 node: 1 drained", (self.folder / "timeline.html").read_text(), "two notices of one instance")
        refused = self.timeline(log, "--of", "e-9")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("no drain in it is of e-9; there are:", refused.stderr)
        self.assertIn("--of e-1  2026-11-21 03:12:00 UTC  i-1234567890abcdef0  ip-10-0-12-34.ec2.internal  drained", refused.stderr)
        log = self.log(receipts.drained(), receipts.ignored())
        self.assertEqual(self.timeline(log, "--of", "e-2").returncode, 0)
        self.assertIn("ignored: i-1234567890abcdef0", (self.folder / "timeline.html").read_text())
        self.assertEqual(self.timeline(log, "--of", "shop/orders-0").returncode, 0)
        self.assertIn("no drain in it is of i-0", self.timeline(log, "--of", "i-0").stderr)

    def test_of_very_many_drains_a_few_are_listed(self) -> None:
        refused = self.timeline(self.log(*receipts.storm(30)), "--of", "nobody")
        self.assertIn("and 10 more", refused.stderr)
        self.assertEqual(refused.stderr.count("--of"), 20)

    def test_what_is_no_receipt_is_refused_by_name_and_nothing_is_written(self) -> None:
        refused = self.timeline(self.log({"receipt": 2, "ending": "drained"}))
        self.assertEqual(refused.returncode, 2)
        self.assertEqual(refused.stderr, "log: not a receipt: `notice`, `steps` and `reason` are missing\n")
        self.assertFalse((self.folder / "timeline.html").exists())

    def test_a_file_that_is_not_there_is_named(self) -> None:
        refused = self.timeline("nowhere")
        self.assertEqual((refused.returncode, refused.stderr), (2, "nowhere: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main()
