"""The page of a fleet: what it came to, and a row for each node, which opens into its own picture."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, count
from xml.etree.ElementTree import Element

from cli import counted

from . import lanes
from .bars import line, mark, picture, span, upright
from .drain import Drain
from .fleet import WORST, Fleet, Node, Zone, blocked, blockers, fleet_of
from .marks import symbol
from .markup import append, element
from .page import about, picture_of
from .scale import Scale
from .sheet import badge, legend, shape_of, sheet
from .words import day_and_clock, duration, listed, moment


def fleet_page(drains: list[Drain]) -> str:
    fleet = fleet_of(drains)
    title = counted(len(fleet.nodes), "node")
    main = element("main", _counts(fleet), _legend(), _Chart(fleet).whole())
    return sheet(f"{title}: {_endings_in_words(fleet.nodes)}", _header(fleet, title), main)


def _header(fleet: Fleet, title: str) -> Element:
    facts = element("dl")
    for name, value in _facts(fleet):
        append(facts, element("div", element("dt", name), element("dd", value)))
    reason = element("p", _sentence(fleet.nodes), class_="reason")
    return element("header", element("h1", element("span", title, class_="subject")), reason, facts)


def _sentence(nodes: list[Node]) -> str:
    failed, lost = sum(node.ending == "failed" for node in nodes), sum(node.lost for node in nodes)
    drains = f"{failed} of {counted(len(nodes), 'drain')} failed" if failed else "No drain failed"
    return f"{drains}; {counted(lost, 'pod') if lost else 'no pod'} {'were' if lost > 1 else 'was'} lost."


def _facts(fleet: Fleet) -> list[tuple[str, str]]:
    nodes = fleet.nodes
    times = sorted(drain.noticed for node in nodes for drain in node.drains if drain.noticed)
    cordoned = [node for node in nodes if node.cordoned_ms is not None]
    clusters = [place for place in dict.fromkeys(zone.cluster for zone in fleet.zones) if place]
    fates = Counter(pod.fate.value for node in nodes for pod in node.leaving)
    facts = [("Clusters", _few(clusters))]
    if times:
        facts += [("First notice", day_and_clock(times[0])), ("Last notice", day_and_clock(times[-1]))]
    if cordoned:
        slowest = max(cordoned, key=lambda node: node.cordoned_ms or 0)
        longest = f"{duration(slowest.cordoned_ms or 0)}, {slowest.name}"
        facts += [("Cordoned", f"{len(cordoned)} of {len(nodes)}"), ("Longest from notice to cordon", longest)]
    facts.append(("Pods that had to leave", ", ".join(f"{number} {fate}" for fate, number in fates.most_common())))
    return [(name, value) for name, value in facts if value]


def _few(names: list[str], most: int = 3) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return listed([*names[:most], *more]) if names else ""


def _endings(nodes: list[Node]) -> list[tuple[str, int]]:
    counts = Counter(node.ending for node in nodes)
    return sorted(counts.items(), key=lambda entry: (entry[0] not in WORST, -entry[1]))


def _endings_in_words(nodes: list[Node]) -> str:
    return ", ".join(f"{number} {ending}" for ending, number in _endings(nodes))


def _counts(fleet: Fleet) -> Element:
    counts = element("nav", class_="counts")
    for ending, number in _endings(fleet.nodes):
        append(counts, element("span", symbol(shape_of(ending)), f"{number} {ending}", class_=shape_of(ending)))
    return counts


def _legend() -> Element:
    example = Scale(0, 100)
    keys = [
        (line(example, 5, 95, "waiting"), "from the notice to the cordon"),
        (upright(example, 50, "cordoned", 3, 15), "node cordoned"),
        (span(example, 5, 95, "asked", y=3, height=12), "pods being evicted"),
        (span(example, 5, 95, "blocked", y=3, height=12), "a budget (PDB) blocks some of them"),
        (span(example, 5, 95, "leaving done", y=7, height=4), "until the end, in the colour of the ending"),
        (upright(example, 50, "limit"), "the instance goes"),
    ]
    return legend([(True, picture(drawn, class_="key"), meaning) for drawn, meaning in keys])


class _Chart:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._scale = fleet.scale()
        self._numbers = count(1)

    def whole(self) -> Element:
        chart = element("div", self._ticks(), lanes.axis(self._scale, self._fleet.zero, self._fleet.time), class_="chart")
        for lane in self._over_time():
            append(chart, lane)
        for zone in self._fleet.zones:
            append(chart, self._zone(zone))
        return chart

    def _ticks(self) -> Element:
        return picture(*(upright(self._scale, at, "tick") for at in self._scale.ticks()), class_="lines")

    def _over_time(self) -> list[Element]:
        """Curves of nodes without a cordon, nodes being drained, and pods still there."""
        waiting: list[tuple[int, int]] = []
        draining: list[tuple[int, int]] = []
        pods: list[tuple[int, int]] = []
        for node in self._fleet.nodes:
            for drain in node.drains:
                claimed, at = drain.step_ms("claimed"), self._fleet.offset_ms(node, drain)
                if claimed is None:
                    continue
                waiting += [(at, 1), (at + claimed, -1)]
                draining += [(at + claimed, 1), (at + drain.over_ms, -1)]
                pods += [(at + claimed, len(drain.leaving))]
                pods += [(at + pod.gone_ms, -1) for pod in drain.leaving if pod.gone_ms is not None]
        if not draining:
            return []
        lost = sum(node.lost for node in self._fleet.nodes)
        last_cordon, last_end = max(at for at, _ in waiting), max(at for at, _ in draining)
        return [
            self._curve("Nodes not yet cordoned", waiting, last_end, f"the last one cordoned at {moment(last_cordon)}"),
            self._curve("Nodes being drained", draining, last_end, f"the last one over at {moment(last_end)}"),
            self._curve("Pods still there", pods, last_end, f"{lost or 'none'} lost"),
        ]

    def _curve(self, name: str, changes: list[tuple[int, int]], ended_ms: int, said: str) -> Element:
        most = max(accumulate(change for _, change in sorted(changes)))
        return lanes.lane(name, lanes.curve(changes, ended_ms, self._scale), f"at most {most} at once; {said}")

    def _zone(self, zone: Zone) -> Element:
        name = " · ".join(filter(None, [zone.cluster, zone.zone])) or "No node of a cluster"
        lost = sum(node.lost for node in zone.nodes)
        words = f" {counted(len(zone.nodes), 'node')}: {_endings_in_words(zone.nodes)}"
        words += f", {counted(lost, 'pod')} lost" if lost else ""
        heading = element("h2", element("strong", name), element("span", words))
        section = element("section", heading, *(self._node(node) for node in zone.shown), class_="group")
        if zone.folded:
            rest = f"{len(zone.folded)} more: {_endings_in_words(zone.folded)}"
            summary = element("summary", element("span", rest))
            append(section, element("details", summary, *(self._node(node) for node in zone.folded), class_="rest"))
        return section

    def _node(self, node: Node) -> Element:
        ending = element("span", node.ending, class_=f"fate {shape_of(node.ending)}")
        named = element("div", element("span", node.name, class_="pod"), " ", ending, class_="name")
        drawn = picture(*(part for drain in node.drains for part in self._drawn(node, drain)))
        summary = element("summary", named, drawn, lanes.note(_story(node)), class_="row")
        return element("details", summary, *(self._opened(drain) for drain in node.drains), class_="node")

    def _drawn(self, node: Node, drain: Drain) -> list[Element]:
        if drain.time is None:
            return []
        scale, shape = self._scale.moved(self._fleet.offset_ms(node, drain)), shape_of(drain.ending)
        claimed, over = drain.step_ms("claimed"), drain.over_ms
        drawn = [line(scale, 0, over if claimed is None else claimed, "waiting")]
        if drain.limit_ms is not None and scale.shows(drain.limit_ms):
            drawn.append(upright(scale, drain.limit_ms, "limit", 2, 16))
        if claimed is not None:
            evicted = [at for pod in drain.leaving for at in (pod.requested_ms, pod.accepted_ms) if at is not None]
            if evicted:
                drawn.append(span(scale, min(evicted), max(evicted), "asked", y=3, height=12))
            drawn += [span(scale, begun, ended, "blocked", y=3, height=12) for begun, ended in blocked(drain)]
            drawn.append(span(scale, claimed, over, f"leaving {shape}", y=7, height=4))
            drawn.append(upright(scale, claimed, "cordoned", 3, 15))
        return [*drawn, mark(scale, over, shape)]

    def _opened(self, drain: Drain) -> Element:
        heading = element("h3", badge(drain.ending), " ", drain.kind or "a notice that could not be read")
        return element("article", heading, *about(drain), *picture_of(drain, f"{next(self._numbers)}-"))


def _story(node: Node) -> str:
    main = node.main
    parts = [drain.missing for drain in node.drains if drain.missing]
    if len(node.drains) > 1:
        parts.append(", then ".join(f"{drain.kind}: {drain.ending}" for drain in node.drains))
    elif main.noticed:
        parts.append(f"{main.kind} at {day_and_clock(main.noticed)}")
    if node.cordoned_ms is not None:
        parts.append(f"cordoned after {duration(node.cordoned_ms)}")
    fates = Counter(pod.fate.value for pod in node.leaving)
    if fates:
        parts.append("pods: " + ", ".join(f"{number} {fate}" for fate, number in fates.most_common()))
    names = blockers(node)
    if names:
        blocked_ms = sum(ended - begun for drain in node.drains for begun, ended in blocked(drain))
        parts.append(f"blocked {duration(blocked_ms)} by {_few([f'budget {name}' for name in names])}")
    if main.step_ms("claimed") is not None:
        parts.append(f"{main.ending} after {duration(main.over_ms)}")
    elif main.reason:
        parts.append(main.reason)
    return " · ".join(parts)
