"""The page for developers: the files that it names are there, and its rooms are those of the code."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "crates/drainer/src"
PAGE = (ROOT / "docs/development.md").read_text()


class ThePage(unittest.TestCase):
    def test_it_begins_with_what_you_look_for_and_the_files_are_there(self) -> None:
        first = PAGE.split("\n## ")[1]
        rows = [row.split("|") for row in first.splitlines() if row.startswith("| ")][2:]
        self.assertGreater(len(rows), 15)
        for row in rows:
            paths = re.findall(r"`([^`]+)`", row[2])
            self.assertTrue(paths, row)
            for path in paths:
                with self.subTest(what=row[1].strip(), path=path):
                    self.assertTrue((SOURCE / path).exists() or (ROOT / path).exists())

    def test_it_draws_the_rooms_in_the_order_of_the_code(self) -> None:
        drawn = PAGE.split("\n## ")[2].split("```")[1]
        rooms = re.findall(r"^  (\w+)", drawn, re.MULTILINE)
        self.assertEqual(rooms, re.findall(r"^//! \* `(\w+)`", (SOURCE / "lib.rs").read_text(), re.MULTILINE))

    def test_it_leads_to_the_glossary(self) -> None:
        self.assertIn("(glossary.md)", PAGE)
        self.assertTrue((ROOT / "docs/glossary.md").exists())


if __name__ == "__main__":
    unittest.main()
