"""What CloudWatch makes of a stack's alarms: the metrics that a line of the log is, and the states that follow from them."""

import re
from dataclasses import dataclass, field
from typing import Any

from bed_aws.intrinsics import Intrinsics
from test_template import RESOURCES, TEMPLATE

# The longest name of a Region.
REGION = "ap-southeast-1"
# The longest names that CloudFormation makes, where the service has a limit.
LONGEST = {"AWS::Lambda::Function": 64, "AWS::Events::Rule": 64, "AWS::IAM::Role": 64, "AWS::SQS::Queue": 80}
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
        known = {"AWS::StackName": name, "AWS::Region": REGION}
        for logical_id, resource in RESOURCES.items():
            physical = _physical_name(name, logical_id, resource["Type"])
            arn = f"arn:aws:service:{REGION}:123456789012:{physical.rpartition('/')[2]}"
            known |= {logical_id: physical, f"{logical_id}.Arn": arn, f"{logical_id}.QueueName": physical.rpartition("/")[2]}
        filled_in = Intrinsics(TEMPLATE, {"AlarmTopicArn": "arn:aws:sns:us-east-1:123456789012:pager", "TopicArn": "arn"}, known)
        self._alarms = {
            logical_id: filled_in.value(resource["Properties"])
            for logical_id, resource in RESOURCES.items()
            if resource["Type"] == "AWS::CloudWatch::Alarm"
        }
        self.name = name
        self._states: dict[str, bool] = {}

    def text(self, alarm: str) -> str:
        return str(self._alarms[alarm]["AlarmDescription"])

    def metric(self, alarm: str, id: str = "") -> Metric:
        """The metric of an alarm; of one that computes with several, the one of that id."""
        one = self._alarms[alarm]
        if id:
            (one,) = (each["MetricStat"]["Metric"] for each in one["Metrics"] if each["Id"] == id)
        return _metric(one)

    def rings(self, data: Data, now: int) -> set[str]:
        """The alarms that notify, and are on in that minute. Asked for one minute after the other."""
        for name, alarm in self._alarms.items():
            self._states[name] = _is_on(alarm, data, now, self._states.get(name, False))
        return {name for name, alarm in self._alarms.items() if "AlarmActions" in alarm and self._states[name]}


def _physical_name(stack: str, logical_id: str, kind: str) -> str:
    """The name that CloudFormation makes: `Ref` of a queue is its URL, and of an event source mapping a UUID."""
    if kind == "AWS::Lambda::EventSourceMapping":
        return "00000000-0000-0000-0000-000000000000"
    random = "-ABCDEFGHIJKL"
    longest = LONGEST.get(kind, 512) - len(random)
    name = f"{stack}-{logical_id}"[:longest] + random
    return f"https://sqs.{REGION}.amazonaws.com/123456789012/{name}" if kind == "AWS::SQS::Queue" else name


def _metric(of: dict[str, Any]) -> Metric:
    return of["Namespace"], of["MetricName"], frozenset((one["Name"], one["Value"]) for one in of.get("Dimensions", []))


def _is_on(alarm: dict[str, Any], data: Data, now: int, before: bool) -> bool:
    if now < alarm.get("WarmUpConfiguration", {}).get("WarmUpPeriodDurationInMinutes", 0):
        return False
    values = _values(alarm, data, now)
    if all(value is None for value in values) and alarm["TreatMissingData"] == "ignore":
        return before
    threshold = alarm["Threshold"]
    is_beyond = {"GreaterThanThreshold": lambda value: value > threshold, "LessThanThreshold": lambda value: value < threshold}
    without = alarm["TreatMissingData"] == "breaching"
    breaching = [without if value is None else is_beyond[alarm["ComparisonOperator"]](value) for value in values]
    return sum(breaching) >= alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])


def _values(alarm: dict[str, Any], data: Data, now: int) -> list[float | None]:
    """The value of each period, the last one first; None of one without data."""
    if "Metrics" not in alarm:
        return _periods(data, _metric(alarm), alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"], now)
    known: dict[str, list[float | None]] = {}
    expression = ""
    for one in alarm["Metrics"]:
        if "Expression" in one:
            expression = one["Expression"]
        else:
            stat = one["MetricStat"]
            known[one["Id"]] = _periods(data, _metric(stat["Metric"]), stat["Stat"], stat["Period"], alarm["EvaluationPeriods"], now)
    # A sum of metrics, of which each may be filled. What is not filled is missing from the sum, and so is the sum.
    terms = [re.fullmatch(r"FILL\((\w+), (\d+)\)|(\w+)", term) for term in expression.split(" + ")]
    assert all(terms), expression
    sums: list[float | None] = []
    for at in range(alarm["EvaluationPeriods"]):
        parts = [float(term[2]) if (value := known[term[1] or term[3]][at]) is None and term[2] else value for term in terms if term]
        sums.append(None if None in parts else sum(part for part in parts if part is not None))
    return sums


def _periods(data: Data, metric: Metric, statistic: str, period_s: int, periods: int, now: int) -> list[float | None]:
    minutes = period_s // 60
    values: list[list[float]] = [[] for _ in range(periods)]
    for dated, known, value in data.values.get(metric, []):
        if known <= now and 0 <= (now - dated) // minutes < periods:
            values[(now - dated) // minutes].append(value)
    together = {"Sum": sum, "Maximum": max, "Minimum": min}[statistic]
    return [together(one) if one else None for one in values]
