"""The annotation `spillway/claim` of a node. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cli import printable
from cli.times import parsed

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
        until=parsed(claim.get("until")),
        since=parsed(claim.get("since")),
    )
