"""The alarms of template.yaml, and the dashboard and saved queries of deploy/cloudformation/dashboard.yaml, read the function's output."""

import json
import re
import unittest
from pathlib import Path
from typing import Any

from bed_aws.template import read
from test_template import TEMPLATE, of_type

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOTS = ROOT / "crates/drainer/src/publish/snapshots"
SCHEMA = json.loads((ROOT / "docs/receipt.schema.json").read_text())
SELF_TEST = json.loads((ROOT / "docs/self-test.schema.json").read_text())

NAMESPACE = "Spillway"
OF_THIS_STACK = ["Stack", "${StackName}"]
ALARMS = of_type("AWS::CloudWatch::Alarm")
# The metrics of AWS' own that are shown, by namespace: their dimension and its value.
AWS = {"AWS/SQS": ["QueueName", "${Queue}"], "AWS/Lambda": ["FunctionName", "${FunctionName}"]}
DASHBOARD = read(ROOT / "deploy/cloudformation/dashboard.yaml")
QUERIES = [one["Properties"] for one in DASHBOARD["Resources"].values() if one["Type"] == "AWS::Logs::QueryDefinition"]


# The fields of a log line's span: crates/drainer/src/invocation/span.rs
SPAN = {
    f"span.{name}"
    for name in re.findall(r"^        ([a-z]+\.[a-z]+) = ", (ROOT / "crates/drainer/src/invocation/span.rs").read_text(), re.M)
}
# The words of Logs Insights' own language that are used.
LANGUAGE = {
    *("SOURCE", "fields", "filter", "parse", "unnest", "stats", "display", "sort", "limit"),
    *("as", "into", "by", "and", "or", "like", "asc", "desc"),
    *("ispresent", "jsonParse", "bin", "count", "count_distinct", "latest", "max", "pct"),
}


def snapshot(name: str) -> str:
    return (SNAPSHOTS / f"spillway_drainer__publish__tests__{name}.snap").read_text().split("---\n", 2)[2].strip()


# A test of the function compares this table with the code.
ROWS = re.findall(
    r"^\| `(\w+)` \| (?:Count|Milliseconds) \| [^|]+ \| ([^|]*)\|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE
)
EMITTED = {name for name, _ in ROWS}
# The dimensions of each metric, and those that some have besides.
(OF_STACK,), (BY_CLUSTER,) = (
    directive["Dimensions"]
    for directive in json.loads(snapshot("the_metrics_are_in_the_embedded_format"))["_aws"]["CloudWatchMetrics"]
)


def dashboard() -> dict[str, Any]:
    """The body, with its `${…}` left in; `${!…}` is CloudFormation's way to let one through."""
    body: dict[str, Any] = json.loads(DASHBOARD["Resources"]["DashboardOfDrains"]["Properties"]["DashboardBody"]["Fn::Sub"][0])
    return body


def widgets(kind: str) -> list[dict[str, Any]]:
    return [widget["properties"] for widget in dashboard()["widgets"] if widget["type"] == kind]


def rows(widget: dict[str, Any]) -> tuple[list[list[str]], list[str]]:
    """The metrics of a widget, a dot filled in from the row before, and its expressions."""
    metrics: list[list[str]] = []
    expressions: list[str] = []
    for row in widget["metrics"]:
        words = [word for word in row if isinstance(word, str)]
        if words:
            metrics.append([metrics[-1][at] if word == "." else word for at, word in enumerate(words)])
        else:
            expressions.append(row[0]["expression"])
    return metrics, expressions


class TheDashboard(unittest.TestCase):
    def test_it_takes_the_outputs_of_the_stack(self) -> None:
        self.assertEqual(set(DASHBOARD["Parameters"]) - set(TEMPLATE["Outputs"]), {"StackName"})

    def test_dashboard_shows_exactly_the_emitted_metrics(self) -> None:
        shown = set()
        for widget in widgets("metric"):
            metrics, expressions = rows(widget)
            shown |= {name for namespace, name, *_ in metrics if namespace == NAMESPACE}
            shown |= {name for expression in expressions for name in re.findall(r'MetricName="(\w+)"', expression)}
        self.assertEqual(shown, EMITTED)

    def test_metrics_have_the_emitted_namespace_and_dimensions(self) -> None:
        for widget in widgets("metric"):
            metrics, expressions = rows(widget)
            for namespace, name, *dimensions in metrics:
                with self.subTest(metric=name):
                    self.assertEqual(dimensions, OF_THIS_STACK if namespace == NAMESPACE else AWS[namespace])
            for expression in expressions:
                with self.subTest(expression=expression):
                    search = f'{{"{NAMESPACE}",{",".join(BY_CLUSTER)}}} Stack="${{StackName}}" '
                    self.assertEqual(expression.count(f"SEARCH('{search}"), expression.count("SEARCH("))

    def test_the_pages_that_it_names_are_there(self) -> None:
        (text,) = widgets("text")
        pages = re.findall(r"`(docs/[\w.]+)`", text["markdown"])
        self.assertTrue(pages)
        for page in pages:
            self.assertTrue((ROOT / page).is_file(), page)


