"""The command `spillway doctor`: asks the function, or reads a report that it gave, and prints it."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import sys
from pathlib import Path

from cluster_enrollment import doctor, stack
from cluster_enrollment.aws import Aws, AwsError, Unusable
from cluster_enrollment.stack import NoStack

from .page import Page
from .report import NoReport, Status, read

WIDTH = 80
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
FAILED, NO_REPORT = 1, 2
PAGE = Path(__file__).parents[2] / "docs/doctor.md"


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    if options.explain:
        print(explained(options.explain, PAGE.read_text(encoding="utf-8")))
        return 0
    try:
        text = _asked(options) if options.file is None else sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
        report = read(text)
    except (OSError, UnicodeDecodeError, NoReport, NoStack, AwsError, Unusable) as error:
        print(f"spillway doctor: {error}", file=sys.stderr)
        return NO_REPORT
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(text if options.output == "json" else Page(WIDTH, colours).of(report))
    return FAILED if report.status >= Status.UNKNOWN else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spillway doctor",
        description="Has the function of a stack look whether the next notice would be handled, and prints what it found. It needs "
        "the rights cloudformation:DescribeStacks and lambda:InvokeFunction.",
        epilog="example: spillway doctor prod. 0: no failure; 1: the report has one, or nobody knows; 2: there is no report",
    )
    parser.add_argument("cluster", nargs="?", default="", help="only this cluster; default: all")
    parser.add_argument("--file", metavar="FILE", help="print this report, or the log with its line, and ask nobody; - is standard input")
    parser.add_argument("--explain", metavar="ID", help="print what a finding or a check means, from docs/doctor.md, and ask nobody")
    parser.add_argument("--stack", metavar="NAME", default="spillway", help="default: %(default)s")
    parser.add_argument("--region", metavar="REGION", help="in place of the AWS CLI's own")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    return parser.parse_args(arguments)


def explained(wanted: str, page: str) -> str:
    """The rows of the page's tables that begin with this id. A page of 40 findings has no second copy in the tool."""
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \|$", page, re.MULTILINE)
    if found := [meaning for name, meaning in rows if name == wanted]:
        return "\n".join(f"{wanted}: " + LINK.sub(r"\1", meaning) for meaning in found)
    near = difflib.get_close_matches(wanted, [name for name, _ in rows], n=1)
    raise ValueError(f"docs/doctor.md has no finding {wanted}{f'; is it {near[0]}?' if near else ''}")


def _asked(options: argparse.Namespace) -> str:
    deployed = stack.read(Aws(options.region), options.stack)
    return json.dumps(doctor.ask(Aws(deployed.region), deployed, options.cluster), indent=2)
