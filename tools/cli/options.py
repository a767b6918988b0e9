"""Options that several subcommands have."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap

from . import Failed

EXIT_CODES = "0: fine; 1: a finding; 2: could not look"


def parser(name: str, description: str, example: str, output: tuple[str, ...] = ("text", "json"), needs_stack: bool = True) -> argparse.ArgumentParser:
    """Parser of a subcommand, with the options that are common to all."""
    made = argparse.ArgumentParser(
        prog=f"spillway {name}",
        description=textwrap.fill(description, 100),
        epilog=f"example:\n  {example}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if needs_stack:
        made.add_argument("--stack", metavar="NAME", default="spillway", help="the stack; default: %(default)s")
        made.add_argument("--region", metavar="REGION", help="the stack's Region, in place of the AWS CLI's own")
    # Read by `main`, which hands it to the AWS CLI.
    made.add_argument("--profile", metavar="NAME", help="a profile of the AWS CLI")
    if output:
        made.add_argument("-o", "--output", choices=output, default=output[0], help="default: %(default)s")
    made.add_argument("--version", action="store_true", help="print the version")
    return made


def colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def agreed(question: str, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        raise Failed("it asks before it changes anything, and there is no terminal: give --yes, or look with --plan")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
