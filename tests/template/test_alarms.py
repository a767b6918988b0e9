"""When the alarms go off, by what the function and Lambda write, and whom they wake."""

import json
import re
import unittest
from typing import Any

from cloudwatch import Data, Stack, matches
from test_dashboard import EMITTED, ROOT, SNAPSHOTS
from test_template import properties

ERRORS, LATE, FAILURES = "ErrorsAlarm", "LateNoticesAlarm", "FailuresAlarm"


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
        week = (self.prod.metric("SelfTestAlarm"), self.dev.metric("SelfTestAlarm"))
        for metric in week:
            data.add(metric, 200, 1)
        self.assertEqual(notifications(self.dev, data, range(200, 210)), ["DrainsAlarm"])
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
        week = 8 * 24 * 60
        for day in range(8):
            data.add_line(self_test("dev", 0), day * 24 * 60)
        self.assertIn("SelfTestAlarm", self.prod.rings(data, week))
        self.assertNotIn("SelfTestAlarm", self.dev.rings(data, week))

    def test_neither_counts_the_others_lack_of_memory(self) -> None:
        self.assertNotEqual(self.prod.metric("OutOfMemoryAlarm"), self.dev.metric("OutOfMemoryAlarm"))
        names = [properties("OutOfMemoryFilter")["MetricTransformations"][0], properties("OutOfMemoryAlarm")]
        self.assertEqual(names[0]["MetricName"], names[1]["MetricName"])


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


class OneLostPod(unittest.TestCase):
    """Three attempts, as Lambda makes them: one minute and two after the one before; then the failure queue."""

    def incident(self, stack: Stack, data: Data, at: int, each: int, queue_late: int) -> None:
        data.add(stack.metric("SelfTestAlarm"), at, 1)
        for attempt, waits in enumerate((0, 1, 2)):
            began = at + waits
            at = began + each
            data.add(stack.metric(ERRORS), began, 1, known=at)
            if attempt > 0:
                data.add(stack.metric(LATE), began, 60_000 * (began + 1), known=at)
        data.add_line(drained(stack.name, PodsLost=1), at)
        self.fail_for_good(stack, data, at, queue_late)

    def fail_for_good(self, stack: Stack, data: Data, at: int, late: int) -> None:
        """A message comes into the failure queue, and nobody takes it out."""
        namespace, _, queue = stack.metric(FAILURES)
        data.add((namespace, "NumberOfMessagesSent", queue), at, 1, known=at + late)
        for minute in range(at, at + 300):
            data.add((namespace, "ApproximateNumberOfMessagesVisible", queue), minute, 1, known=minute + late)

    def test_it_is_one_notification_however_long_its_attempts_take(self) -> None:
        for each in (0, 2, 15):
            for queue_late in (0, 15):
                with self.subTest(each=each, queue_late=queue_late):
                    data, stack = Data(), Stack("prod")
                    self.incident(stack, data, 200, each, queue_late)
                    self.assertEqual(notifications(stack, data, range(200, 400)), ["DrainsAlarm"])

    def test_the_next_one_is_a_notification_of_its_own_though_the_queue_was_not_emptied(self) -> None:
        data, stack = Data(), Stack("prod")
        for at in (200, 300):
            self.incident(stack, data, at, 2, 0)
        self.assertEqual(notifications(stack, data, range(200, 400)), ["DrainsAlarm", "DrainsAlarm"])

    def test_what_eventbridge_could_not_hand_over_is_a_notification_too(self) -> None:
        data, stack = Data(), Stack("prod")
        data.add(stack.metric("SelfTestAlarm"), 200, 1)
        self.fail_for_good(stack, data, 200, 0)
        self.assertEqual(notifications(stack, data, range(200, 300)), ["DrainsAlarm"])


class TheMemory(unittest.TestCase):
    def setUp(self) -> None:
        self.pattern = properties("OutOfMemoryFilter")["FilterPattern"]

    def report(self, status: str, used: int, error: str | None = None) -> dict[str, Any]:
        """What Lambda writes at the end of an invocation, by its schema of `platform.report`."""
        metrics = {"durationMs": 101.51, "billedDurationMs": 300, "memorySizeMB": 256, "maxMemoryUsedMB": used}
        record = {"requestId": "r-1", "metrics": metrics, "status": status} | ({"errorType": error} if error else {})
        return {"time": "2026-11-01T12:00:00.000Z", "type": "platform.report", "record": record}

    def test_the_alarm_takes_lambdas_report_of_an_invocation_that_used_up_its_memory(self) -> None:
        for report in (
            self.report("error", 256, "Runtime.ExitError"),
            self.report("error", 253, "Runtime.ExitError"),
            # It thrashed until its time was up.
            self.report("timeout", 255),
            # What managed runtimes say, should this one learn it.
            self.report("error", 200, "Runtime.OutOfMemory"),
        ):
            with self.subTest(report=report["record"]):
                self.assertTrue(matches(self.pattern, report))

    def test_it_takes_nothing_else(self) -> None:
        for line in (
            self.report("success", 250),
            self.report("error", 60, "Runtime.ExitError"),
            self.report("timeout", 60),
            drained("prod"),
            {"level": "ERROR", "message": "Runtime.OutOfMemory"},
        ):
            with self.subTest(line=line):
                self.assertFalse(matches(self.pattern, line))

    def test_it_counts_by_the_memory_that_the_function_has(self) -> None:
        (at_least,) = map(int, re.findall(r"maxMemoryUsedMB >= (\d+)", self.pattern))
        memory = properties("Drain")["MemorySize"]
        # Seen where a process was killed: 252 to 256 of 256, and 96 % of a larger memory.
        self.assertTrue(0.93 * memory <= at_least <= 0.95 * memory, at_least)


class TheBill(unittest.TestCase):
    def test_the_page_counts_the_metrics_that_the_function_emits(self) -> None:
        # A line has only those that its notice has values for; and self-tests come twice a week.
        of_self_tests = {metric["Name"] for metric in self_test("prod", 0)["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
        of_stack = len(EMITTED - of_self_tests)
        by_cluster = len(drained("prod")["_aws"]["CloudWatchMetrics"][1]["Metrics"])
        page = (ROOT / "docs/metrics.md").read_text()
        kinds = 4
        count = of_stack + kinds * by_cluster
        self.assertIn(f"{of_stack} + {kinds} × {by_cluster} = {count} metrics", page)
        for words in (page, (ROOT / "README.md").read_text()):
            self.assertIn(f"at most {count * 0.30:.0f} USD a month", words)

    def test_what_is_told_by_cluster_is_what_the_dashboard_searches_for(self) -> None:
        text, _ = properties("DashboardOfDrains")["DashboardBody"]["Fn::Sub"]
        told = {metric["Name"] for metric in drained("prod")["_aws"]["CloudWatchMetrics"][1]["Metrics"]}
        self.assertEqual(told, set(re.findall(r'MetricName=\\"(\w+)\\"', text)))


if __name__ == "__main__":
    unittest.main()
