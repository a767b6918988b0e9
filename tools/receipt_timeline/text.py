"""Drains as text, for a terminal. Pure."""

from __future__ import annotations

from cli import printable

from .bars import story
from .drain import Drain
from .groups import groups
from .receipt import Fate, Pod
from .words import day_and_clock, duration, moment

# Of several drains, only pods of these fates are shown.
WORST = (Fate.LOST, Fate.UNCONFIRMED, Fate.REMAINING, Fate.FORCED)
LONGEST = 400


def text_of(drains: list[Drain]) -> str:
    return "\n\n".join(_text_of(drain, whole=len(drains) == 1) for drain in drains)


def heading(drain: Drain) -> str:
    """A drain in a line: what came when, to which node, and how it ended."""
    when = day_and_clock(drain.noticed) if drain.noticed else "no time"
    return printable(f"{drain.ending}: {drain.node or drain.instance or 'no instance'}, {drain.kind or 'no kind'}, {when}", LONGEST)


def _text_of(drain: Drain, whole: bool) -> str:
    lines = [heading(drain), f"  {printable(drain.reason, LONGEST)}"]
    if drain.missing:
        lines.append(f"  ! {drain.missing}")
    if drain.dry_run:
        lines.append("  a dry run: nothing was changed")
    lines += [f"  {name:<9} {value}" for name, value in _facts(drain) if value and (whole or name == "error")]
    pods = [pod for group in groups(drain) for pod in group.pods if whole or pod.fate in WORST]
    width = max((len(pod.name) for pod in pods), default=0)
    return "\n".join([*lines, *(_pod(pod, width) for pod in pods)])


def _facts(drain: Drain) -> list[tuple[str, str]]:
    claimed, over, limit = drain.step_ms("claimed"), drain.drained_ms, drain.limit_ms
    at = [f"{word} {moment(ms)}" for word, ms in (("claimed at", claimed), ("drained at", over)) if ms is not None]
    at += [f"{duration(limit)} in all"] if limit is not None else []
    place = ", ".join(printable(one) for one in (drain.instance, drain.cluster, drain.group) if one)
    return [
        ("error", f"{printable(drain.error)} (spillway doctor --explain {printable(drain.error)})" if drain.error else ""),
        ("instance", place),
        ("times", ", ".join(at)),
        ("hook", f"{drain.hook.name}: {drain.hook.state} {drain.hook.result or ''}".strip() if drain.hook else ""),
        ("event", drain.event_id or ""),
    ]


def _pod(pod: Pod, width: int) -> str:
    return f"  {pod.fate.value:<16} {printable(pod.name):<{width}}  {printable(story(pod))}"
