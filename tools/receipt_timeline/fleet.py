"""Many drains as one: a row for each node, by cluster and zone, on one axis. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeVar

from .drain import Drain
from .groups import MANY, SLOWEST
from .receipt import UNTOUCHED, Fate, Pod
from .scale import Scale, padded

T = TypeVar("T")
# The worst first; every other ending is a good one.
WORST = ("failed", "continued")
# Drains that lie further apart than so many times the longest of them are drawn from each one's own begin.
FAR_APART = 10


@dataclass(frozen=True, eq=False)
class Node:
    """A node, or an instance that is none, with all that became of its notices, the first of them first."""

    drains: tuple[Drain, ...]

    @cached_property
    def main(self) -> Drain:
        """The drain that the node's row stands for: the worst one, of several equal ones the longest."""
        return max(self.drains, key=lambda drain: (-_rank(drain.ending), drain.over_ms))

    @property
    def name(self) -> str:
        return _first(drain.node for drain in self.drains) or self.main.instance or "no instance"

    @property
    def place(self) -> tuple[str, str]:
        cluster = _first(drain.cluster for drain in self.drains)
        return (cluster, _first(drain.zone for drain in self.drains) or "") if cluster else ("", "")

    @property
    def ending(self) -> str:
        return self.main.ending

    @property
    def is_well(self) -> bool:
        return self.ending not in WORST

    @cached_property
    def leaving(self) -> list[Pod]:
        """The pods that had to leave, as the last drain that names them says."""
        pods = {pod.uid: pod for drain in self.drains for pod in drain.pods}
        return [pod for pod in pods.values() if pod.fate not in UNTOUCHED]

    @property
    def lost(self) -> int:
        return sum(pod.fate is Fate.LOST for pod in self.leaving)

    @property
    def cordoned_ms(self) -> int | None:
        return next((at for at in (drain.step_ms("claimed") for drain in self.drains) if at is not None), None)


@dataclass(frozen=True)
class Zone:
    cluster: str
    zone: str
    # In the order in which they are read.
    nodes: list[Node]

    @property
    def shown(self) -> list[Node]:
        well = sorted((node for node in self.nodes if node.is_well), key=lambda node: -node.main.over_ms)
        slowest = well[:SLOWEST] if len(well) > MANY else well
        in_sight = set(slowest)
        return [node for node in self.nodes if not node.is_well or node in in_sight]

    @property
    def folded(self) -> list[Node]:
        shown = set(self.shown)
        return [node for node in self.nodes if node not in shown]


@dataclass(frozen=True)
class Fleet:
    """All nodes, and the begin of their axis; None if each row begins with its own notice."""

    zones: list[Zone]
    time: datetime | None

    @property
    def nodes(self) -> list[Node]:
        return [node for zone in self.zones for node in zone.nodes]

    @property
    def zero(self) -> str:
        return "the first notice" if self.time else "each node's notice"

    def offset_ms(self, node: Node, drain: Drain) -> int:
        zero = self.time or _first(each.time for each in node.drains)
        return (drain.time - zero) // timedelta(milliseconds=1) if drain.time and zero else 0

    def scale(self) -> Scale:
        moments = [
            at + self.offset_ms(node, drain)
            for node in self.nodes
            for drain in node.drains
            for at in (0, drain.over_ms, *(each.from_ms for each in drain.invocations))
        ]
        return padded(min(moments), max(moments))


def fleet_of(drains: list[Drain]) -> Fleet:
    by_instance: dict[str, list[Drain]] = {}
    for drain in drains:
        by_instance.setdefault(drain.instance or drain.request_ids[0], []).append(drain)
    by_place: dict[tuple[str, str], list[Node]] = {}
    for of_one in by_instance.values():
        node = Node(tuple(of_one))
        by_place.setdefault(node.place, []).append(node)
    # What is no node of a cluster comes last.
    places = sorted(by_place, key=lambda place: (place[0] == "", place))
    zones = [Zone(*place, sorted(by_place[place], key=_worst_first)) for place in places]
    return Fleet(zones, _common_zero([node for zone in zones for node in zone.nodes]))


def blocked(drain: Drain) -> list[tuple[int, int]]:
    """The stretches in which a budget blocked at least one pod."""
    stretches: list[tuple[int, int]] = []
    for begun, ended in sorted(_blocked(pod, drain) for pod in drain.leaving if pod.refusals and pod.requested_ms is not None):
        if stretches and begun <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(ended, stretches[-1][1]))
        else:
            stretches.append((begun, ended))
    return stretches


def blockers(node: Node) -> list[str]:
    """The budgets that blocked its pods, the one of most pods first."""
    counts = Counter(pod.blocked_by for pod in node.leaving if pod.blocked_by and pod.refusals)
    return [name for name, _ in counts.most_common()]


def _blocked(pod: Pod, drain: Drain) -> tuple[int, int]:
    ends = (at for at in (pod.accepted_ms, pod.gone_ms) if at is not None)
    return (pod.requested_ms or 0, min(ends, default=drain.over_ms))


def _common_zero(nodes: list[Node]) -> datetime | None:
    """The first notice, unless the drains lie far apart."""
    spans = [_span(node) for node in nodes if any(drain.time for drain in node.drains)]
    if not spans:
        return None
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    return first if last - first <= max(end - begin for begin, end in spans) * FAR_APART else None


def _span(node: Node) -> tuple[datetime, datetime]:
    timed = [(drain.time, drain.over_ms) for drain in node.drains if drain.time]
    return min(time for time, _ in timed), max(time + timedelta(milliseconds=over_ms) for time, over_ms in timed)


def _worst_first(node: Node) -> tuple[int, int, float]:
    time = node.main.time
    return (_rank(node.ending), -node.lost, time.timestamp() if time else 0)


def _rank(ending: str) -> int:
    return WORST.index(ending) if ending in WORST else len(WORST) + (ending == "ignored")


def _first(values: Iterator[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)
