"""The page for developers: the files that it names are there, and its crates and rooms are those of the code."""

import re
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/contributing/development.md").read_text()
DRAWINGS = PAGE.split("\n## ")[2].split("```")[1::2]


def crates() -> dict[str, list[str]]:
    """The crates of the product, by what the page calls them, and which of them each names as a dependency."""
    manifests = [*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("functions/*/Cargo.toml")]
    names = {}
    for manifest in manifests:
        folder = manifest.parent.relative_to(ROOT)
        package = tomllib.loads(manifest.read_text())
        names[package["package"]["name"]] = (str(folder).removeprefix("crates/"), package["dependencies"])
    return {name: [names[used][0] for used in uses if used in names] for name, uses in names.values()}


def reached(uses: dict[str, list[str]], name: str) -> set[str]:
    """All that a crate uses, by others too."""
    return set(uses[name]).union(*(reached(uses, used) for used in uses[name]))


class ThePage(unittest.TestCase):
    def test_first_table_names_files_that_exist(self) -> None:
        first = PAGE.split("\n## ")[1]
        rows = [row.split("|") for row in first.splitlines() if row.startswith("| ")][2:]
        self.assertGreater(len(rows), 15)
        for row in rows:
            paths = re.findall(r"`([^`]+)`", row[2])
            self.assertTrue(paths, row)
            for path in paths:
                with self.subTest(what=row[1].strip(), path=path):
                    self.assertTrue((ROOT / "crates" / path).exists() or (ROOT / path).exists())

    def test_it_draws_the_crates_and_what_each_uses(self) -> None:
        rows = [re.split(r"\s{2,}", row.strip()) for row in DRAWINGS[0].strip().splitlines()]
        drawn = {row[0]: row[2].split(", ") if len(row) > 2 else [] for row in rows}
        self.assertEqual(set(drawn), set(crates()))
        for name in drawn:
            with self.subTest(crate=name):
                self.assertEqual(reached(drawn, name), reached(crates(), name))

    def test_it_draws_the_rooms_in_the_order_of_the_code(self) -> None:
        rooms = re.findall(r"^  (\w+)", DRAWINGS[1], re.MULTILINE)
        code = (ROOT / "crates/drainer/src/lib.rs").read_text()
        [order] = re.findall(r"imports a later one: ([^.]*)\.", code)
        self.assertEqual(rooms, re.findall(r"`(\w+)`", order))

    def test_it_leads_to_the_glossary(self) -> None:
        self.assertIn("(glossary.md)", PAGE)
        self.assertTrue((ROOT / "docs/contributing/glossary.md").exists())


if __name__ == "__main__":
    unittest.main()
