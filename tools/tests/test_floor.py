"""Every tool runs on Python 3.9, which Amazon Linux 2023 has."""

from __future__ import annotations

import ast
import shutil
import subprocess
import unittest
from pathlib import Path

TOOLS = Path(__file__).parents[1]
FLOOR = (3, 9)
PROGRAMS = ("doctor", "drains", "enroll", "from-nth", "receipts", "timeline")
# Of the standard library, added after 3.9.
NEWER = {"tomllib"}


def sources() -> list[Path]:
    return [file for file in TOOLS.rglob("*.py") if "tests" not in file.parts] + [TOOLS / name for name in PROGRAMS]


class TheFloor(unittest.TestCase):
    def test_sources_parse_and_import_nothing_newer(self) -> None:
        for file in sources():
            tree = ast.parse(file.read_text(), str(file), feature_version=FLOOR)
            imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
            self.assertEqual(imported & NEWER, set(), file)

    def test_programs_start_on_the_oldest_python(self) -> None:
        python = shutil.which("python3.9")
        if not python or subprocess.run([python, "-V"], capture_output=True, check=False).returncode:
            self.skipTest("there is no Python 3.9 here")
        for name in PROGRAMS:
            done = subprocess.run([python, str(TOOLS / name), "--help"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
