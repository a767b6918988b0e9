"""Other programs, the AWS CLI and kubectl: their output, or why there is none."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Mapping

from . import Failed, printable

# Half an hour: the log of a busy week has hundreds of pages.
LONGEST_S = 1800


@dataclass(frozen=True)
class Refused(Exception):
    """Exit code and standard error of a program that failed."""

    code: int
    stderr: str

    def __str__(self) -> str:
        return printable(self.stderr) or f"exit code {self.code}"


def run(command: list[str], stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(command, input=stdin.encode(), env=environment, capture_output=True, timeout=LONGEST_S, check=False)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not on the PATH: install it") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command[:3])} did not end within {LONGEST_S} s") from None
    if done.returncode:
        raise Refused(done.returncode, done.stderr.decode(errors="replace").strip())
    return done.stdout.decode(errors="replace")
