"""Times as a person types them: how long ago, or when. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from . import Failed

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
LONGEST = timedelta(days=3660)


class NoTime(Failed):
    """Input that is no time."""


def parsed(text: Any) -> datetime | None:
    """A time as AWS, the API server and Spillway write it, which may have nanoseconds; None for any other value."""
    parts = re.fullmatch(r"(2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z", text) if isinstance(text, str) else None
    try:
        micros = int(((parts[2] or "") + "000000")[:6]) if parts else 0
        return parts and datetime.strptime(parts[1], "%Y-%m-%dT%H:%M:%S").replace(microsecond=micros, tzinfo=timezone.utc)
    except ValueError:
        return None


def moment(typed: str, now: datetime) -> datetime:
    """`90m`, `3h`, `2d` ago, or `2026-11-21T03:12` or `2026-11-21 03:12:00Z`; UTC unless it says otherwise."""
    ago = re.fullmatch(r"(\d{1,6})([smhd])", typed)
    if ago:
        return now - min(timedelta(**{UNITS[ago[2]]: int(ago[1])}), LONGEST)
    try:
        at = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", typed))
    except ValueError:
        raise NoTime(f"{typed!r} is no time: type 90m, 3h or 2d for how long ago, or 2026-11-21T03:12 (UTC)") from None
    return at if at.tzinfo else at.replace(tzinfo=timezone.utc)


def span(since: str, until: str) -> tuple[datetime, datetime]:
    now = datetime.now(timezone.utc)
    begin, end = (moment(typed, now).astimezone(timezone.utc) for typed in (since, until))
    if begin >= end:
        raise NoTime("--since is not before --until")
    return begin, end
