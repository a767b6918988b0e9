"""The command line: a report in, text out; the exit code says whether anything failed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .page import Page
from .report import NoReport, Status, read

WIDTH = 80
FAILED, NO_REPORT = 1, 2


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/doctor",
        description=__doc__,
        epilog="0: no failure; 1: the report has one, or nobody knows; 2: there is no report",
    )
    parser.add_argument(
        "file", nargs="?", default="-", help="what the function answered, or the log with its line; - is standard input"
    )
    options = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
        report = read(text)
    except (OSError, UnicodeDecodeError, NoReport) as error:
        print(f"tools/doctor: {error}", file=sys.stderr)
        return NO_REPORT
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(Page(WIDTH, colours).of(report))
    return FAILED if report.status >= Status.UNKNOWN else 0
