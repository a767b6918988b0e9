"""A page that a measurement wrote names a commit of this history, and its raw results lie beside it."""

import json
import re
import subprocess
import unittest

from pages import PAGES, ROOT, name, text

WRITTEN_BY = re.compile(r"Written by `make \w+[^`]*`")


def git(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)


def has_the_history() -> bool:
    return git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"


def missing(page: str) -> set[str]:
    commit = re.search(r"at commit ([0-9a-f]{12,40})", text(page))
    results = re.search(r"The raw results are beside it: \[([\w.]+)\]", text(page))
    lack = set()
    if not commit or git("merge-base", "--is-ancestor", commit[1], "HEAD").returncode:
        lack.add("commit")
    if not results or not json.loads(((ROOT / page).parent / results[1]).read_text()):
        lack.add("results")
    return lack


@unittest.skipUnless(has_the_history(), "no history to look in: an unpacked release, or a shallow clone")
class MeasuredPages(unittest.TestCase):
    def test_each_names_a_commit_of_this_history_and_has_its_results_beside_it(self) -> None:
        measured = [name(page) for page in PAGES if WRITTEN_BY.search(page.read_text())]
        self.assertGreater(len(measured), 3)
        for page in measured:
            with self.subTest(page=page):
                self.assertEqual(missing(page), set())


if __name__ == "__main__":
    unittest.main()
