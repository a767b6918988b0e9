"""When the alarms go off, by what the function and Lambda write, and whom they wake."""

import json
import re
import unittest
from typing import Any

from cloudwatch import Data, Stack
from test_dashboard import DASHBOARD, EMITTED, ROOT, SNAPSHOTS
from test_template import of_type, properties

DRAINS, FAILURES = "DrainsAlarm", "FailuresAlarm"


def recorded(path: str, stack: str, **values: int) -> dict[str, Any]:
    """A line of metrics as the code writes it, for a stack and with other values."""
    line: dict[str, Any] = json.loads((ROOT / path).read_text().split("---\n", 2)[2])
    assert values.keys() <= line.keys()
    return line | {"Stack": stack} | values


def drained(stack: str, **values: int) -> dict[str, Any]:
    path = SNAPSHOTS / "spillway_drainer__publish__tests__the_metrics_are_in_the_embedded_format.snap"
    return recorded(str(path.relative_to(ROOT)), stack, **({"PodsLost": 0, "HooksNotCompleted": 0} | values))


def self_test(stack: str, findings: int) -> dict[str, Any]:
    return recorded("crates/doctor/src/snapshots/spillway_doctor__metrics__tests__the_metrics_of_a_self_test.snap", stack, Findings=findings)


def notifications(stack: Stack, data: Data, minutes: range) -> list[str]:
    """The alarms that notify in that time, once for each time that they go off."""
    told: list[str] = []
    before: set[str] = set()
    for minute in minutes:
        now = stack.rings(data, minute)
        told += sorted(now - before)
        before = now
    return told


class TwoStacks(unittest.TestCase):
    def setUp(self) -> None:
        self.prod, self.dev = Stack("prod"), Stack("dev")

    def test_what_one_loses_wakes_nobody_of_the_other(self) -> None:
        data = Data()
        data.add_line(drained("dev", PodsLost=1, HooksNotCompleted=1), 200)
        for stack in (self.prod, self.dev):
            data.add(stack.metric("SelfTestAlarm"), 200, 1)
        self.assertEqual(notifications(self.dev, data, range(200, 210)), [DRAINS])
        self.assertEqual(notifications(self.prod, data, range(200, 210)), [])

    def test_a_clean_self_test_of_one_does_not_end_the_others_alarm(self) -> None:
        data = Data()
        data.add_line(self_test("prod", 2), 200)
        data.add_line(self_test("dev", 0), 201)
        self.assertIn("FindingsAlarm", self.prod.rings(data, 200))
        self.assertIn("FindingsAlarm", self.prod.rings(data, 201))
        self.assertNotIn("FindingsAlarm", self.dev.rings(data, 201))

    def test_self_tests_of_one_do_not_hide_that_the_other_has_none(self) -> None:
        data = Data()
        day = 24 * 60
        data.add_line(self_test("prod", 0), 0)
        for at in range(5):
            data.add_line(self_test("dev", 0), at * day)
        self.assertEqual([day for day in range(5) if "SelfTestAlarm" in self.prod.rings(data, day * 24 * 60)], [3, 4])
        self.assertNotIn("SelfTestAlarm", self.dev.rings(data, 4 * day))


class ANewStack(unittest.TestCase):
    def test_the_documented_installation_ends_in_no_alarm(self) -> None:
        # The self-test comes with the deployment, the cluster's rights and the hooks after it.
        page = (ROOT / "docs/install.md").read_text()
        self.assertLess(page.index("sam deploy --parameter-overrides"), page.index("kubectl apply -f deploy/"))
        data, stack = Data(), Stack("new")
        data.add_line(self_test("new", 3), 2)
        self.assertEqual(notifications(stack, data, range(0, 600)), [])

    def test_what_a_later_self_test_finds_wakes_somebody(self) -> None:
        data, stack = Data(), Stack("new")
        data.add_line(self_test("new", 3), 2)
        data.add_line(self_test("new", 3), 3000)
        self.assertEqual(notifications(stack, data, range(0, 3100)), ["FindingsAlarm"])


class AWrongSetting(unittest.TestCase):
    def test_rings_within_ten_minutes_of_the_deployment_of_a_new_stack(self) -> None:
        # The self-test at the end of the deployment fails, and Lambda tries the event twice more.
        data, stack = Data(), Stack("new")
        for minute in (1, 2, 4):
            data.add(stack.metric(DRAINS, "errors"), minute, 1)
        data.add_line(self_test("new", 1), 1)
        self.assertIn(DRAINS, notifications(stack, data, range(0, 10)))


