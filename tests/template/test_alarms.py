"""The alarms of template.yaml: whom they notify, what they take missing data for, and what their metrics cost."""

import json
import re
import unittest
from typing import Any

from test_dashboard import EMITTED, ROOT, SNAPSHOTS
from test_template import RESOURCES, of_type, properties

ALARMS = of_type("AWS::CloudWatch::Alarm")
SELF_TEST = "crates/doctor/src/snapshots/spillway_doctor__metrics__tests__the_metrics_of_a_self_test.snap"


def directives(path: str) -> list[dict[str, Any]]:
    """The directives of a line of metrics as the code writes it."""
    found: list[dict[str, Any]] = json.loads((ROOT / path).read_text().split("---\n", 2)[2])["_aws"]["CloudWatchMetrics"]
    return found


class TheAlarms(unittest.TestCase):
    def test_each_notifies_when_it_begins_and_when_it_is_over(self) -> None:
        for name, alarm in ALARMS.items():
            with self.subTest(alarm=name):
                self.assertEqual(alarm["AlarmActions"]["Fn::If"][1], [{"Ref": "AlarmTopicArn"}])
                self.assertEqual(alarm["OKActions"], alarm["AlarmActions"])

    def test_each_description_links_a_section_of_the_runbook(self) -> None:
        for name, alarm in ALARMS.items():
            with self.subTest(alarm=name):
                link = re.search(r"https://github.com/OWNER/spillway/blob/main/docs/(\S+)#(\S+)$", alarm["AlarmDescription"]["Fn::Sub"])
                assert link, "no link"
                headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / link[1]).read_text(), re.MULTILINE)
                self.assertIn(link[2], [heading.lower().replace(" ", "-") for heading in headings])

    def test_each_cause_alone_rings_the_alarm_of_drains(self) -> None:
        total, *causes = properties("DrainsAlarm")["Metrics"]
        self.assertEqual([one["Id"] for one in causes], ["errors", "throttles", "dropped", "lost", "hooks"])
        # A sum with a term that is missing is missing itself.
        self.assertEqual(total["Expression"], " + ".join(f"FILL({one['Id']}, 0)" for one in causes))
        alarm = properties("DrainsAlarm")
        self.assertEqual((alarm["DatapointsToAlarm"], alarm["ComparisonOperator"], alarm["Threshold"]), (1, "GreaterThanThreshold", 0))

    def test_no_data_is_a_failure_of_the_self_test_alone(self) -> None:
        without_data = {name: alarm["TreatMissingData"] for name, alarm in ALARMS.items()}
        # Findings stay until the next self-test.
        others = {name: "ignore" if name == "FindingsAlarm" else "notBreaching" for name in ALARMS if name != "SelfTestAlarm"}
        self.assertEqual(without_data, {"SelfTestAlarm": "breaching", **others})
        announces = {name for name in ALARMS if RESOURCES[name].get("Condition") == "Announces"}
        self.assertEqual(announces, {"UndeliveredAlarm", "UnreadAlarm"})

    def test_three_days_without_a_self_test_ring(self) -> None:
        alarm = properties("SelfTestAlarm")
        self.assertEqual(alarm["Period"] * alarm["EvaluationPeriods"], 3 * 86_400)
        self.assertEqual((alarm["ComparisonOperator"], alarm["Threshold"]), ("LessThanThreshold", 1))
        # The first self-test comes at the end of the first deployment, before the clusters and groups are prepared.
        for name in ("SelfTestAlarm", "FindingsAlarm"):
            self.assertTrue(properties(name)["WarmUpConfiguration"]["OnlyStartEvaluatingAfterWarmUpPeriodEnds"])


class TheBill(unittest.TestCase):
    def test_the_page_counts_the_metrics_that_the_function_emits(self) -> None:
        # A line has only those that its notice has values for; and self-tests come once a day.
        of_self_tests = {metric["Name"] for metric in directives(SELF_TEST)[0]["Metrics"]}
        of_stack = len(EMITTED - of_self_tests)
        line = SNAPSHOTS / "spillway_drainer__publish__tests__the_metrics_are_in_the_embedded_format.snap"
        by_cluster = len(directives(str(line.relative_to(ROOT)))[1]["Metrics"])
        page = (ROOT / "docs/metrics.md").read_text()
        kinds = 4
        count = of_stack + kinds * by_cluster
        self.assertIn(f"{of_stack} + {kinds} × {by_cluster} = {count} metrics", page)
        self.assertIn(f"| metrics | {count}: {count * 0.30:.1f} |", page)


if __name__ == "__main__":
    unittest.main()
