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

from .receipt import UNTOUCHED, Fate, Hook, Pod, Receipt, Step, Window

T = TypeVar("T")
# Fields that the last receipt decides, and those of the last receipt that has them.
OF_THE_LAST = ("time", "event_id", "kind", "instance", "dry_run", "ending", "reason", "error")
OF_ANY = ("zone", "instance_type", "group", "cluster", "node", "managed_by", "decision", "window")
# The receipt has no more heartbeats than these of one invocation.
MOST_HEARTBEATS = 50
# A drain that begins so long after its notice has a clock of its own.
LONG_BEFORE_MS = 3_600_000
# The decision of an invocation that left the work to a schedule.
POSTPONED = "postpone"


@dataclass(frozen=True)
class Invocation:
    request_id: str
    from_ms: int
    to_ms: int
    # None if its own receipt is not there, but only what a later one says of it.
    ending: str | None
    steps: tuple[Step, ...]
    pods: dict[str, int]


@dataclass(frozen=True)
class Drain:
    # When the notice came, and from when times count: the same, unless the notice came long before the drain.
    noticed: datetime | None

    receipts: tuple[Receipt, ...]
    invocations: tuple[Invocation, ...]
    pods: tuple[Pod, ...]
    hook: Hook | None
    time: datetime | None
    event_id: str | None
    kind: str | None
    instance: str | None
    zone: str | None
    instance_type: str | None
    group: str | None
    cluster: str | None
    node: str | None
    managed_by: str | None
    decision: str | None
    dry_run: bool
    ending: str
    reason: str
    # Stable type of the error, if the drain failed.
    error: str | None
    # When the instance goes, whatever is done.
    deadline_ms: int | None
    window: Window | None

    def step_ms(self, name: str) -> int | None:
        return next((at for at in (receipt.step_ms(name) for receipt in self.receipts) if at is not None), None)

    @property
    def announced_ms(self) -> int:
        """Time from the notice to the begin of the drain; 0 if times count from the notice."""
        return (self.time - self.noticed) // timedelta(milliseconds=1) if self.time and self.noticed else 0

    @property
    def zero(self) -> str:
        return "the start of the drain" if self.announced_ms else "the notice"

    @property
    def drained_ms(self) -> int | None:
        return self.receipts[-1].step_ms("drained")

    @property
    def over_ms(self) -> int:
        """Moment after which every remaining pod was lost."""
        return self.drained_ms if self.drained_ms is not None else self.invocations[-1].to_ms

    @property
    def limit_ms(self) -> int | None:
        """End of the instance; with a hook, the end of its longest wait."""
        return self.deadline_ms if self.deadline_ms is not None else self.window and self.window.deadline_ms

    @property
    def window_ms(self) -> int | None:
        """End of the time that there was: the limit, else the last invocation's end."""
        return self.limit_ms if self.limit_ms is not None else self.window and self.window.end_ms

    @property
    def missing(self) -> str | None:
        """Lines of its receipts that are not in the file, in words."""
        cut = [receipt.lines for receipt in self.receipts if receipt.lines]
        found, of = sum(one.found for one in cut), sum(one.of for one in cut)
        return f"{found} of {of} lines of the receipt: pods are missing" if cut else None

    @property
    def leaving(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.fate not in UNTOUCHED]

    def names(self) -> set[str]:
        own = {self.instance, self.node, self.event_id} | {pod.name for pod in self.pods}
        return {name for name in own if name} | set(self.request_ids)

    @property
    def request_ids(self) -> list[str]:
        return list(dict.fromkeys(each.request_id for each in (*self.receipts, *self.invocations)))


def drains_of(receipts: list[Receipt]) -> list[Drain]:
    by_notice: dict[tuple[str, str], list[Receipt]] = {}
    for receipt in receipts:
        key = (receipt.event_id or receipt.request_id, receipt.instance or "")
        by_notice.setdefault(key, []).append(receipt)
    drains = [_drain(of_one) for of_one in by_notice.values()]
    return sorted(drains, key=lambda drain: drain.time.timestamp() if drain.time else 0)


