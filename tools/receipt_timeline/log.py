"""Receipts in the function's log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from cli.aws import Aws

# A receipt's first line and its further ones, as docs/receipt.md has them; metrics and other lines have neither field.
PATTERN = "{ ($.receipt = 2) || ($.receipt_part > 1) }"


def fetched(aws: Aws, group: str, since: datetime, until: datetime) -> list[str]:
    """Lines of all receipts. With JSON output, the AWS CLI applies its query to all pages together."""
    times = [str(int(at.timestamp() * 1000)) for at in (since, until)]
    lines = aws.call(
        *("logs", "filter-log-events", "--log-group-name", group, "--start-time", times[0], "--end-time", times[1]),
        *("--filter-pattern", PATTERN, "--query", "events[].message"),
    )
    return [line for line in lines or [] if _is_object(line)]


def _is_object(line: Any) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (TypeError, ValueError):
        return False
