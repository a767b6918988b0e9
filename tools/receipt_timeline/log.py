"""Receipts of a time from the function's log, by the AWS CLI."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from programs import Failed, json_of

# A receipt's first line and its further ones, as docs/receipt.md has them; metrics and other lines have neither field.
PATTERN = "{ ($.receipt = 2) || ($.receipt_part > 1) }"
# CloudWatch answers with 10,000 lines or 1 MiB at a time; a busy week has hundreds of pages.
PATIENCE_S = 1800


def log_group(stack: str, region: str | None) -> str:
    query = "Stacks[0].Outputs[?OutputKey=='LogGroupName'].OutputValue"
    named = json_of([*_aws("cloudformation", "describe-stacks", region), "--stack-name", stack, "--query", query], 60)
    if not named:
        raise Failed(f"the stack {stack} has no output LogGroupName: is it Spillway's?")
    return str(named[0])


def fetched(group: str, since: datetime, until: datetime, region: str | None) -> list[str]:
    """The lines of all receipts. With JSON, the AWS CLI asks its query of all pages together."""
    times = [str(int(at.timestamp() * 1000)) for at in (since, until)]
    question = [
        *(*_aws("logs", "filter-log-events", region), "--log-group-name", group, "--start-time", times[0], "--end-time", times[1]),
        *("--filter-pattern", PATTERN, "--query", "events[].message"),
    ]
    return [line for line in json_of(question, PATIENCE_S) or [] if _is_object(line)]


def _aws(service: str, operation: str, region: str | None) -> list[str]:
    return ["aws", service, operation, "--output", "json", *(["--region", region] if region else [])]


def _is_object(line: Any) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (TypeError, ValueError):
        return False