def watched(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics of an alarm, which has one or computes with several."""
    return [one["MetricStat"]["Metric"] for one in alarm.get("Metrics", []) if "MetricStat" in one] or [alarm]


class TheAlarms(unittest.TestCase):
    def test_their_metrics_are_emitted_by_this_stack_or_are_awss(self) -> None:
        for name, alarm in ALARMS.items():
            for metric in watched(alarm):
                with self.subTest(alarm=name, metric=metric["MetricName"]):
                    (dimension,) = metric["Dimensions"]
                    if metric["Namespace"] == NAMESPACE:
                        self.assertIn(metric["MetricName"], EMITTED)
                        self.assertEqual(dimension, {"Name": "Stack", "Value": {"Ref": "AWS::StackName"}})
                    else:
                        self.assertEqual(dimension["Name"], AWS[metric["Namespace"]][0])

    def test_the_page_of_metrics_says_which_alarm_watches_which(self) -> None:
        ours = {(metric["MetricName"], name) for name, alarm in ALARMS.items() for metric in watched(alarm) if metric["Namespace"] == NAMESPACE}
        documented = {(metric, *re.findall(r"`(\w+)`", alarm)) for metric, alarm in ROWS if alarm.strip()}
        self.assertEqual(documented - {("Failures", "DrainsAlarm")}, ours)
        page = (ROOT / "docs/metrics.md").read_text()
        for name in ALARMS:
            self.assertIn(f"| `{name}` | ", page)


def fields(schema: dict[str, Any], prefix: str = "") -> set[str]:
    """The fields of a receipt as Logs Insights names them; those of lists are left out."""
    found = set()
    for name, field in schema.get("properties", {}).items():
        choices = [field, *field.get("anyOf", [])]
        inner = [SCHEMA["$defs"][choice["$ref"].rsplit("/", 1)[1]] for choice in choices if "$ref" in choice]
        found.add(prefix + name)
        for one in inner:
            found |= fields(one, f"{prefix}{name}.")
    return found


class TheQueries(unittest.TestCase):
    def setUp(self) -> None:
        self.queries = {query["Name"]["Fn::Sub"].partition("/")[2]: query["QueryString"] for query in QUERIES}
        self.line = snapshot("the_receipt_of_a_drain_as_the_log_has_it")

    def test_each_asks_the_functions_own_log(self) -> None:
        for query in QUERIES:
            self.assertEqual(query["LogGroupNames"], [{"Ref": "LogGroupName"}])
        for widget in widgets("log"):
            self.assertTrue(widget["query"].startswith("SOURCE '${LogGroupName}' | filter receipt = 2"))

    def test_each_asks_for_fields_that_there_are(self) -> None:
        of_pods = {f"pod.{name}" for name in SCHEMA["$defs"]["PodRecord"]["properties"]}
        of_metrics = EMITTED | {*BY_CLUSTER}
        unnested = {"line.pods", "line.checks"}
        of_self_tests = {*SELF_TEST["properties"]} | {
            f"{name.lower()}.{field}" for name in ("Check", "Finding") for field in SELF_TEST["$defs"][name]["properties"]
        }
        # What the lines of a long receipt have: crates/receipt/src/lines.rs
        of_parts = {"receipt_part"}
        known = fields(SCHEMA) | of_parts | of_pods | of_metrics | of_self_tests | unnested | SPAN | {"@timestamp", "@message", "level", "message"} | LANGUAGE
        for name, query in [*self.queries.items(), *((widget["title"], widget["query"]) for widget in widgets("log"))]:
            made = {word for words in re.findall(r" as (\w+)|into (\w+)|\(\?<(\w+)>", query) for word in words}
            bare = re.sub(r"#.*|/\S.*/|\"[^\"]*\"|'[^']*'", "", query)
            with self.subTest(query=name):
                self.assertEqual(set(re.findall(r"(?<!\w)@?[A-Za-z][\w.]*", bare)) - made - known, set())

    def test_the_page_of_receipts_lists_them(self) -> None:
        page = (ROOT / "docs/receipt.md").read_text()
        self.assertEqual(re.findall(r"^\| \*([^*]+)\* \|", page, re.MULTILINE), list(self.queries))


if __name__ == "__main__":
    unittest.main()
