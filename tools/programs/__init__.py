"""Programs of others that our tools call, the AWS CLI and kubectl: what they answer, and why they did not."""

from __future__ import annotations

import json
import subprocess
from typing import Any

# As much of a complaint as a person reads.
MOST_OF_A_COMPLAINT = 400


class Failed(Exception):
    """A program is not there, said no, or answered nothing that can be read."""


def json_of(command: list[str], patience_s: float) -> Any:
    """The JSON that a program prints."""
    printed = output_of(command, patience_s)
    try:
        return json.loads(printed)
    except ValueError:
        raise Failed(f"{_name(command)} printed no JSON: {printable(printed)}") from None


def output_of(command: list[str], patience_s: float) -> str:
    """What a program prints."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s, check=False)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not on the PATH") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{_name(command)} did not end within {patience_s:.0f} s") from None
    if done.returncode != 0:
        complaint = printable(done.stderr.decode(errors="replace")) or f"exit code {done.returncode}"
        raise Failed(f"{_name(command)}: {complaint}")
    return done.stdout.decode(errors="replace")


def printable(text: str, most: int = MOST_OF_A_COMPLAINT) -> str:
    """On one line, without what a terminal would obey, and no longer than this."""
    shown = " ".join("".join(character if character.isprintable() else " " for character in text[: most * 4]).split())
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def _name(command: list[str]) -> str:
    return " ".join(command[:3])
