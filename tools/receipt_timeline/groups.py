"""Which pods the reader sees first: what was lost, then what was forced, then what was slow. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Union

from .drain import Drain
from .receipt import Fate, Pod

# So many rows can be read; of more, those that say nothing new are folded.
MANY = 20
# Of a folded group, so many of the last to go are shown.
SLOWEST = 5
# More pods than these that one budget blocked share a row.
ALIKE = 5


@dataclass(frozen=True)
class Queue:
    """Pods of a group that one budget blocked, so that they left one after the other."""

    budget: str
    pods: list[Pod]

    def as_one(self) -> Pod:
        last = max(self.pods, key=lambda pod: (pod.accepted_ms is None, pod.accepted_ms or 0))
        requested = [pod.requested_ms for pod in self.pods if pod.requested_ms is not None]
        gone = [pod.gone_ms for pod in self.pods if pod.gone_ms is not None]
        return replace(
            last, name=f"{len(self.pods)} pods", requested_ms=min(requested, default=None), gone_ms=max(gone) if len(gone) == len(self.pods) else None
        )


Row = Union[Pod, Queue]


@dataclass(frozen=True)
class Group:
    name: str
    meaning: str
    pods: list[Pod]
    is_folded: bool = False

    def rows(self) -> list[Row]:
        """Pods; many that one budget blocked share a row."""
        queues: dict[str, list[Pod]] = {}
        for pod in self.pods:
            if pod.blocked_by and pod.refusals and not self.is_folded:
                queues.setdefault(_budget(pod), []).append(pod)
        long = {budget: pods for budget, pods in queues.items() if len(pods) > ALIKE}
        rows: dict[str, Row] = {}
        for pod in self.pods:
            budget = _budget(pod)
            of_one = pod.refusals and long.get(budget)
            rows.setdefault(f"queue {budget}" if of_one else pod.uid, Queue(budget, of_one) if of_one else pod)
        return list(rows.values())


def groups(drain: Drain) -> list[Group]:
    of = {fate: [pod for pod in drain.pods if pod.fate is fate] for fate in Fate}
    clean = sorted(of[Fate.CLEAN], key=_slowest_first)
    slow = _slow(clean) if len(clean) > MANY else []
    others = [pod for pod in clean if pod not in slow]
    stayed, returned, blocked, free = (_by_name(of[fate]) for fate in (Fate.STAYED, Fate.RETURNED, Fate.WOULD_BE_BLOCKED, Fate.WOULD_LEAVE))
    all_of_them = [
        Group("Would be blocked", "in a dry run: the API server would refuse the eviction", blocked),
        Group("Would leave", "in a dry run: the API server would accept the eviction", free, is_folded=len(free) > MANY),
        Group("Lost", "still there at the end: lost with the instance, unless it is retried", of[Fate.LOST]),
        Group("Unconfirmed", "evicted; its node fell silent, so the end is not known", of[Fate.UNCONFIRMED]),
        Group("Remaining", "still there; a later invocation continues the drain", of[Fate.REMAINING]),
        Group("Forced", "blocked near the end, so deleted in time to shut down", of[Fate.FORCED]),
        Group("Clamped", "gone, with less than the grace period asked for", of[Fate.CLAMPED]),
        Group("Clean, but blocked or last to go", "gone, with the full grace period", slow),
        Group("Clean", "gone, with the full grace period", others, is_folded=len(others) > MANY),
        Group("Returned", "tolerates the cordon and came after it", returned, is_folded=len(returned) > MANY),
        Group("Stayed", "left alone", stayed, is_folded=len(stayed) > MANY),
    ]
    return [group for group in all_of_them if group.pods]


def _slow(clean: list[Pod]) -> list[Pod]:
    return [pod for place, pod in enumerate(clean) if place < SLOWEST or pod.refusals]


def _budget(pod: Pod) -> str:
    """A budget is known by its name and its namespace, which is its pods'."""
    namespace = pod.name.rpartition("/")[0]
    return f"{namespace}/{pod.blocked_by}" if namespace else str(pod.blocked_by)


def _by_name(pods: list[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: pod.name)


def _slowest_first(pod: Pod) -> tuple[int, str]:
    return (-(pod.gone_ms or 0), pod.name)
