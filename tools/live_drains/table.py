"""Drains as text. Pure."""

from __future__ import annotations

from datetime import datetime

from cli import counted
from cli.table import aligned

from .drains import Drain

HEADINGS = ("CLUSTER", "NODE", "ZONE", "NOTICE", "STATE", "SINCE", "TIME LEFT", "GONE", "LEFT", "BLOCKED BY")
# As many as fit beside the rest.
MOST_BLOCKERS = 2


def table(drains: list[Drain], not_read: list[tuple[str, str]], now: datetime, clusters: int, width: int = 0, height: int = 0) -> str:
    """Current drains, the least time left first. Width and height cut the table; 0 cuts nothing."""
    rows = [HEADINGS, *(_row(drain, now) for drain in by_urgency(drains))] if drains else []
    lines = [_summary(drains, now, clusters - len(not_read), clusters), *aligned(rows)]
    troubles = [f"not read: {cluster}: {why}" for cluster, why in not_read]
    room = height - len(troubles) - 1 if height else len(lines)
    if len(lines) > room:
        cut = len(lines) - max(room, 2) + 1
        lines = [*lines[:-cut], f"and {cut} more"]
    lines += troubles
    return "\n".join(line[:width] if width else line for line in lines)


def by_urgency(drains: list[Drain]) -> list[Drain]:
    def key(drain: Drain) -> tuple[bool, bool, float, str, str]:
        until = drain.claim.until
        return (drain.left == 0, until is None, until.timestamp() if until else 0, drain.cluster, drain.node)

    return sorted(drains, key=key)


def _summary(drains: list[Drain], now: datetime, read: int, clusters: int) -> str:
    """Clusters first if one was not read: no claimed node in what nobody read means nothing."""
    at = f"{now:%Y-%m-%d %H:%M:%S} UTC: "
    at += f"{read} of {counted(clusters, 'cluster')} read" if read < clusters else ""
    if clusters and not read:
        return at
    at += ", " if read < clusters else ""
    left, blocked = sum(drain.left for drain in drains), sum(len(drain.blocked) for drain in drains)
    pods = f"{counted(left, 'pod')} left, {blocked} of them blocked"
    return at + counted(len(drains), "claimed node") + (f", {pods}" if drains else "")


def _row(drain: Drain, now: datetime) -> tuple[str, ...]:
    since = drain.claim.since
    return (
        drain.cluster,
        drain.node,
        drain.zone,
        drain.claim.notice,
        drain.state,
        _clock(round((now - since).total_seconds())) if since else "-",
        _time_left(drain.seconds_left(now)),
        "-" if drain.gone is None else str(drain.gone),
        f"{drain.left} ({drain.leaving} shutting down)" if drain.leaving else str(drain.left),
        _blockers(drain),
    )


def _time_left(seconds: int | None) -> str:
    return "a hook's" if seconds is None else _clock(seconds) if seconds > 0 else "over"


def _blockers(drain: Drain) -> str:
    blockers = drain.blockers()
    names = [f"{by} ({counted(pods, 'pod')})" for by, pods in blockers[:MOST_BLOCKERS]]
    more = len(blockers) - len(names)
    return ", ".join([*names, f"{more} more"] if more > 0 else names)


def _clock(seconds: int) -> str:
    minutes, seconds = divmod(max(seconds, 0), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} days"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
