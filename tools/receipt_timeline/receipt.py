"""One receipt, as docs/receipt.md has it, to plain data; or the reason why it is none.

Times are milliseconds from the notice (`drain` may move them). An absent field is None or empty.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any

from cli import Failed

from .words import listed

VERSION = 2
NEEDED = ("receipt", "notice", "steps", "ending", "reason")
# Thirty years: far more than any drain, and far less than what a date can hold.
MOST_MS = 10**12


class NotAReceipt(Failed):
    """What was given is no receipt, or none that this program knows."""


class Fate(Enum):
    """A pod's end."""

    CLEAN = "clean"
    CLAMPED = "clamped"
    FORCED = "forced"
    STAYED = "stayed"
    RETURNED = "returned"
    REMAINING = "remaining"
    LOST = "lost"
    UNCONFIRMED = "unconfirmed"
    # Of a dry run.
    WOULD_LEAVE = "would-leave"
    WOULD_BE_BLOCKED = "would-be-blocked"


# The drain waits for no pod of these fates.
UNTOUCHED = (Fate.STAYED, Fate.RETURNED, Fate.WOULD_LEAVE, Fate.WOULD_BE_BLOCKED)


@dataclass(frozen=True)
class Step:
    step: str
    at_ms: int


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    fate: Fate
    grace_s: int | None = None
    given_s: int | None = None
    evictions: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    blocked_by: str | None = None
    why: str | None = None
    requested_ms: int | None = None
    accepted_ms: int | None = None
    gone_ms: int | None = None

    @property
    def refusals(self) -> int:
        """How often a budget refused that it leave."""
        return sum(count for answer, count in self.answers.items() if answer.startswith("blocked-by"))


@dataclass(frozen=True)
class Hook:
    group: str
    name: str
    state: str
    result: str | None = None
    heartbeats_ms: tuple[int, ...] = ()


@dataclass(frozen=True)
class Window:
    """How long there was for the drain."""

    # When the invocation had to stop.
    end_ms: int
    # When the instance goes; None while something waits for us.
    deadline_ms: int | None = None
    margin_s: int = 0


@dataclass(frozen=True)
class Earlier:
    """An invocation before this one, in short."""

    request_id: str
    begun: datetime
    ended: datetime
    pods: dict[str, int]


@dataclass(frozen=True)
class Receipt:
    version: int
    request_id: str
    event_id: str | None
    kind: str | None
    time: datetime | None
    deadline: datetime | None
    written: datetime | None
    instance: str | None
    zone: str | None
    instance_type: str | None
    group: str | None
    cluster: str | None
    node: str | None
    managed_by: str | None
    decision: str | None
    dry_run: bool
    window: Window | None
    steps: tuple[Step, ...]
    pods: tuple[Pod, ...]
    hook: Hook | None
    ending: str
    reason: str
    earlier: tuple[Earlier, ...]
    # How many of its lines there are, of how many, if some are missing.
    lines: tuple[int, int] | None

    def ms(self, at: datetime) -> int:
        """A time of day as milliseconds."""
        return 0 if self.time is None else (at - self.time) // timedelta(milliseconds=1)

    def step_ms(self, name: str) -> int | None:
        return next((step.at_ms for step in self.steps if step.step == name), None)


def read(document: dict[str, Any]) -> Receipt:
    """A receipt from its JSON."""
    missing = [name for name in NEEDED if name not in document]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise NotAReceipt(f"not a receipt: {listed([f'`{name}`' for name in missing])} {verb} missing")
    top = _Fields(document, "")
    version = top.number("receipt")
    if version != VERSION:
        raise NotAReceipt(f"a receipt of version {version}; this program knows version {VERSION}")
    notice = top.fields("notice")
    window, hook, lines = (top.maybe_fields(name) for name in ("window", "hook", "lines"))
    return Receipt(
        version=version,
        request_id=top.maybe_text("request_id") or "unknown",
        event_id=notice.maybe_text("event_id"),
        kind=notice.maybe_text("kind"),
        time=notice.maybe_time("time"),
        deadline=notice.maybe_time("deadline"),
        written=top.maybe_time("timestamp"),
        instance=top.maybe_text("instance"),
        zone=top.maybe_text("zone"),
        instance_type=top.maybe_text("instance_type"),
        group=top.maybe_text("auto_scaling_group"),
        cluster=top.maybe_text("cluster"),
        node=top.maybe_text("node"),
        managed_by=top.maybe_text("managed_by"),
        decision=top.maybe_text("decision"),
        dry_run=document.get("dry_run") is True,
        window=window and _window(window),
        steps=tuple(Step(step.text("step"), step.number("at_ms")) for step in top.each("steps")),
        pods=tuple(_pod(pod) for pod in top.each("pods")),
        hook=hook and _hook(hook),
        ending=top.text("ending"),
        reason=top.text("reason"),
        earlier=tuple(
            Earlier(entry.text("request_id"), entry.time("from"), entry.time("to"), entry.counts("pods"))
            for entry in top.each("earlier")
        ),
        lines=lines and (lines.number("found"), lines.number("of")),
    )


