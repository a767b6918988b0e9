"""Every warning and error that the drain function logs stands in troubleshooting.md."""

import re
import unittest

from pages import ROOT

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
LINE = re.compile(r'tracing::(?:warn|error)!\(\s*(?:[^";]*,\s*)?"((?:[^"\\]|\\.)*)"', re.DOTALL)
# As much as anybody types into a search box.
SEARCHED = 20


def lines() -> set[str]:
    sources = (ROOT / "crates/drainer/src").rglob("*.rs")
    found = (line for source in sources for line in LINE.findall(source.read_text().split("#[cfg(test)]")[0]))
    return {re.sub(r"\\\s+", "", line) for line in found}


def beginning(line: str) -> str:
    """The words that are in each line of the kind, a placeholder as the page writes it."""
    return re.sub(r'\\"\{[^}]*\}\\"|\{[^}]*\}', "…", line)[:SEARCHED].rstrip(" :;,…")


class LogLines(unittest.TestCase):
    def test_each_warning_is_in_troubleshooting(self) -> None:
        self.assertGreater(len(lines()), 30)
        section = PAGE.split("## By log line\n")[1].split("\n## ")[0]
        for line in lines():
            with self.subTest(line=line):
                self.assertIn(beginning(line), section)


if __name__ == "__main__":
    unittest.main()
