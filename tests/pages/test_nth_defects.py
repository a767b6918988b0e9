"""What NTH gets wrong: the tests that the page names are there."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"`(\w+)`")


def sources() -> str:
    files = [file for folder in ("crates", "functions", "tests") for file in (ROOT / folder).rglob("*")]
    return "\n".join(file.read_text() for file in files if file.suffix in (".rs", ".py"))


class ThePage(unittest.TestCase):
    def test_the_tests_that_it_names_are_there(self) -> None:
        page = (ROOT / "docs/from-nth.md").read_text()
        rows = [row.split("|") for row in page.splitlines() if row.startswith("| F")]
        text = sources()
        for row in rows:
            for name in NAME.findall(row[4]):
                with self.subTest(finding=row[1].strip(), test=name):
                    self.assertRegex(text, rf"(fn|def) {name}\(")
        self.assertEqual(len(rows), 17)


if __name__ == "__main__":
    unittest.main()
