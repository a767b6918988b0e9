"""The alarms of template.yaml, and the dashboard and saved queries of deploy/cloudformation/dashboard.yaml."""

import json
import re
import unittest
from typing import Any

from bed_aws.template import read
from test_template import ROOT, TEMPLATE, of_type, properties

(SNAPSHOT,) = (ROOT / "crates/drainer/src/publish/snapshots").glob("*metrics_are_in_the_embedded_format.snap")
METRICS = json.loads(SNAPSHOT.read_text().split("---\n", 2)[2])["_aws"]["CloudWatchMetrics"]
BY_CLUSTER = ",".join(METRICS[1]["Dimensions"][0])
SCHEMA, SELF_TEST = (json.loads((ROOT / f"docs/{name}.schema.json").read_text()) for name in ("receipt", "self-test"))
PAGE = (ROOT / "docs/metrics.md").read_text()
# The function's tests compare this table with the code.
ROWS = re.findall(r"^\| `(\w+)` \| (?:Count|Milliseconds) \| [^|]+ \| ([^|]*)\|", PAGE, re.MULTILINE)
EMITTED = {name for name, _ in ROWS}
# Dimension of each namespace, and its value on the dashboard.
DIMENSIONS = {
    "Spillway": ["Stack", "${StackName}"],
    "AWS/SQS": ["QueueName", "${Queue}"],
    "AWS/Lambda": ["FunctionName", "${FunctionName}"],
}
ALARMS = of_type("AWS::CloudWatch::Alarm")
DASHBOARD = read(ROOT / "deploy/cloudformation/dashboard.yaml")
BODY = json.loads(DASHBOARD["Resources"]["DashboardOfDrains"]["Properties"]["DashboardBody"]["Fn::Sub"][0])
LINES = (ROOT / "crates/drainer/src/invocation/span.rs").read_text()
SPAN = [f"span.{name}" for name in re.findall(r"^        ([a-z]+\.[a-z]+) = ", LINES, re.M)]
# Words of Logs Insights' own language.
LANGUAGE = """SOURCE fields filter parse unnest stats display sort limit as into by and or like asc desc ispresent
jsonParse bin count count_distinct latest max pct @timestamp @message level message"""


