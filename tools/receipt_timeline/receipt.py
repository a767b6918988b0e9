"""One receipt, as docs/receipt.md has it, to plain data; or the reason why it is none.

Times are milliseconds from the notice (`drain` may move them). An absent field is None or empty.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from cli import Failed
from cli.times import parsed

from .words import listed

VERSION = 2
NEEDED = ("receipt", "notice", "steps", "ending", "reason")
# Thirty years: far more than any drain, and far less than what a date can hold.
MOST_MS = 10**12


class NotAReceipt(Failed):
    """Input that is no receipt, or none of a known version."""


class Fate(Enum):
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


def _named(key: str, default: Any = MISSING) -> Any:
    return field(default=default, metadata={"key": key})


@dataclass(frozen=True)
class Step:
    step: str
    at_ms: int


@dataclass(frozen=True)
class Pod:
    name: str = _named("pod")
    fate: Fate = field()
    uid: str = ""
    grace_s: int | None = None
    given_s: int | None = None
    evictions: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    blocked_by: str | None = None
    why: str | None = None
    requested_ms: int | None = None
    accepted_ms: int | None = None
    gone_ms: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "uid", self.uid or self.name)

    @property
    def refusals(self) -> int:
        return sum(count for answer, count in self.answers.items() if answer.startswith("blocked-by"))


@dataclass(frozen=True)
class Hook:
    name: str
    state: str
    result: str | None = None


@dataclass(frozen=True)
class Earlier:
    """An invocation before this one, in short."""

    request_id: str
    begun: datetime = _named("from")
    ended: datetime = _named("to")
    pods: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Lines:
    """Lines of a receipt that were found, of all."""

    found: int
    of: int


@dataclass(frozen=True)
class Receipt:
    version: int = _named("receipt")
    ending: str = field()
    reason: str = field()
    steps: tuple[Step, ...] = field()
    request_id: str = "unknown"
    event_id: str | None = _named("notice.event_id", None)
    kind: str | None = _named("notice.kind", None)
    time: datetime | None = _named("notice.time", None)
    deadline: datetime | None = _named("notice.deadline", None)
    written: datetime | None = _named("timestamp", None)
    instance: str | None = None
    zone: str | None = None
    group: str | None = _named("auto_scaling_group", None)
    cluster: str | None = None
    node: str | None = None
    decision: str | None = None
    dry_run: bool = False
    error: str | None = None
    # End of the longest wait of a hook, if the notice has no deadline.
    window_ms: int | None = _named("window.deadline_ms", None)
    pods: tuple[Pod, ...] = ()
    hook: Hook | None = None
    earlier: tuple[Earlier, ...] = ()
    # Present if some lines are missing.
    lines: Lines | None = None

    def ms(self, at: datetime) -> int:
        return 0 if self.time is None else (at - self.time) // timedelta(milliseconds=1)

    def step_ms(self, name: str) -> int | None:
        return next((step.at_ms for step in self.steps if step.step == name), None)

    @property
    def limit_ms(self) -> int | None:
        """End of the instance; with a hook, the end of its longest wait."""
        return self.window_ms if self.deadline is None else self.ms(self.deadline)

    @property
    def span(self) -> tuple[int, int]:
        times = [step.at_ms for step in self.steps] + ([self.ms(self.written)] if self.time and self.written else [])
        return (min(times), max(times)) if times else (0, 0)


CLASSES: dict[str, type] = {one.__name__: one for one in (Step, Pod, Hook, Earlier, Lines)}
# The types of single values, and their names in errors.
SCALARS = {"str": (str, "a text"), "int": (int, "a whole number"), "bool": (object, ""), "datetime": (str, "a text"), "Fate": (str, "a text")}


def read(document: dict[str, Any]) -> Receipt:
    missing = [name for name in NEEDED if name not in document]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise NotAReceipt(f"not a receipt: {listed([f'`{name}`' for name in missing])} {verb} missing")
    if (version := _value("int", document["receipt"], "receipt")) != VERSION:
        raise NotAReceipt(f"a receipt of version {version}; this program knows version {VERSION}")
    made: Receipt = _made(Receipt, document, "")
    return made


def _made(kind: type, document: Any, place: str) -> Any:
    """An object of a class from its JSON, field by field, as the class declares them."""
    if not isinstance(document, dict):
        raise NotAReceipt(f"not a receipt: {place} is {document!r:.60}, not an object")
    values = {}
    for one in fields(kind):
        key = one.metadata.get("key", one.name)
        value, at = document, f"{place}.{key}" if place else key
        for name in key.split("."):
            if not isinstance(value, dict):
                raise NotAReceipt(f"not a receipt: {at.rpartition('.')[0]} is {value!r:.60}, not an object")
            value = value.get(name)
            if value is None:
                break
        if value is not None:
            values[one.name] = _value(one.type.replace(" | None", ""), value, at)
        elif one.default is MISSING and one.default_factory is MISSING:
            raise NotAReceipt(f"not a receipt: `{at}` is missing")
    return kind(**values)


def _value(kind: str, value: Any, at: str) -> Any:
    if kind in CLASSES:
        return _made(CLASSES[kind], value, at)
    if kind == "dict[str, int]":
        if not isinstance(value, dict):
            raise NotAReceipt(f"not a receipt: {at} is {value!r:.60}, not an object")
        return {name: _value("int", one, f"{at}.{name}") for name, one in value.items()}
    if kind.startswith("tuple["):
        if not isinstance(value, list):
            raise _wrong(at, value, "a list")
        return tuple(_value(kind[6:].partition(",")[0], one, f"{at}[{n}]") for n, one in enumerate(value))
    of, words = SCALARS[kind]
    if not isinstance(value, of):
        raise _wrong(at, value, words)
    if kind == "int" and (isinstance(value, bool) or abs(value) > MOST_MS):
        raise _wrong(at, value, "a whole number that can be drawn")
    if kind == "Fate":
        if value not in [fate.value for fate in Fate]:
            raise _wrong(at, value, f"one of {listed([fate.value for fate in Fate])}")
        return Fate(value)
    if kind == "datetime" and parsed(value) is None:
        raise _wrong(at, value, "a time such as 2026-11-21T03:12:00Z")
    return parsed(value) if kind == "datetime" else value is True if kind == "bool" else value


def _wrong(at: str, value: Any, wanted: str) -> NotAReceipt:
    return NotAReceipt(f"not a receipt: `{at}` is {value!r:.60}, not {wanted}")
