"""The numbers that pages tell are those of the code's constants."""

import re
import unittest

from pages import text

WHAT_HAPPENS, NOTICES, ANNOUNCEMENTS, TROUBLESHOOTING = (
    f"docs/{page}.md" for page in ("what-happens", "notices", "announcements", "troubleshooting")
)
DRAIN, CORE = "crates/drainer/src", "crates/core/src"
SECONDS = {"secs": 1, "millis": 0.001, "mins": 60, "hours": 3600}
WORDS = {"two": 2, "three": 3, "five": 5, "ten": 10}
UNITS = {"s": 1, "seconds": 1, "ms": 0.001, "minutes": 60, "hours": 3600, "days": 86400}

# A page, what it says with the number in brackets, the file of the constant, and its name.
NUMBERS = (
    (WHAT_HAPPENS, r"asks? again for up to (30 s)", f"{DRAIN}/aws/ec2.rs", "CATCHES_UP_WITHIN"),
    (WHAT_HAPPENS, r"gives EC2 (five seconds)", f"{DRAIN}/actions/identify.rs", "EC2_ANSWERS_WITHIN"),
    (WHAT_HAPPENS, r"all nodes in pages of (100)", f"{DRAIN}/node/find.rs", "PAGE"),
    (WHAT_HAPPENS, r"Up to (72) evictions run at once", f"{CORE}/drain/request.rs", "EVICTIONS_AT_ONCE"),
    (WHAT_HAPPENS, r"(10) more streams of the connection are reserved for deletions", f"{CORE}/drain/request.rs", "DELETIONS_AT_ONCE"),
    (WHAT_HAPPENS, r"watches for new pods until (5 s) after the cordon", f"{CORE}/drain/ending.rs", "FIRST_LATE_POD"),
    (WHAT_HAPPENS, r"lasts until (15 s) after the last such pod", f"{CORE}/drain/ending.rs", "NEXT_LATE_POD"),
    (WHAT_HAPPENS, r"After a refused deletion, Spillway tries an eviction for (2 s)", f"{CORE}/drain/deadline/forcing.rs", "LEAST_EVICTION_TIMEOUT"),
    (WHAT_HAPPENS, r"has at least (10 s)\. After the deadline", f"{DRAIN}/context/target.rs", "LEAST_WINDOW"),
    (WHAT_HAPPENS, r"\| has at least (2 s) \|", f"{DRAIN}/context/target.rs", "LEAST_WINDOW_OF_A_HOOK"),
    (WHAT_HAPPENS, r"the end is \[unknown\]\(#forced-in-time\), and the drain has (10 minutes)", f"{CORE}/continuation/limits.rs", "GONE_WITHIN"),
    (WHAT_HAPPENS, r"or (5 s) before Auto Scaling's own limit", f"{CORE}/hook_timeouts.rs", "FOR_THE_ANSWER"),
    (WHAT_HAPPENS, r"`GlobalTimeout`: (100) times the hook's timeout", f"{CORE}/hook_timeouts.rs", "MOST_TIMEOUTS"),
    (WHAT_HAPPENS, r"times the hook's timeout, at most (48 hours)", f"{CORE}/hook_timeouts.rs", "LONGEST"),
    (WHAT_HAPPENS, r"cannot be read, Spillway assumes (30 s)", f"{CORE}/hook_timeouts.rs", "LEAST_TIMEOUT"),
    (WHAT_HAPPENS, r"as \*continued\* (five seconds) before Lambda ends it", f"{CORE}/invocation.rs", "DRAIN_RESERVE"),
    (WHAT_HAPPENS, r"its own, if it can end (2 s) before the instance", f"{CORE}/drain/deadline.rs", "MARGIN"),
    (WHAT_HAPPENS, r"otherwise the time left, at least (1 s)", f"{CORE}/drain/deadline/grace.rs", "LEAST_GRACE"),
    (WHAT_HAPPENS, r"at half of the window, or (20 s) before", f"{CORE}/drain/deadline/forcing.rs", "LEAST_TIME_FOR_A_BUDGET"),
    (WHAT_HAPPENS, r"or (ten minutes) before it may be forced, whichever is later", f"{CORE}/drain/deadline/forcing.rs", "MOST_TIME_FOR_A_BUDGET"),
    (WHAT_HAPPENS, r"a webhook's \(403, 429, 500\) \| (0\.5 s)", f"{CORE}/drain/pod/mod.rs", "RETRY"),
    (WHAT_HAPPENS, r"doubling to (5 s), plus up to half", f"{CORE}/drain/pod/mod.rs", "SLOW_RETRY"),
    (WHAT_HAPPENS, r"no answer to an eviction \| backoff, doubling to (2 s)", f"{CORE}/drain/pod/answers.rs", "UNANSWERED_RETRY"),
    (WHAT_HAPPENS, r"5xx, no answer \| (0\.1 s), doubling", "crates/retry/src/lib.rs", "FIRST_PAUSE"),
    (WHAT_HAPPENS, r"5xx, no answer \| 0\.1 s, doubling to (2 s)", "crates/retry/src/lib.rs", "LONGEST_PAUSE"),
    (WHAT_HAPPENS, r"list of the node's pods (65 s)", f"{DRAIN}/drain/list.rs", "LIST_TIMEOUT"),
    (WHAT_HAPPENS, r"request to the API server may take (15 s)", f"{DRAIN}/kube/mod.rs", "CALL_TIMEOUT"),
    (WHAT_HAPPENS, r"an attempt at AWS (5 s)", "crates/startup/src/aws.rs", "ATTEMPT_TIMEOUT"),
    (WHAT_HAPPENS, r"each budget is tried every (5 s)", f"{CORE}/drain/budgets.rs", "PROBE_EVERY"),
    (WHAT_HAPPENS, r"own grace period, (2 minutes) after the notice", f"{DRAIN}/context/target.rs", "RESPECTED_FOR"),
    (WHAT_HAPPENS, r"evicted (5 s) after they came", f"{CORE}/drain/returns.rs", "PAUSE"),
    (WHAT_HAPPENS, r"still terminating (five minutes) after its grace", f"{CORE}/drain/progress.rs", "STUCK_AFTER"),
    (WHAT_HAPPENS, r"a pod is (10 s) overdue or the garbage collector", f"{CORE}/drain/progress.rs", "OVERDUE_AFTER"),
    (WHAT_HAPPENS, r"\*\*Volumes\*\*, for (60 s)", f"{CORE}/drain/volumes.rs", "VOLUME_WAIT"),
    (WHAT_HAPPENS, r"target groups every (3) to 6 s", f"{DRAIN}/aws/target_groups.rs", "POLL_INTERVAL"),
    (WHAT_HAPPENS, r"in all of them, for (ten minutes) at most", f"{DRAIN}/actions/after_drain.rs", "LET_GO_WITHIN"),
    (WHAT_HAPPENS, r"looks for the node every (2 s)", f"{DRAIN}/actions/launch.rs", "LOOK_EVERY"),
    (WHAT_HAPPENS, r"takes more than (200) invocations", f"{CORE}/continuation/limits.rs", "MOST_INVOCATIONS"),
    (WHAT_HAPPENS, r"within an hour and (15 s)", f"{CORE}/decision/times.rs", "AFTER_THE_WINDOW"),
    (WHAT_HAPPENS, r"checks every (10 minutes), for a day", f"{CORE}/decision/times.rs", "CHECK_EVERY"),
    (WHAT_HAPPENS, r"Spillway waits until (ten minutes) after the notice", f"{CORE}/continuation/limits.rs", "BACK_WITHIN"),
    (WHAT_HAPPENS, r"answers 401 or 403 for (two seconds)", f"{DRAIN}/context/retry_policy.rs", "DENIED_RETRIES"),
    (WHAT_HAPPENS, r"does not answer for (15 s)", f"{DRAIN}/actions/give_back.rs", "REACHED_WITHIN"),
    (WHAT_HAPPENS, r"watches the node until (90 s) after the notice", f"{CORE}/continuation/limits.rs", "SILENT_WITHIN"),
    (WHAT_HAPPENS, r"waits (three seconds), then evicts pods too", f"{DRAIN}/drain/mod.rs", "HEAD_START"),
    (WHAT_HAPPENS, r"Events are sent (ten) at a time", f"{DRAIN}/drain/side_task.rs", "REQUESTS_AT_ONCE"),
    (NOTICES, r"there are more than (five), the newest claims", f"{CORE}/node/pace.rs", "LIMIT"),
    (NOTICES, r"from (30 minutes) before its turn", f"{DRAIN}/actions/postpone.rs", "TAINTED_FOR"),
    (NOTICES, r"a schedule tries again after (3 minutes)", f"{CORE}/decision/times.rs", "TURN_AFTER"),
    (NOTICES, r"at the start, minus (ten minutes), minus twice", f"{CORE}/decision/times.rs", "RESERVE"),
    (NOTICES, r"more than (five minutes) ahead of the clock", f"{CORE}/decision/plausible.rs", "CLOCKS_APART"),
    (NOTICES, r"event bus and Lambda's queue \((2 hours)\)", f"{CORE}/decision/plausible.rs", "QUEUED"),
    (NOTICES, r"or of a hook \((48 hours)\)", f"{CORE}/decision/plausible.rs", "HOOK_WAITS"),
    (NOTICES, r"maintenance: more than (366 days)", f"{CORE}/decision/plausible.rs", "ANNOUNCED"),
    (NOTICES, r"the instance still runs (10 minutes) later", f"{CORE}/decision/behind.rs", "GONE_AFTER"),
    (NOTICES, r"there are more than (1,000): the rest is left out", f"{DRAIN}/actions/fan_out.rs", "MOST_INSTANCES"),
    (NOTICES, r"the instances (30 minutes) before the block's end", "crates/notice/src/capacity_block.rs", "INSTANCES_GO_BEFORE"),
    (ANNOUNCEMENTS, r"Any 2xx within (five seconds)", "functions/announce/src/http.rs", "TIMEOUT"),
    (ANNOUNCEMENTS, r"has an effect within (five minutes)", "functions/announce/src/stored.rs", "FRESH"),
    (TROUBLESHOOTING, r"a (minute and a half) before the window ends", f"{DRAIN}/context/retry_policy.rs", "LAMBDA_RETRY"),
)


