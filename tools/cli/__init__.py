"""Parts that all subcommands share.

* `main`: the subcommands, and the one way in which each of them ends; `options`: the options that several have;
* `process`: other programs; `aws`: the AWS CLI; `stack`: the deployed stack;
* `files`: the project's files that the tools read; `times`: times as a person types them; `table`: aligned columns;
* `completion`: a script for the shell.
"""

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
    """Number and noun, in the singular or the plural."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"
