"""When the alarms go off, by what the function and Lambda write, and whom they wake."""

import json
import unittest
from typing import Any

from cloudwatch import Data, Stack
from test_dashboard import EMITTED, ROOT, SNAPSHOTS
from test_template import properties

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


class ANewStack(unittest.TestCase):
    def test_the_documented_installation_ends_in_no_alarm(self) -> None:
        # The self-test comes with the deployment, the cluster's rights and the hooks after it.
        page = (ROOT / "docs/install.md").read_text()
        self.assertLess(page.index("sam deploy --parameter-overrides"), page.index("kubectl apply -f deploy/"))
        data, stack = Data(), Stack("new")
        data.add_line(self_test("new", 3), 2)
        self.assertEqual(notifications(stack, data, range(0, 600)), [])


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

    def test_of_another_alarm_rings_alone(self) -> None:
        for alarm, value in ((FAILURES, 1), ("FindingsAlarm", 1), ("UndeliveredAlarm", 1), ("UnreadAlarm", 3601)):
            data, stack = Data(), Stack("prod")
            data.add(stack.metric("SelfTestAlarm"), 200, 1)
            data.add(stack.metric(alarm), 200, value)
            with self.subTest(alarm=alarm):
                self.assertEqual(notifications(stack, data, range(200, 300)), [alarm])


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


if __name__ == "__main__":
    unittest.main()
