"""The tests and files that pages name as what holds their promises are there."""

import re
import unittest
from functools import cache

from pages import ROOT, rows, section


@cache
def sources() -> dict[str, str]:
    files = [file for folder in ("crates", "functions", "tests", "tools") for file in (ROOT / folder).rglob("*")]
    return {str(file.relative_to(ROOT)): file.read_text() for file in files if file.suffix in (".rs", ".py")}


class ThreatModel(unittest.TestCase):
    def test_what_tests_a_finding_is_there(self) -> None:
        findings = rows(section("docs/contributing/decisions/security-review.md", "# What the security review found"))
        self.assertGreaterEqual(len(findings), 12)
        files = [*sources(), "Cargo.lock", "tests/bed/aws/requirements.lock", "scripts/check-dependencies"]
        for finding, _, tested_by in findings:
            for words in re.findall(r"`([^`]+)`", tested_by):
                with self.subTest(finding=finding, tested_by=words):
                    self.assertTrue(self.is_there(words, files))

    def is_there(self, words: str, files: list[str]) -> bool:
        if "::" in words:
            scenarios, test = words.rstrip("…").split("::")
            code = sources()[f"tests/e2e/tests/scenarios/{scenarios}.rs"]
            return f"fn {test}" in code
        place = words.removeprefix("…/")
        return any(re.search(rf"(^|/){re.escape(place)}($|/|\.rs$)", file) for file in files)


if __name__ == "__main__":
    unittest.main()
