"""The upper half of the dashboard of template.yaml, about as CloudWatch draws it, with the metrics of these receipts."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from receipt_timeline.markup import element

from . import drawing

TESTS = Path(__file__).parents[3] / "tests"
sys.path[:0] = [str(TESTS / "template"), str(TESTS / "bed/aws")]

from test_dashboard import dashboard as body_of_the_template  # noqa: E402

Json = dict[str, Any]
Values = list[float | None]
Line = tuple[str, str, Values]
HOURS, BIN = 7 * 24, 3
# What is below this row of its grid is cut off.
BOTTOM = 25
PALETTE = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"]
STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "p50": lambda values: sorted(values)[len(values) // 2],
    "p99": max,
    "p1": min,
}


def dashboard(receipts: list[Json], begin: datetime) -> str:
    week = _Week(receipts, begin)
    widgets = [widget for widget in body_of_the_template()["widgets"] if widget["y"] + widget["height"] <= BOTTOM]
    return drawing("dashboard", *(_widget(widget, week) for widget in widgets))


class _Week:
    """The metrics of receipts, by the dimensions with which crates/drainer/src/publish/metrics.rs emits them."""

    def __init__(self, receipts: list[Json], begin: datetime) -> None:
        self._values: dict[str, list[tuple[int, Json, float]]] = defaultdict(list)
        for receipt in receipts:
            noticed = datetime.fromisoformat(receipt["notice"]["time"].rstrip("Z"))
            bin = int((noticed - begin) / timedelta(hours=BIN))
            dimensions = {"Cluster": receipt["cluster"], "Notice": receipt["notice"]["kind"], "Ending": receipt["ending"]}
            for name, value in _metrics(receipt).items():
                self._values[name].append((bin, dimensions, value))

    def metric(self, name: str, stat: str, **wanted: str) -> Values:
        bins: dict[int, list[float]] = defaultdict(list)
        for bin, dimensions, value in self._values[name]:
            if wanted.items() <= dimensions.items():
                bins[bin].append(value)
        missing = 0 if stat == "Sum" else None
        return [STATISTICS[stat](bins[bin]) if bins[bin] else missing for bin in range(HOURS // BIN)]

    def dimensions(self, name: str) -> list[dict[str, str]]:
        return list({tuple(dimensions.items()): dimensions for _, dimensions, _ in self._values[name]}.values())


def _metrics(receipt: Json) -> dict[str, float]:
    pods, at = receipt.get("pods", []), {step["step"]: step["at_ms"] for step in receipt["steps"]}
    refusals = [pod.get("answers", {}).get("blocked-by-budget", 0) for pod in pods]
    fates = {f"Pods{fate.capitalize()}": sum(pod["fate"] == fate for pod in pods) for fate in ("clean", "clamped", "forced", "unconfirmed", "lost")}
    metrics = {
        **fates,
        "Notices": 1,
        "Failures": receipt["ending"] == "failed",
        "PodsFullGrace": fates["PodsClean"] + sum(pod["fate"] == "forced" and pod.get("given_s", 30) >= 30 for pod in pods),
        "PodsBlocked": sum(map(bool, refusals)),
        "BudgetRefusals": sum(refusals),
        "HooksNotCompleted": 0,
    }
    if "claimed" in at:
        metrics["NoticeToClaim"] = at["claimed"]
        metrics["TimeLeft"] = max(0, receipt["window"]["deadline_ms"] - at["drained"])
        if not fates["PodsLost"]:
            metrics["NoticeToDrained"] = at["drained"]
    return metrics


def _widget(widget: Json, week: _Week) -> Element:
    properties = widget["properties"]
    place = f"grid-area: {widget['y'] + 1} / {widget['x'] + 1} / span {widget['height']} / span {widget['width']}"
    if widget["type"] == "text":
        heading, text = properties["markdown"].split("\n", 1)
        text = re.sub(r"\[([^]]*)\]\([^)]*\)|[*`]", r"\1", text)
        texts = [part.replace("${AWS::Region}", "us-east-1").replace("${AWS::StackName}", "spillway") for part in (heading, text)]
        return element("section", element("h1", texts[0].lstrip("# ")), element("p", texts[1]), style=place)
    title = element("h2", properties["title"])
    if widget["type"] == "alarm":
        alarms = [element("li", re.sub(r"\$\{(\w+)\.Arn\}", r"\1", alarm)) for alarm in properties["alarms"]]
        return element("section", title, element("ul", *alarms), class_="alarms", style=place)
    lines = _lines(properties, week)
    if properties["view"] == "singleValue":
        numbers = [element("div", element("b", f"{sum(filter(None, values)):,.0f}"), label) for label, _, values in lines]
        return element("section", title, element("div", *numbers, class_="numbers"), style=place)
    return element("section", title, *_graph(properties, lines), style=place)


def _lines(properties: Json, week: _Week) -> list[Line]:
    """What each row of a widget's metrics draws: its label, its colour and its values."""
    lines: list[Line] = []
    hidden: dict[str, Values] = {}
    shares: list[tuple[Json, str]] = []
    name = ""
    for row in properties["metrics"]:
        options = row[-1] if isinstance(row[-1], dict) else {}
        colour = options.get("color") or PALETTE[len(lines) % len(PALETTE)]
        if expression := options.get("expression"):
            if "SEARCH" in expression:
                lines += _search(expression, options, colour, week)
            else:
                shares.append((options, colour))
            continue
        name = row[1] if row[1] != "." else name
        values = week.metric(name, options.get("stat") or properties["stat"])
        if options.get("visible", True):
            lines.append((options["label"], colour, values))
        else:
            hidden[options["id"]] = values
    for options, colour in shares:
        lines.append((options["label"], colour, [_computed(options["expression"], values, hidden) for values in zip(*hidden.values())]))
    return lines