def value(file: str, constant: str) -> float:
    """A count, or a time in seconds."""
    expression = re.search(rf"const {constant}: [^=]+= (?:\w+::from_(\w+)\()?([\d_ *]+)\)?;", text(file))
    assert expression, f"{file} has no constant {constant} of such a form"
    number = 1
    for factor in expression[2].replace("_", "").split("*"):
        number *= int(factor)
    return number * SECONDS.get(expression[1], 1)


def said(words: str) -> float:
    number, _, unit = words.replace("minute and a half", "90 s").partition(" ")
    return float(WORDS.get(number) or number.replace(",", "")) * UNITS.get(unit, 1)


class Numbers(unittest.TestCase):
    def test_each_is_that_of_the_code(self) -> None:
        for page, words, file, constant in NUMBERS:
            with self.subTest(page=page, words=words):
                found = re.search(words.replace(" ", r"\s+"), text(page))
                self.assertIsNotNone(found, "the page does not say so")
                self.assertEqual(said(" ".join(found[1].split())), value(file, constant))


class Readme(unittest.TestCase):
    def test_bill_is_that_of_the_metrics(self) -> None:
        bills = [re.findall(r"at\s+most\s+(\d+)\s+USD\s+a\s+month", text(page)) for page in ("README.md", "docs/metrics.md")]
        self.assertEqual(bills, [["10", "53"]] * 2)

    def test_times_are_those_of_the_bench(self) -> None:
        page = text("docs/contributing/measured/bench.md")
        for tool in ("Spillway", "as its chart installs it"):
            row = re.search(rf"^\| [^|]*{tool} \| ([\d.]+ s) \| ([\d,]+) of 1,000 \|$", text("README.md"), re.M)
            measured = re.search(rf"^\| 50 nodes × 20 pods \| [^|]*{tool} \| \d+ \| \d+ / (\d+) \| ([\d.]+ s) \|", page, re.M)
            self.assertEqual((row[1], row[2].replace(",", "")), (measured[2], measured[1]))


if __name__ == "__main__":
    unittest.main()
