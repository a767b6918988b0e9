"""What is typed, asked of AWS, and printed."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime, timezone
from typing import Any

from programs import Failed, json_of

from .times import NoTime, moment

# A receipt's first line and its further ones, as docs/receipt.md has them; metrics and other lines have neither field.
PATTERN = "{ ($.receipt = 2) || ($.receipt_part > 1) }"
# CloudWatch answers with 10,000 lines or 1 MiB at a time; a busy week has hundreds of pages.
PATIENCE_S = 1800


def main(arguments: list[str] | None = None) -> int:
    try:
        options = _options(arguments)
        group = options.log_group or _log_group(options.stack)
        messages = json_of(_question(group, options.since, options.until), PATIENCE_S)
    except (Failed, NoTime) as error:
        print(f"tools/receipts: {error}", file=sys.stderr)
        return 2
    receipts = [line for line in messages or [] if _is_receipt(line)]
    for line in receipts:
        print(line.strip())
    time = f"from {options.since:%Y-%m-%d %H:%M:%S} to {options.until:%Y-%m-%d %H:%M:%S} UTC"
    if not receipts:
        print(f"tools/receipts: {group} has no receipt {time}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/receipts",
        description="Prints all receipts of a time, a line each, from the function's log.",
        epilog="A receipt is written when its drain ends: let --until be some minutes later than what you look for. Account "
        "and Region are those of the AWS CLI. Rights: logs:FilterLogEvents, and cloudformation:DescribeStacks for --stack.",
    )
    parser.add_argument("--since", default="1h", metavar="TIME", help="90m, 3h, 2d ago, or 2026-11-21T03:12 in UTC; default: 1h")
    parser.add_argument("--until", default="0s", metavar="TIME", help="the same; default: now")
    parser.add_argument("--stack", default="spillway", help="the stack whose output LogGroupName is read; default: spillway")
    parser.add_argument("--log-group", metavar="NAME", help="the log group itself, in place of --stack")
    options = parser.parse_args(arguments)
    now = datetime.now(timezone.utc)
    options.since, options.until = (moment(typed, now).astimezone(timezone.utc) for typed in (options.since, options.until))
    if options.since >= options.until:
        raise NoTime("--since is not before --until")
    return options


def _log_group(stack: str) -> str:
    query = "Stacks[0].Outputs[?OutputKey=='LogGroupName'].OutputValue"
    named = json_of(
        ["aws", "cloudformation", "describe-stacks", "--stack-name", stack, "--query", query, "--output", "json"], 60
    )
    if not named:
        raise Failed(f"the stack {stack} has no output LogGroupName: is it Spillway's?")
    return str(named[0])


def _question(group: str, since: datetime, until: datetime) -> list[str]:
    """All pages of it: with JSON, the AWS CLI asks its query of all of them together."""
    times = [str(int(at.timestamp() * 1000)) for at in (since, until)]
    return [
        *("aws", "logs", "filter-log-events", "--log-group-name", group, "--start-time", times[0], "--end-time", times[1]),
        *("--filter-pattern", PATTERN, "--query", "events[].message", "--output", "json"),
    ]


def _is_receipt(line: Any) -> bool:
    """Whether it can be printed as a line that is JSON, whatever else matched."""
    try:
        return isinstance(json.loads(line), dict)
    except (TypeError, ValueError):
        return False
