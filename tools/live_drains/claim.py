"""What the annotation `spillway/claim` of a node says. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from cli import printable

ANNOTATION = "spillway/claim"
MOST = 80


@dataclass(frozen=True)
class Claim:
    event: str
    notice: str
    # When the instance goes; None while a hook holds it.
    until: datetime | None
    # When the notice came.
    since: datetime | None


def claim_on(metadata: dict[str, Any]) -> Claim | None:
    """The claim on a node; None if there is none that can be read: anybody who can write nodes can write it."""
    annotation = (metadata.get("annotations") or {}).get(ANNOTATION)
    try:
        claim = json.loads(annotation) if isinstance(annotation, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(claim, dict) or not all(isinstance(claim.get(name), str) for name in ("event", "notice")):
        return None
    return Claim(
        event=printable(claim["event"], MOST),
        notice=printable(claim["notice"], MOST),
        until=time_of(claim.get("until")),
        since=time_of(claim.get("since")),
    )


def time_of(text: Any) -> datetime | None:
    """A time as the API server and Spillway write it, which may have nanoseconds."""
    parts = re.fullmatch(r"(2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?Z", text) if isinstance(text, str) else None
    try:
        return parts and datetime.strptime(parts[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
