"""Parts that all subcommands share. Start with main.py."""

from __future__ import annotations

FINE, FINDING, COULD_NOT_LOOK = 0, 1, 2
# Longest complaint of another program that a person reads.
LONGEST_COMPLAINT = 400


class Failed(Exception):
    """Ends a subcommand with 2: there was no way to look."""


class Found(Exception):
    """Ends a subcommand with 1: an answer that a script should notice."""


def printable(text: str, longest: int = LONGEST_COMPLAINT) -> str:
    """Text on one line, without control characters, cut to a length."""
    shown = " ".join("".join(character if character.isprintable() else " " for character in text[: longest * 4]).split())
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def counted(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"