def _window(window: _Fields) -> Window:
    return Window(
        end_ms=window.number("end_ms"),
        deadline_ms=window.maybe_number("deadline_ms"),
        margin_s=window.maybe_number("margin_s") or 0,
    )


def _pod(pod: _Fields) -> Pod:
    name = pod.text("pod")
    return Pod(
        name=name,
        uid=pod.maybe_text("uid") or name,
        fate=pod.fate("fate"),
        grace_s=pod.maybe_number("grace_s"),
        given_s=pod.maybe_number("given_s"),
        evictions=pod.maybe_number("evictions") or 0,
        answers=pod.counts("answers"),
        blocked_by=pod.maybe_text("blocked_by"),
        why=pod.maybe_text("why"),
        requested_ms=pod.maybe_number("requested_ms"),
        accepted_ms=pod.maybe_number("accepted_ms"),
        gone_ms=pod.maybe_number("gone_ms"),
    )


def _hook(hook: _Fields) -> Hook:
    return Hook(
        group=hook.text("group"),
        name=hook.text("name"),
        state=hook.text("state"),
        result=hook.maybe_text("result"),
        heartbeats_ms=tuple(hook.numbers("heartbeats_ms")),
    )


class _Fields:
    """The fields of one JSON object, which knows where in the receipt it stands."""

    def __init__(self, document: Any, place: str) -> None:
        if not isinstance(document, dict):
            raise NotAReceipt(f"not a receipt: {place} is {document!r:.60}, not an object")
        self._document = document
        self._place = place

    def text(self, name: str) -> str:
        return self._needed(name, self.maybe_text(name))

    def maybe_text(self, name: str) -> str | None:
        return self._of_type(name, str, "a text")

    def number(self, name: str) -> int:
        return self._needed(name, self.maybe_number(name))

    def maybe_number(self, name: str) -> int | None:
        value = self._of_type(name, int, "a whole number")
        if value is not None and (isinstance(value, bool) or abs(value) > MOST_MS):
            raise self._wrong(name, "a whole number that can be drawn")
        return value

    def time(self, name: str) -> datetime:
        return self._needed(name, self.maybe_time(name))

    def maybe_time(self, name: str) -> datetime | None:
        text = self.maybe_text(name)
        if text is None:
            return None
        parts = re.fullmatch(r"(2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z", text)
        try:
            # Nanoseconds are more than a datetime can hold.
            micros = int(((parts[2] or "") + "000000")[:6])
            return datetime.strptime(parts[1], "%Y-%m-%dT%H:%M:%S").replace(microsecond=micros, tzinfo=timezone.utc)
        except (TypeError, ValueError):
            raise self._wrong(name, "a time such as 2026-11-21T03:12:00Z") from None

    def fate(self, name: str) -> Fate:
        word = self.text(name)
        for fate in Fate:
            if fate.value == word:
                return fate
        raise self._wrong(name, f"one of {listed([fate.value for fate in Fate])}")

    def numbers(self, name: str) -> list[int]:
        values = self._of_type(name, list, "a list") or []
        return [_Fields({name: value}, self._place).number(name) for value in values]

    def counts(self, name: str) -> dict[str, int]:
        inner = self.maybe_fields(name)
        return {} if inner is None else {key: inner.number(key) for key in inner._document}

    def fields(self, name: str) -> _Fields:
        return self._needed(name, self.maybe_fields(name))

    def maybe_fields(self, name: str) -> _Fields | None:
        value = self._document.get(name)
        return None if value is None else _Fields(value, self._at(name))

    def each(self, name: str) -> list[_Fields]:
        values = self._of_type(name, list, "a list") or []
        return [_Fields(value, f"{self._at(name)}[{index}]") for index, value in enumerate(values)]

    def _at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def _of_type(self, name: str, kind: type, words: str) -> Any:
        value = self._document.get(name)
        if value is not None and not isinstance(value, kind):
            raise self._wrong(name, words)
        return value

    def _needed(self, name: str, value: Any) -> Any:
        if value is None:
            raise NotAReceipt(f"not a receipt: `{self._at(name)}` is missing")
        return value

    def _wrong(self, name: str, wanted: str) -> NotAReceipt:
        return NotAReceipt(f"not a receipt: `{self._at(name)}` is {self._document[name]!r:.60}, not {wanted}")
