"""The command `spillway`: its subcommands, and that each runs on Python 3.9, which Amazon Linux 2023 has."""

from __future__ import annotations

import ast
import contextlib
import io
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

from cli.files import version
from cli.main import COMMANDS, main, parsers

TOOLS = Path(__file__).parents[1]
SPILLWAY = TOOLS / "spillway"
FLOOR = (3, 9)
# Of the standard library, added after 3.9.
NEWER = {"tomllib"}


def spillway(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, str(SPILLWAY), *arguments], capture_output=True, text=True, check=False)


class TheCommand(unittest.TestCase):
    def test_lists_its_subcommands(self) -> None:
        for arguments in ((), ("--help",)):
            done = spillway(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertEqual([name for name in COMMANDS if f"  {name} " in done.stdout], list(COMMANDS))

    def test_version_option_works_after_each_subcommand(self) -> None:
        for arguments in (("--version",), *((name, "--version") for name in COMMANDS)):
            self.assertEqual(spillway(*arguments).stdout, f"spillway {version()}\n")

    def test_wrong_words_end_with_2_and_a_line(self) -> None:
        for arguments, said in ((("enrol",), "there is no command enrol; there are: enroll,"), (("--profile",), "there is no command --profile")):
            done = spillway(*arguments)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
            self.assertIn(f"spillway: {said}", done.stderr)

    def test_every_subcommand_has_an_example_and_the_common_options(self) -> None:
        for name, parser in parsers().items():
            options = {text for action in parser._actions for text in action.option_strings}
            self.assertLessEqual({"--profile", "--version", "--help"}, options, name)
            self.assertIn("example:", parser.format_help(), name)

    def test_completion_is_a_script_with_every_option(self) -> None:
        script = spillway("completion").stdout
        self.assertEqual(subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode, 0)
        typed = f'{script}\nCOMP_WORDS=(spillway doctor --gr); COMP_CWORD=2; _spillway; echo "${{COMPREPLY[@]}}"'
        self.assertEqual(subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=False).stdout, "--group\n")

    def test_unforeseen_exception_is_one_line(self) -> None:
        for error, said in (
            (KeyError("Stacks"), "spillway doctor: unexpected KeyError('Stacks'); SPILLWAY_TRACEBACK=1 shows the place, for a report\n"),
            (OSError("no\x1b[2J space"), "spillway doctor: no [2J space\n"),
        ):
            stderr = io.StringIO()
            with mock.patch("doctor_report.command.run", side_effect=error), contextlib.redirect_stderr(stderr):
                self.assertEqual(main(["doctor"]), 2)
            self.assertEqual(stderr.getvalue(), said)


class TheFloor(unittest.TestCase):
    def test_sources_parse_and_import_nothing_newer(self) -> None:
        for file in [file for file in TOOLS.rglob("*.py") if "tests" not in file.parts] + [SPILLWAY]:
            tree = ast.parse(file.read_text(), str(file), feature_version=FLOOR)
            imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
            self.assertEqual(imported & NEWER, set(), file)

    def test_subcommands_start_on_the_oldest_python(self) -> None:
        found = sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python"))
        python = str(found[-1]) if found else shutil.which("python3.9")
        if not python or subprocess.run([python, "-V"], capture_output=True, check=False).returncode:
            self.skipTest("there is no Python 3.9 here")
        for name in COMMANDS:
            done = spillway(name, "--help", python=python)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
