"""One drain from the receipts of its invocations. Pure.

A drain that was handed on, or tried again, has a receipt for each invocation. What they say of one pod is made one:
the last of them says how it ended, the first when it was asked.

Times are milliseconds from the notice. Maintenance is announced weeks before it is worked on; they count from the
begin of the work then.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import TypeVar

from .receipt import Fate, Pod, Receipt

T = TypeVar("T")
# A drain that begins so long after its notice has a clock of its own.
LONG_BEFORE_MS = 3_600_000
# The decision of an invocation that left the work to a schedule.
POSTPONED = "postpone"


@dataclass(frozen=True)
class Drain(Receipt):
    """The receipts of a drain as one: fields of the last receipt that has them, steps and pods of all."""

    receipts: tuple[Receipt, ...] = ()
    # When the notice came; later than `time` only if the notice came long before the drain.
    noticed: datetime | None = None

    @property
    def drained_ms(self) -> int | None:
        return self.receipts[-1].step_ms("drained")

    @property
    def over_ms(self) -> int:
        """Moment after which every remaining pod was lost."""
        return self.drained_ms if self.drained_ms is not None else self.receipts[-1].span[1]

    @property
    def missing(self) -> str | None:
        """Lines of its receipts that are not in the file, in words."""
        cut = [receipt.lines for receipt in self.receipts if receipt.lines]
        found, of = sum(one.found for one in cut), sum(one.of for one in cut)
        return f"{found} of {of} lines of the receipt: pods are missing" if cut else None

    def names(self) -> set[str]:
        own = {self.instance, self.node, self.event_id} | {pod.name for pod in self.pods}
        invocations = {one.request_id for receipt in self.receipts for one in (receipt, *receipt.earlier)}
        return {name for name in own if name} | invocations


def drains_of(receipts: list[Receipt]) -> list[Drain]:
    by_notice: dict[tuple[str, str], list[Receipt]] = {}
    for receipt in receipts:
        key = (receipt.event_id or receipt.request_id, receipt.instance or "")
        by_notice.setdefault(key, []).append(receipt)
    drains = [_drain(of_one) for of_one in by_notice.values()]
    return sorted(drains, key=lambda drain: drain.time.timestamp() if drain.time else 0)


def _drain(receipts: list[Receipt]) -> Drain:
    noticed = receipts[0].time
    receipts = _by_its_clock(sorted(receipts, key=lambda receipt: receipt.span))
    values = {one.name: _latest([getattr(receipt, one.name) for receipt in receipts]) for one in fields(Receipt)}
    steps = tuple(step for receipt in receipts for step in receipt.steps)
    values.update(error=receipts[-1].error, steps=steps, pods=_pods(receipts))
    return Drain(**values, receipts=tuple(receipts), noticed=noticed)


def _by_its_clock(receipts: list[Receipt]) -> list[Receipt]:
    """The receipts with their times from the drain's begin, if it began long after the notice."""
    begins = [receipt.span[0] for receipt in receipts if receipt.decision != POSTPONED]
    begins += [receipt.ms(entry.begun) for receipt in receipts for entry in receipt.earlier if entry.pods]
    begun_ms = min(begins, default=0)
    return receipts if begun_ms < LONG_BEFORE_MS else [_moved(receipt, begun_ms) for receipt in receipts]


def _moved(receipt: Receipt, by_ms: int) -> Receipt:
    """A receipt whose times count from so long after its notice."""

    def moved(one: T) -> T:
        times = {name: at for name, at in vars(one).items() if name.endswith("_ms") and at is not None}
        return replace(one, **{name: at - by_ms for name, at in times.items()})  # type: ignore[type-var]

    time = receipt.time and receipt.time + timedelta(milliseconds=by_ms)
    steps, pods = tuple(map(moved, receipt.steps)), tuple(map(moved, receipt.pods))
    return replace(moved(receipt), time=time, steps=steps, pods=pods)


def _pods(receipts: list[Receipt]) -> tuple[Pod, ...]:
    seen: dict[str, Pod] = {}
    for receipt in receipts:
        here = {pod.uid: pod for pod in receipt.pods}
        # An invocation that came as far as the pods says of one that is not among them that it has gone.
        if here or receipt.step_ms("drained") is not None:
            for uid, pod in seen.items():
                if uid not in here and pod.fate in (Fate.REMAINING, Fate.LOST):
                    seen[uid] = _gone_before(pod, receipt.span[0])
        for uid, pod in here.items():
            seen[uid] = _over_all(seen[uid], pod) if uid in seen else pod
    return tuple(seen.values())


def _gone_before(pod: Pod, begun_ms: int) -> Pod:
    """A pod that went while nobody looked, between two invocations."""
    gone = replace(pod, fate=Fate.CLEAN, gone_ms=begun_ms, why="it had gone when the next invocation began")
    return replace(gone, fate=_fate_over_all(gone))


def _over_all(before: Pod, after: Pod) -> Pod:
    whole = replace(
        after,
        evictions=before.evictions + after.evictions,
        answers=dict(Counter(before.answers) + Counter(after.answers)),
        given_s=_latest([before.given_s, after.given_s]),
        blocked_by=_latest([before.blocked_by, after.blocked_by]),
        why=after.why,
        requested_ms=_latest([after.requested_ms, before.requested_ms]),
        accepted_ms=_latest([before.accepted_ms, after.accepted_ms]),
    )
    return replace(whole, fate=_fate_over_all(whole))


def _fate_over_all(pod: Pod) -> Fate:
    """An invocation that only waits for a pod calls its end clean, whatever the one before had given it."""
    if pod.fate is not Fate.CLEAN:
        return pod.fate
    if "deleted" in pod.answers:
        return Fate.FORCED
    return Fate.CLEAN if pod.given_s is None else Fate.CLAMPED


def _latest(values: list[T | None]) -> T | None:
    return next((value for value in reversed(values) if value is not None), None)
