"""Drains as text, for a terminal. Pure."""

from __future__ import annotations

from cli import printable

from .drain import Drain
from .receipt import Fate, Pod
from .words import day_and_clock, duration, listed, moment

# Order of the pods: what a reader has to act on comes first.
ORDER = (
    *(Fate.WOULD_BE_BLOCKED, Fate.WOULD_LEAVE, Fate.LOST, Fate.UNCONFIRMED, Fate.REMAINING),
    *(Fate.FORCED, Fate.CLAMPED, Fate.CLEAN, Fate.RETURNED, Fate.STAYED),
)
# Of several drains, only pods of these fates are shown.
WORST = (Fate.LOST, Fate.UNCONFIRMED, Fate.REMAINING, Fate.FORCED)
LONGEST = 400


def text_of(drains: list[Drain]) -> str:
    return "\n\n".join(_text_of(drain, whole=len(drains) == 1) for drain in drains)


def heading(drain: Drain) -> str:
    """A drain in a line: what came when, to which node, and how it ended."""
    when = day_and_clock(drain.noticed) if drain.noticed else "no time"
    node = drain.node or drain.instance or "no instance"
    return printable(f"{drain.ending}: {node}, {drain.kind or 'no kind'}, {when}", LONGEST)


def notes(drain: Drain) -> list[str]:
    """The reason of the ending, and reservations about the receipt."""
    missing = [f"! {drain.missing}"] if drain.missing else []
    return [printable(drain.reason, LONGEST), *missing, *(["a dry run: nothing was changed"] if drain.dry_run else [])]


def facts(drain: Drain) -> list[tuple[str, str]]:
    claimed, over, limit = drain.step_ms("claimed"), drain.drained_ms, drain.limit_ms
    at = [f"{word} {moment(ms)}" for word, ms in (("claimed at", claimed), ("drained at", over)) if ms is not None]
    at += [f"{duration(limit)} in all"] if limit is not None else []
    place = ", ".join(printable(one) for one in (drain.instance, drain.cluster, drain.group) if one)
    found = [
        ("error", printable(f"{drain.error} (spillway doctor --explain {drain.error})") if drain.error else ""),
        ("instance", place),
        ("times", ", ".join(at)),
        ("hook", f"{drain.hook.name}: {drain.hook.state} {drain.hook.result or ''}".strip() if drain.hook else ""),
        ("event", drain.event_id or ""),
    ]
    return [(name, value) for name, value in found if value]


def in_order(pods: tuple[Pod, ...]) -> list[Pod]:
    """The worst fate first; of one fate, the pod that took longest."""
    return sorted(pods, key=lambda pod: (ORDER.index(pod.fate), -(pod.gone_ms or 0), pod.name))


def story(pod: Pod) -> str:
    parts = [pod.why]
    if pod.requested_ms is not None:
        parts.append(f"requested at {moment(pod.requested_ms)}")
    elif pod.evictions == 0 and pod.gone_ms is not None and not pod.answers:
        parts.append("was leaving already")
    if pod.refusals:
        several = pod.blocked_by is None or ", " in pod.blocked_by
        by = f"budget{'s' * several} {pod.blocked_by}" if pod.blocked_by else "several budgets"
        is_timed = pod.requested_ms is not None and pod.accepted_ms is not None
        time = f"blocked {duration(pod.accepted_ms - pod.requested_ms)} by {by}, " if is_timed else ""
        parts.append(f"{time}refused {pod.refusals}×" + ("" if time else f" by {by}"))
    if pod.accepted_ms is not None:
        parts.append(f"accepted at {moment(pod.accepted_ms)}")
    parts.append(_ended(pod))
    # Answers that are neither the usual one nor a budget's.
    usual = ("evicted", "deleted", "gone")
    odd = [f"{name} {count}×" for name, count in sorted(pod.answers.items()) if name not in usual and "blocked" not in name]
    parts.append(f"also answered: {listed(odd)}" if odd else None)
    return printable(" · ".join(part for part in parts if part))


def _ended(pod: Pod) -> str:
    gone = f"gone at {moment(pod.gone_ms)}" if pod.gone_ms is not None else ""
    if pod.grace_s is None:
        return gone
    is_clamped = pod.given_s is not None and pod.given_s < pod.grace_s
    if pod.gone_ms is not None and pod.accepted_ms is not None:
        given_s = pod.given_s if is_clamped else pod.grace_s
        took = f"{gone}, after {duration(pod.gone_ms - pod.accepted_ms)} of {given_s} s of grace"
        return f"{took}; it asks for {pod.grace_s} s" if is_clamped else took
    grace = f"given {pod.given_s} of {pod.grace_s} s of grace" if is_clamped else f"{pod.grace_s} s of grace"
    return f"{gone}, {grace}" if gone else grace


def _text_of(drain: Drain, whole: bool) -> str:
    lines = [heading(drain), *(f"  {note}" for note in notes(drain))]
    lines += [f"  {name:<9} {value}" for name, value in facts(drain) if whole or name == "error"]
    pods = [pod for pod in in_order(drain.pods) if whole or pod.fate in WORST]
    width = max((len(pod.name) for pod in pods), default=0)
    lines += [f"  {pod.fate.value:<16} {printable(pod.name):<{width}}  {story(pod)}" for pod in pods]
    return "\n".join(lines)
