"""What CloudWatch makes of a stack's alarms: the metrics that a line of the log is, and the states that follow from them."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from bed_aws.intrinsics import Intrinsics
from test_template import RESOURCES, TEMPLATE

# A metric: its namespace, its name, its dimensions.
Metric = tuple[str, str, frozenset[tuple[str, str]]]


@dataclass
class Data:
    """Values of metrics. Each has the minute that it is dated to, and the minute from which CloudWatch knows it."""

    values: dict[Metric, list[tuple[int, int, float]]] = field(default_factory=dict)

    def add(self, metric: Metric, minute: int, value: float, known: int | None = None) -> None:
        self.values.setdefault(metric, []).append((minute, minute if known is None else known, value))

    def add_line(self, line: dict[str, Any], minute: int) -> None:
        """A line in the embedded metric format."""
        for directive in line["_aws"]["CloudWatchMetrics"]:
            for names in directive["Dimensions"]:
                dimensions = frozenset((name, line[name]) for name in names)
                for metric in directive["Metrics"]:
                    self.add((directive["Namespace"], metric["Name"], dimensions), minute, line[metric["Name"]])


class Stack:
    """A stack with everything, under a name."""

    def __init__(self, name: str) -> None:
        known = {"AWS::StackName": name, "AWS::Region": "us-east-1"}
        for logical_id in RESOURCES:
            known |= {f"{logical_id}{part}": f"{name}-{logical_id}" for part in ("", ".Arn", ".QueueName")}
        filled_in = Intrinsics(TEMPLATE, {"AlarmTopicArn": "arn:aws:sns:us-east-1:123456789012:pager", "TopicArn": "arn"}, known)
        self._alarms = {
            kind: {
                filled_in.value({"Ref": logical_id}): filled_in.value(resource["Properties"])
                for logical_id, resource in RESOURCES.items()
                if resource["Type"] == f"AWS::CloudWatch::{kind}"
            }
            for kind in ("Alarm", "CompositeAlarm")
        }
        self.name = name
        self._states: dict[str, bool] = {}

    def metric(self, alarm: str) -> Metric:
        properties = self._alarms["Alarm"][f"{self.name}-{alarm}"]
        dimensions = frozenset((one["Name"], one["Value"]) for one in properties.get("Dimensions", []))
        return properties["Namespace"], properties["MetricName"], dimensions

    def rings(self, data: Data, now: int) -> set[str]:
        """The alarms that notify, and are on in that minute. Asked for one minute after the other."""
        for name, alarm in self._alarms["Alarm"].items():
            self._states[name] = _is_on(alarm, self.metric(name.removeprefix(f"{self.name}-")), data, now, self._states.get(name, False))
        for name, alarm in self._alarms["CompositeAlarm"].items():
            children = re.findall(r'ALARM\("([^"]+)"\)', alarm["AlarmRule"])
            assert alarm["AlarmRule"] == " OR ".join(f'ALARM("{child}")' for child in children), alarm["AlarmRule"]
            self._states[name] = any(self._states[child] for child in children)
        notify = {name for of_kind in self._alarms.values() for name, alarm in of_kind.items() if "AlarmActions" in alarm}
        return {name.removeprefix(f"{self.name}-") for name in notify if self._states[name]}


def _is_on(alarm: dict[str, Any], metric: Metric, data: Data, now: int, before: bool) -> bool:
    if now < alarm.get("WarmUpConfiguration", {}).get("WarmUpPeriodDurationInMinutes", 0):
        return False
    minutes = alarm["Period"] // 60
    periods = alarm["EvaluationPeriods"]
    values: list[list[float]] = [[] for _ in range(periods)]
    for dated, known, value in data.values.get(metric, []):
        if known <= now and 0 <= (now - dated) // minutes < periods:
            values[(now - dated) // minutes].append(value)
    if not any(values) and alarm["TreatMissingData"] == "ignore":
        return before
    together = {"Sum": sum, "Maximum": max, "Minimum": min}[alarm["Statistic"]]
    threshold = alarm["Threshold"]
    is_beyond = {"GreaterThanThreshold": lambda value: value > threshold, "LessThanThreshold": lambda value: value < threshold}
    without = alarm["TreatMissingData"] == "breaching"
    breaching = [is_beyond[alarm["ComparisonOperator"]](together(period)) if period else without for period in values]
    return sum(breaching) >= alarm.get("DatapointsToAlarm", periods)


def matches(pattern: str, line: dict[str, Any]) -> bool:
    """Whether a filter pattern for JSON takes a line. A comparison with a field that the line lacks is never true."""

    def compared(found: re.Match[str]) -> str:
        value: Any = line
        for name in found[1].split(".")[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        operator = {"=": "=="}.get(found[2], found[2])
        return "False" if value is None else f"({json.dumps(value)} {operator} {found[3]})"

    text = re.sub(r'(\$(?:\.\w+)+)\s*(!=|>=|=)\s*("[^"]*"|\d+)', compared, pattern.strip().removeprefix("{").removesuffix("}"))
    return bool(eval(text.replace("&&", " and ").replace("||", " or ").strip()))  # noqa: S307