def _search(expression: str, options: Json, colour: str, week: _Week) -> list[Line]:
    wanted = dict(re.findall(r'(MetricName|Ending)="(\w+)"', expression))
    name = wanted.pop("MetricName")
    if expression.startswith("SUM("):
        return [(options["label"], colour, week.metric(name, "Sum", **wanted))]
    found = []
    for number, dimensions in enumerate(week.dimensions(name)):
        label = re.sub(r"\$\{!?PROP\('Dim\.(\w+)'\)\}", lambda prop: dimensions[prop[1]], options["label"])
        found.append((label, PALETTE[number % len(PALETTE)], week.metric(name, "Sum", **dimensions)))
    return found


def _computed(expression: str, values: tuple[float | None, ...], names: dict[str, Values]) -> float | None:
    """An expression of the template's, for one bin; where it divides by nothing, nothing is drawn."""
    try:
        return float(eval(expression, {}, dict(zip(names, values))))
    except ZeroDivisionError:
        return None


def _graph(properties: Json, lines: list[Line]) -> list[Element]:
    limits = properties.get("annotations", {}).get("horizontal", [])
    stacked = properties.get("stacked", False)
    heights = [(sum if stacked else max)(value or 0 for value in at) for at in zip(*(values for _, _, values in lines))]
    most = max([*heights, *(limit["value"] for limit in limits), 1]) * 1.05
    drawn, below = [], [0.0] * len(heights)
    for _, colour, values in lines:
        if stacked:
            tops = [low + (value or 0) for low, value in zip(below, values)]
            outline = [*enumerate(tops), *reversed(list(enumerate(below)))]
            drawn.append(element("polygon", points=_points(outline, most), style=f"fill: {colour}"))
            below = tops
        else:
            drawn.append(element("polyline", points=_points([*enumerate(values)], most), style=f"stroke: {colour}"))
    for limit in limits:
        drawn.append(element("polyline", class_="limit", points=_points([(0, limit["value"]), (HOURS // BIN - 1, limit["value"])], most)))
    picture = element("svg", *drawn, viewBox="0 0 1000 100", preserveAspectRatio="none")
    keys = [element("li", element("i", style=f"background: {colour}"), label) for label, colour, _ in lines]
    keys += [element("li", element("i", class_="limit"), limit["label"]) for limit in limits]
    return [element("small", f"{most / 1.05:,.0f}"), picture, element("ul", *keys, class_="keys")]


def _points(line: list[tuple[int, float | None]], most: float) -> str:
    return " ".join(f"{at * 1000 / (HOURS // BIN - 1):.1f},{100 - value * 100 / most:.1f}" for at, value in line if value is not None)
