"""One drain from the receipts of its invocations. Pure.

A drain that was handed on, or tried again, has a receipt for each invocation. What they say of one pod is made one:
the last of them says how it ended, the first when it was asked.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from .receipt import UNTOUCHED, Fate, Hook, Pod, Receipt, Step, Window

T = TypeVar("T")
# The receipt has no more heartbeats than these of one invocation.
MOST_HEARTBEATS = 50


@dataclass(frozen=True)
class Invocation:
    """One invocation of the function for the drain."""

    request_id: str
    from_ms: int
    to_ms: int
    # None if its own receipt is not there, but only what a later one says of it.
    ending: str | None
    steps: tuple[Step, ...]
    pods: dict[str, int]


@dataclass(frozen=True)
class Drain:
    """What became of one notice for one instance."""

    receipts: tuple[Receipt, ...]
    invocations: tuple[Invocation, ...]
    pods: tuple[Pod, ...]
    hook: Hook | None
    time: datetime | None
    event_id: str | None
    kind: str | None
    instance: str | None
    cluster: str | None
    node: str | None
    managed_by: str | None
    decision: str | None
    dry_run: bool
    ending: str
    reason: str
    # When the instance goes, whatever is done.
    deadline_ms: int | None
    window: Window | None

    def step_ms(self, name: str) -> int | None:
        """When a step was done for the first time."""
        return next((at for at in (receipt.step_ms(name) for receipt in self.receipts) if at is not None), None)

    @property
    def drained_ms(self) -> int | None:
        """When the drain was over: the last invocation says it."""
        return self.receipts[-1].step_ms("drained")

    @property
    def over_ms(self) -> int:
        """When what had not gone by then was lost."""
        return self.drained_ms if self.drained_ms is not None else self.invocations[-1].to_ms

    @property
    def limit_ms(self) -> int | None:
        """When the instance goes; with a hook, when its longest wait is over, if blocked pods are deleted before that."""
        return self.deadline_ms if self.deadline_ms is not None else self.window and self.window.deadline_ms

    @property
    def window_ms(self) -> int | None:
        """Until when there was time: the limit, or while something waits for us, the last invocation's end."""
        return self.limit_ms if self.limit_ms is not None else self.window and self.window.end_ms

    @property
    def leaving(self) -> list[Pod]:
        """The pods that had to leave."""
        return [pod for pod in self.pods if pod.fate not in UNTOUCHED]

    def names(self) -> set[str]:
        """All it can be asked for by."""
        own = {self.instance, self.node, self.event_id} | {pod.name for pod in self.pods}
        return {name for name in own if name} | {invocation.request_id for invocation in self.invocations}


def drains_of(receipts: list[Receipt]) -> list[Drain]:
    """The drains that these receipts are of, the first notice first."""
    by_notice: dict[tuple[str, str], list[Receipt]] = {}
    for receipt in receipts:
        key = (receipt.event_id or receipt.request_id, receipt.instance or "")
        by_notice.setdefault(key, []).append(receipt)
    drains = [_drain(of_one) for of_one in by_notice.values()]
    return sorted(drains, key=lambda drain: drain.time.timestamp() if drain.time else 0)


def _drain(receipts: list[Receipt]) -> Drain:
    receipts = sorted(receipts, key=lambda receipt: _span(receipt))
    last = receipts[-1]
    deadline = last.deadline
    return Drain(
        receipts=tuple(receipts),
        invocations=_invocations(receipts),
        pods=_pods(receipts),
        hook=_hook(receipts),
        time=last.time,
        event_id=last.event_id,
        kind=last.kind,
        instance=last.instance,
        cluster=_latest([receipt.cluster for receipt in receipts]),
        node=_latest([receipt.node for receipt in receipts]),
        managed_by=_latest([receipt.managed_by for receipt in receipts]),
        decision=_latest([receipt.decision for receipt in receipts]),
        dry_run=last.dry_run,
        ending=last.ending,
        reason=last.reason,
        deadline_ms=None if deadline is None else last.since_notice(deadline),
        window=_latest([receipt.window for receipt in receipts]),
    )


def _span(receipt: Receipt) -> tuple[int, int]:
    """From when until when an invocation worked."""
    times = [step.at_ms for step in receipt.steps]
    if receipt.time and receipt.written:
        times.append(receipt.since_notice(receipt.written))
    return (min(times), max(times)) if times else (0, 0)


def _invocations(receipts: list[Receipt]) -> tuple[Invocation, ...]:
    known = {receipt.request_id for receipt in receipts}
    all_of_them = [
        Invocation(
            receipt.request_id,
            *_span(receipt),
            ending=receipt.ending,
            steps=receipt.steps,
            pods=Counter(pod.fate.value for pod in receipt.pods),
        )
        for receipt in receipts
    ]
    for earlier in {entry.request_id: entry for receipt in receipts for entry in receipt.earlier}.values():
        if earlier.request_id not in known:
            begun, ended = receipts[-1].since_notice(earlier.begun), receipts[-1].since_notice(earlier.ended)
            all_of_them.append(Invocation(earlier.request_id, begun, ended, None, (), earlier.pods))
    return tuple(sorted(all_of_them, key=lambda invocation: (invocation.from_ms, invocation.to_ms)))


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
    """One pod, as two invocations saw it."""
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
    """The last one that there is."""
    return next((value for value in reversed(values) if value is not None), None)
