"""scripts/progress says what a build is at and of how much, and shows what was written when it fails."""

import io
import os
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from script import ROOT, load

progress = load("progress")
# As Cargo 1.95 writes it into a pipe that it is told to take for a terminal.
BAR = "   Compiling serde v1.0.0\n    Building [=====>          ] {at}   \r"


class WhatItSays(unittest.TestCase):
    def setUp(self) -> None:
        self.log = Path(self.enterContext(tempfile.NamedTemporaryFile()).name)
        self.output = progress.Output(self.log)

    def doing(self, written: str, now: float = 0) -> str:
        self.log.write_text(written)
        said: str = self.output.doing(now)
        return said

    def test_of_cargo_it_says_how_many_crates_there_are_and_which_takes_long(self) -> None:
        self.doing(BAR.format(at="12/240: aws-sdk-ec2, serde"), now=10)
        self.doing(BAR.format(at="40/240: aws-sdk-ec2, hyper"), now=100)
        said = self.doing(BAR.format(at="41/240: hyper, kube, aws-sdk-ec2"), now=195)
        self.assertEqual(said, "41 of 240 crates, at: aws-sdk-ec2 for 3:05 and 2 more")

    def test_a_crate_that_comes_again_is_timed_anew(self) -> None:
        self.doing(BAR.format(at="12/240: hyper(build)"), now=0)
        self.doing(BAR.format(at="13/240: serde"), now=50)
        self.assertEqual(
            self.doing(BAR.format(at="14/240: hyper(build)"), now=60), "14 of 240 crates, at: hyper(build) for 0:00"
        )

    def test_of_another_command_each_line_is_a_step_of_at_most_so_many(self) -> None:
        self.output = progress.Output(self.log, most_steps=2900)
        self.assertEqual(self.doing("k8s.io/api\nk8s.io/client-go\n"), "2 steps of at most 2900, at: k8s.io/client-go")

    def test_before_anything_is_written_it_is_at_the_first_step(self) -> None:
        self.assertEqual(self.doing(""), "at the first step")

    def test_what_people_get_to_read_of_a_failure_has_no_bars(self) -> None:
        self.doing(BAR.format(at="12/240: serde") + "error: no such crate\n")
        self.assertEqual(self.output.lines(), ["Compiling serde v1.0.0", "error: no such crate"])


class HowOften(unittest.TestCase):
    """The clock is told to go, so that nobody waits for half a minute."""

    def said(self, terminal: bool) -> list[str]:
        seconds = iter(range(10_000))
        ends = iter([False] * 60 + [True])
        screen = io.StringIO()
        screen.isatty = lambda: terminal  # type: ignore[method-assign]
        with (
            patch.object(progress.time, "monotonic", lambda: next(seconds)),
            patch.object(progress, "_ends", lambda process: process.wait() == 0 and next(ends)),
            redirect_stdout(screen),
        ):
            self.assertEqual(progress.main(["label", "true"]), 0)
        return screen.getvalue().splitlines()

    def test_without_a_terminal_a_line_comes_every_half_minute(self) -> None:
        times = [line.split("]")[0].removeprefix("[label ") for line in self.said(terminal=False)[:-1]]
        minutes = [int(one.split(":")[0]) * 60 + int(one.split(":")[1]) for one in times]
        gaps = [later - sooner for sooner, later in zip(minutes, minutes[1:], strict=False)]
        self.assertTrue(gaps and all(progress.ELSEWHERE_S <= gap < 2 * progress.ELSEWHERE_S for gap in gaps), gaps)

    def test_at_a_terminal_they_come_more_often(self) -> None:
        self.assertGreater(len(self.said(terminal=True)), len(self.said(terminal=False)))


class ACommandThatFails(unittest.TestCase):
    def test_its_output_and_its_exit_code_are_passed_on(self) -> None:
        done = subprocess.run(
            [sys.executable, ROOT / "scripts/progress", "label", "sh", "-c", "echo why; exit 3"],
            **{"capture_output": True, "text": True, "env": os.environ},
        )
        self.assertEqual((done.returncode, done.stderr), (3, "why\n"))
        self.assertIn("failed:", done.stdout)
