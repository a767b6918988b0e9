"""Rules of the scenarios (docs/contributing/development.md): a reason for each file, and no deadline that a loaded machine misses."""

import pathlib
import re
import unittest

SCENARIOS = pathlib.Path(__file__).parents[1] / "e2e" / "tests" / "scenarios"
REASONS = {"API semantics", "connection", "admission", "process", "whole way"}
# Deadlines of the product, in seconds: of a hook, an invocation, a notice's window, the lead and the start of maintenance.
DEADLINE = re.compile(
    r"(?:heartbeat_timeout|global_timeout|with_invocations_of|interrupt)\((?:Duration::from_secs\()?(\d+)\)"
    r"|timeout: Duration::from_secs\((\d+)\)|let timeout = Duration::from_secs\((\d+)\)"
    r"|in_s\((\d+)\)|const LEAD_S: i64 = (\d+);"
)
SENT_AGO = re.compile(r"spot_notice\([^;]*?now\(\) - (?:\w+::)?from_secs\((\d+)\)")
# Differences of clocks, and faults that end by the clock.
CLOCKS = re.compile(r"assert[^;]*\b(?:duration_since|elapsed|as_secs_f64)\(|Which::For\(")


def files():
    files = sorted(path for path in SCENARIOS.glob("**/*.rs") if path.name not in ("main.rs", "case.rs", "verdict.rs"))
    return [(path.name, path.read_text()) for path in files]


class Scenarios(unittest.TestCase):
    def test_each_file_names_its_reason(self):
        for name, text in files():
            reasons = re.search(r"^//! Reason: (.+)\.$", text, re.MULTILINE)
            self.assertIsNotNone(reasons, name)
            self.assertLessEqual(set(reasons[1].split(", ")), REASONS, name)

    def test_no_deadline_is_under_a_minute(self):
        for name, text in files():
            for found in DEADLINE.finditer(text):
                self.assertGreaterEqual(int(next(filter(None, found.groups()))), 60, f"{name}: {found[0]}")
            for found in SENT_AGO.finditer(text):
                self.assertLessEqual(int(found[1]), 60, f"{name}: {found[0]}")

    def test_no_clocks_are_compared(self):
        for name, text in files():
            self.assertIsNone(CLOCKS.search(text), name)


if __name__ == "__main__":
    unittest.main()
