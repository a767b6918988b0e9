"""The Python packages that are installed are those of the list, each with the hashes of its files."""

import re
import unittest

from script import ROOT

BED = ROOT / "tests/bed/aws"


def pinned(file: str) -> dict[str, str]:
    """The versions by the names, as PyPI takes names to be the same."""
    lines = re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", (BED / file).read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in lines}


class TheLock(unittest.TestCase):
    def test_it_has_the_versions_of_the_list(self) -> None:
        self.assertLessEqual(pinned("requirements.txt").items(), pinned("requirements.lock").items(), "scripts/lock-python writes it")

    def test_each_package_has_hashes(self) -> None:
        packages = re.split(r"^(?=\S)", (BED / "requirements.lock").read_text(), flags=re.MULTILINE)[1:]
        self.assertEqual([package for package in packages if not re.search(r"--hash=sha256:[0-9a-f]{64}", package)], [])


if __name__ == "__main__":
    unittest.main()