def _drain(receipts: list[Receipt]) -> Drain:
    noticed = receipts[0].time
    receipts = _by_its_clock(sorted(receipts, key=lambda receipt: _span(receipt)))
    last = receipts[-1]
    return Drain(
        noticed=noticed,
        receipts=tuple(receipts),
        invocations=_invocations(receipts, is_announced=last.time != noticed),
        pods=_pods(receipts),
        hook=_hook(receipts),
        deadline_ms=None if last.deadline is None else last.ms(last.deadline),
        **{name: getattr(last, name) for name in OF_THE_LAST},
        **{name: _latest([getattr(receipt, name) for receipt in receipts]) for name in OF_ANY},
    )


def _by_its_clock(receipts: list[Receipt]) -> list[Receipt]:
    """The receipts with their times from the drain's begin, if it began long after the notice."""
    begins = [_span(receipt)[0] for receipt in receipts if receipt.decision != POSTPONED]
    begins += [receipt.ms(entry.begun) for receipt in receipts for entry in receipt.earlier if entry.pods]
    begun_ms = min(begins, default=0)
    return receipts if begun_ms < LONG_BEFORE_MS else [_moved(receipt, begun_ms) for receipt in receipts]


def _moved(receipt: Receipt, by_ms: int) -> Receipt:
    """A receipt whose times count from so long after its notice."""

    def moved(one: T) -> T:
        times = {each.name: getattr(one, each.name) for each in fields(one) if each.name.endswith("_ms")}  # type: ignore[arg-type]
        return replace(one, **{name: at - by_ms for name, at in times.items() if at is not None})  # type: ignore[type-var]

    return replace(
        receipt,
        time=receipt.time and receipt.time + timedelta(milliseconds=by_ms),
        steps=tuple(map(moved, receipt.steps)),
        window=receipt.window and moved(receipt.window),
        hook=receipt.hook and replace(receipt.hook, heartbeats_ms=tuple(at - by_ms for at in receipt.hook.heartbeats_ms)),
        pods=tuple(map(moved, receipt.pods)),
    )


def _span(receipt: Receipt) -> tuple[int, int]:
    times = [step.at_ms for step in receipt.steps]
    if receipt.time and receipt.written:
        times.append(receipt.ms(receipt.written))
    return (min(times), max(times)) if times else (0, 0)


def _invocations(receipts: list[Receipt], is_announced: bool) -> tuple[Invocation, ...]:
    known = {receipt.request_id for receipt in receipts}
    all_of_them = [
        Invocation(
            receipt.request_id, *_span(receipt), ending=receipt.ending, steps=receipt.steps, pods=Counter(pod.fate.value for pod in receipt.pods)
        )
        for receipt in receipts
    ]
    for earlier in {entry.request_id: entry for receipt in receipts for entry in receipt.earlier}.values():
        if earlier.request_id not in known:
            begun, ended = receipts[-1].ms(earlier.begun), receipts[-1].ms(earlier.ended)
            all_of_them.append(Invocation(earlier.request_id, begun, ended, None, (), earlier.pods))
    worked = [each for each in all_of_them if each.to_ms >= 0 or not is_announced]
    return tuple(sorted(worked, key=lambda invocation: (invocation.from_ms, invocation.to_ms)))


def _pods(receipts: list[Receipt]) -> tuple[Pod, ...]:
    seen: dict[str, Pod] = {}
    for receipt in receipts:
        here = {pod.uid: pod for pod in receipt.pods}
        # An invocation that came as far as the pods says of one that is not among them that it has gone.
        if here or receipt.step_ms("drained") is not None:
            for uid, pod in seen.items():
                if uid not in here and pod.fate in (Fate.REMAINING, Fate.LOST):
                    seen[uid] = _gone_before(pod, _span(receipt)[0])
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


def _hook(receipts: list[Receipt]) -> Hook | None:
    hook = _latest([receipt.hook for receipt in receipts])
    heartbeats = sorted(at for receipt in receipts if receipt.hook for at in receipt.hook.heartbeats_ms)
    return hook and replace(hook, heartbeats_ms=tuple(heartbeats))


def _latest(values: list[T | None]) -> T | None:
    return next((value for value in reversed(values) if value is not None), None)
