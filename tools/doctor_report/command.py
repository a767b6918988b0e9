"""The command `spillway doctor`: asks the function, or reads a report that it gave, and prints it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from cluster_enrollment import doctor, stack
from cluster_enrollment.aws import Aws, AwsError, Unusable
from cluster_enrollment.stack import NoStack

from .page import Page
from .report import NoReport, Status, read

WIDTH = 80
FAILED, NO_REPORT = 1, 2


def main(arguments: list[str]) -> int:
    options = _options(arguments)
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
    parser.add_argument("--stack", metavar="NAME", default="spillway", help="default: %(default)s")
    parser.add_argument("--region", metavar="REGION", help="in place of the AWS CLI's own")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    return parser.parse_args(arguments)


def _asked(options: argparse.Namespace) -> str:
    deployed = stack.read(Aws(options.region), options.stack)
    return json.dumps(doctor.ask(Aws(deployed.region), deployed, options.cluster), indent=2)