class EachCause(unittest.TestCase):
    """Each thing that may go wrong with a drain notifies alone, with no data of the others."""

    def test_of_the_alarm_of_drains_rings_alone(self) -> None:
        causes = [one["Id"] for one in properties(DRAINS)["Metrics"] if "MetricStat" in one]
        self.assertEqual(causes, ["errors", "throttles", "dropped", "lost", "hooks"])
        for cause in causes:
            data, stack = Data(), Stack("prod")
            data.add(stack.metric("SelfTestAlarm"), 200, 1)
            data.add(stack.metric(DRAINS, cause), 200, 1)
            with self.subTest(cause=cause):
                self.assertEqual(notifications(stack, data, range(200, 300)), [DRAINS])

    def test_none_of_them_is_no_alarm(self) -> None:
        data, stack = Data(), Stack("prod")
        data.add(stack.metric("SelfTestAlarm"), 200, 1)
        data.add_line(drained("prod"), 200)
        self.assertEqual(notifications(stack, data, range(200, 300)), [])

    def test_of_another_alarm_rings_alone(self) -> None:
        for alarm, value in ((FAILURES, 1), ("FindingsAlarm", 1), ("UndeliveredAlarm", 1), ("UnreadAlarm", 3601)):
            data, stack = Data(), Stack("prod")
            data.add(stack.metric("SelfTestAlarm"), 200, 1)
            data.add(stack.metric(alarm), 200, value)
            with self.subTest(alarm=alarm):
                self.assertEqual(notifications(stack, data, range(200, 300)), [alarm])


class TheTexts(unittest.TestCase):
    def test_each_has_a_command_and_fits_at_the_longest_stack_name(self) -> None:
        stack = Stack("s" * 128)
        for alarm in of_type("AWS::CloudWatch::Alarm"):
            with self.subTest(alarm=alarm):
                self.assertIn("aws ", stack.text(alarm))
                self.assertLess(len(stack.text(alarm)), 1024)


class OneLostPod(unittest.TestCase):
    """Three attempts, as Lambda makes them: one minute and two after the one before; then the failure queue."""

    def incident(self, stack: Stack, data: Data, at: int, each: int, queue_late: int) -> None:
        data.add(stack.metric("SelfTestAlarm"), at, 1)
        for waits in (0, 1, 2):
            began = at + waits
            at = began + each
            data.add(stack.metric(DRAINS, "errors"), began, 1, known=at)
        data.add_line(drained(stack.name, PodsLost=1), at)
        self.fail_for_good(stack, data, at, queue_late)

    def fail_for_good(self, stack: Stack, data: Data, at: int, late: int) -> None:
        """A message comes into the failure queue, and nobody takes it out."""
        namespace, _, queue = stack.metric(FAILURES)
        data.add((namespace, "NumberOfMessagesSent", queue), at, 1, known=at + late)
        for minute in range(at, at + 300):
            data.add((namespace, "ApproximateNumberOfMessagesVisible", queue), minute, 1, known=minute + late)

    def test_each_alarm_notifies_once_however_long_the_attempts_take(self) -> None:
        for each in (0, 2, 15):
            for queue_late in (0, 15):
                with self.subTest(each=each, queue_late=queue_late):
                    data, stack = Data(), Stack("prod")
                    self.incident(stack, data, 200, each, queue_late)
                    self.assertEqual(sorted(notifications(stack, data, range(200, 400))), [DRAINS, FAILURES])

    def test_the_next_one_notifies_again_though_the_queue_was_not_emptied(self) -> None:
        data, stack = Data(), Stack("prod")
        for at in (200, 300):
            self.incident(stack, data, at, 2, 0)
        self.assertEqual(sorted(notifications(stack, data, range(200, 400))), [DRAINS, DRAINS, FAILURES, FAILURES])




class TheBill(unittest.TestCase):
    def test_the_page_counts_the_metrics_that_the_function_emits(self) -> None:
        # A line has only those that its notice has values for; and self-tests come once a day.
        of_self_tests = {metric["Name"] for metric in self_test("prod", 0)["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
        of_stack = len(EMITTED - of_self_tests)
        by_cluster = len(drained("prod")["_aws"]["CloudWatchMetrics"][1]["Metrics"])
        page = (ROOT / "docs/metrics.md").read_text()
        kinds = 4
        count = of_stack + kinds * by_cluster
        self.assertIn(f"{of_stack} + {kinds} × {by_cluster} = {count} metrics", page)
        self.assertIn(f"| metrics | {count}: {count * 0.30:.1f} |", page)

    def test_what_is_told_by_cluster_is_what_the_dashboard_searches_for(self) -> None:
        text, _ = DASHBOARD["Resources"]["DashboardOfDrains"]["Properties"]["DashboardBody"]["Fn::Sub"]
        told = {metric["Name"] for metric in drained("prod")["_aws"]["CloudWatchMetrics"][1]["Metrics"]}
        self.assertEqual(told, set(re.findall(r'MetricName=\\"(\w+)\\"', text)))


if __name__ == "__main__":
    unittest.main()