def watched(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics of an alarm, which has one or computes with several."""
    return [one["MetricStat"]["Metric"] for one in alarm.get("Metrics", []) if "MetricStat" in one] or [alarm]


class TheAlarms(unittest.TestCase):
    def test_each_alarm_notifies_and_links_the_runbook(self) -> None:
        for name, alarm in ALARMS.items():
            with self.subTest(alarm=name):
                self.assertEqual(alarm["AlarmActions"]["Fn::If"][1], [{"Ref": "AlarmTopicArn"}])
                self.assertEqual(alarm["OKActions"], alarm["AlarmActions"])
                link = re.search(r"/blob/main/(docs/\S+)#(\S+)$", alarm["AlarmDescription"]["Fn::Sub"])
                headings = re.findall(r"^#+ (.*)$", (ROOT / link[1]).read_text(), re.MULTILINE)
                self.assertIn(link[2], [heading.lower().replace(" ", "-") for heading in headings])

    def test_each_cause_alone_rings_the_alarm_of_drains(self) -> None:
        alarm = properties("DrainsAlarm")
        total, *causes = alarm["Metrics"]
        self.assertEqual([one["Id"] for one in causes], ["errors", "throttles", "dropped", "lost", "hooks"])
        # A sum with a term that is missing is missing itself.
        self.assertEqual(total["Expression"], " + ".join(f"FILL({one['Id']}, 0)" for one in causes))
        condition = (alarm["DatapointsToAlarm"], alarm["ComparisonOperator"], alarm["Threshold"])
        self.assertEqual(condition, (1, "GreaterThanThreshold", 0))

    def test_three_days_without_a_self_test_ring(self) -> None:
        missing = {alarm["TreatMissingData"]: name for name, alarm in ALARMS.items()}
        # Findings stay until the next self-test.
        self.assertEqual((missing.pop("breaching"), missing.pop("ignore")), ("SelfTestAlarm", "FindingsAlarm"))
        self.assertEqual(list(missing), ["notBreaching"])
        alarm = properties("SelfTestAlarm")
        self.assertEqual(alarm["Period"] * alarm["EvaluationPeriods"], 3 * 86_400)
        self.assertEqual((alarm["ComparisonOperator"], alarm["Threshold"]), ("LessThanThreshold", 1))

    def test_alarms_watch_the_metrics_that_the_page_says(self) -> None:
        ours = set()
        for name, alarm in ALARMS.items():
            for metric in watched(alarm):
                (dimension,) = metric["Dimensions"]
                self.assertEqual(dimension["Name"], DIMENSIONS[metric["Namespace"]][0], name)
                if metric["Namespace"] == "Spillway":
                    ours.add((metric["MetricName"], name))
        documented = {(metric, *re.findall(r"`(\w+)`", alarm)) for metric, alarm in ROWS if alarm.strip()}
        self.assertEqual(documented - {("Failures", "DrainsAlarm")}, ours)


def widgets(kind: str) -> list[dict[str, Any]]:
    return [widget["properties"] for widget in BODY["widgets"] if widget["type"] == kind]


def fields(schema: dict[str, Any], prefix: str = "") -> set[str]:
    """The fields of a receipt as Logs Insights names them; those of lists are left out."""
    found = set()
    for name, field in schema.get("properties", {}).items():
        found.add(prefix + name)
        for choice in [field, *field.get("anyOf", [])]:
            if "$ref" in choice:
                found |= fields(SCHEMA["$defs"][choice["$ref"].rsplit("/", 1)[1]], f"{prefix}{name}.")
    return found


class TheDashboard(unittest.TestCase):
    def test_its_parameters_are_outputs_of_the_stack(self) -> None:
        self.assertEqual(set(DASHBOARD["Parameters"]) - set(TEMPLATE["Outputs"]), {"StackName"})

    def test_dashboard_shows_exactly_the_emitted_metrics(self) -> None:
        shown = set()
        for widget in widgets("metric"):
            before: list[str] = []
            for row in widget["metrics"]:
                words = [word for word in row if isinstance(word, str)]
                # A dot is what stands in the row before.
                before = [before[at] if word == "." else word for at, word in enumerate(words)] or before
                if words:
                    self.assertEqual(before[2:], DIMENSIONS[before[0]])
                    shown |= {before[1]} if before[0] == "Spillway" else set()
                else:
                    expression = row[0]["expression"]
                    search = f"""SEARCH('{{"Spillway",{BY_CLUSTER}}} Stack="${{StackName}}" """
                    self.assertEqual(expression.count(search), expression.count("SEARCH("), expression)
                    shown |= set(re.findall(r'MetricName="(\w+)"', expression))
        self.assertEqual(shown, EMITTED)

    def test_queries_name_fields_that_exist(self) -> None:
        saved = [one["Properties"] for one in DASHBOARD["Resources"].values() if "QueryDefinition" in one["Type"]]
        queries = {query["Name"]["Fn::Sub"].partition("/")[2]: query["QueryString"] for query in saved}
        listed = re.findall(r"^\| \*([^*]+)\* \|", (ROOT / "docs/receipt.md").read_text(), re.MULTILINE)
        self.assertEqual(listed, list(queries))
        known = {*LANGUAGE.split(), *SPAN, *EMITTED, *BY_CLUSTER.split(","), *fields(SCHEMA), *SELF_TEST["properties"]}
        # What the lines of a long receipt have (crates/receipt/src/lines.rs), and lists by their elements.
        known |= {"receipt_part", "line.pods", "line.checks"}
        lists = {"pod": SCHEMA["$defs"]["PodRecord"]}
        lists |= {name.lower(): SELF_TEST["$defs"][name] for name in ("Check", "Finding")}
        for name, of in lists.items():
            known |= {f"{name}.{field}" for field in of["properties"]}
        for name, query in [*queries.items(), *((widget["title"], widget["query"]) for widget in widgets("log"))]:
            made = {word for words in re.findall(r" as (\w+)|into (\w+)|\(\?<(\w+)>", query) for word in words}
            bare = re.sub(r"#.*|/\S.*/|\"[^\"]*\"|'[^']*'", "", query)
            with self.subTest(query=name):
                self.assertEqual(set(re.findall(r"(?<!\w)@?[A-Za-z][\w.]*", bare)) - made - known, set())


if __name__ == "__main__":
    unittest.main()
