"""The measured page names a commit of this history, and README quotes it."""

import json
import re
import subprocess
import unittest

from pages import ROOT, section, text

PAGE = "docs/contributing/measured/bench.md"


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)


def has_the_history() -> bool:
    return git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"


class MeasuredPage(unittest.TestCase):
    @unittest.skipUnless(has_the_history(), "no history: an unpacked release, or a shallow clone")
    def test_commits_of_the_page_are_in_this_history(self) -> None:
        commits = re.findall(r"\bcommit ([0-9a-f]{12,40})", text(PAGE))
        self.assertGreater(len(commits), 1)
        for commit in commits:
            with self.subTest(commit=commit):
                self.assertEqual(git("merge-base", "--is-ancestor", commit, "HEAD").returncode, 0)

    def test_raw_results_name_the_commit_of_the_page(self) -> None:
        circumstances = json.loads((ROOT / PAGE).with_suffix(".json").read_text())["circumstances"]
        self.assertIn(f"Written by `{circumstances['command']}` at {circumstances['commit']};", text(PAGE))

    def test_figures_of_readme_are_those_of_the_page(self) -> None:
        page = text(PAGE)
        for tool in ("Spillway", "as its chart installs it"):
            row = re.search(rf"^\| [^|]*{tool} \| ([\d.]+ s) \| ([\d,]+) of 1,000 \|$", text("README.md"), re.MULTILINE)
            self.assertIsNotNone(row, tool)
            measured = re.search(rf"^\| 50 nodes × 20 pods \| [^|]*{tool} \| \d+ \| \d+ / (\d+) \| ([\d.]+ s) \|", page, re.MULTILINE)
            self.assertEqual((row[1], row[2].replace(",", "")), (measured[2], measured[1]))


if __name__ == "__main__":
    unittest.main()
