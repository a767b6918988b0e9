"""scripts/step says how long a step took, what a long build is at, and shows what was written when it fails."""

import os
import subprocess
import tempfile
import re
import unittest
from pathlib import Path

from script import ROOT

STEP = ROOT / "scripts/step"
# As Cargo 1.95 writes its bar into a pipe that it is told to take for a terminal.
BAR = r"   Compiling serde v1.0.0\n    Building [=====>          ] 12/240: serde, hyper\r"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([STEP, *arguments], capture_output=True, text=True, check=False)


def untimed(output: str) -> str:
    """The output without how long the step took."""
    return re.sub(r"after \d+:\d\d", "after M:SS", output)


class AStep(unittest.TestCase):
    def test_its_output_is_shown_and_its_exit_code_passed_on(self) -> None:
        done = run("tests", "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual((done.returncode, done.stderr), (3, "err\n"))
        self.assertEqual(untimed(done.stdout), "\n== tests\nout\n== tests: FAILED after M:SS\n")

    def test_a_quiet_one_that_goes_well_is_one_line(self) -> None:
        done = run("--quiet", "build", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual((done.returncode, untimed(done.stdout), done.stderr), (0, "== build: done after M:SS\n", ""))

    def test_a_quiet_one_that_fails_shows_what_it_wrote_without_bars(self) -> None:
        done = run("--quiet", "build", "sh", "-c", f"printf '{BAR}'; echo error: no such crate >&2; exit 101")
        self.assertEqual((done.returncode, untimed(done.stdout)), (101, "== build: FAILED after M:SS\n"))
        self.assertEqual(done.stderr, "   Compiling serde v1.0.0\nerror: no such crate\n")

    def test_a_quiet_one_says_meanwhile_what_it_is_at(self) -> None:
        end = Path(self.enterContext(tempfile.TemporaryDirectory())) / "end"
        command = f"printf '{BAR}'; until [ -e {end} ]; do sleep 0.05; done"
        environment = {**os.environ, "SPILLWAY_STEP_S": "0.05"}
        with subprocess.Popen(
            [STEP, "--quiet", "build", "sh", "-c", command], stdout=subprocess.PIPE, text=True, env=environment
        ) as step:
            assert step.stdout is not None
            said = next(line for line in step.stdout if "Building" in line)
            end.touch()
            step.stdout.read()
        self.assertRegex(said, r"^\[build 0:\d\d\]     Building \[=+> +\] 12/240: serde, hyper$")
        self.assertEqual(step.returncode, 0)


if __name__ == "__main__":
    unittest.main()
