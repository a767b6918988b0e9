//! Writes the report as JSON log lines.

use jiff::Timestamp;
use serde::Serialize;

use crate::report::{Check, CheckStatus, SelfTestReport};

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Line<'a> {
    timestamp: Timestamp,
    level: &'static str,
    message: String,
    #[serde(flatten)]
    report: &'a SelfTestReport,
}

/// Returns one log line for each check, or several lines if the check is too large for one line.
pub(crate) fn lines(report: &SelfTestReport, now: Timestamp) -> impl Iterator<Item = String> {
    report.checks.iter().flat_map(Check::in_parts).map(move |check| {
        let level = match check.status {
            CheckStatus::Ok | CheckStatus::Skipped => "INFO",
            CheckStatus::Warn | CheckStatus::Unknown => "WARN",
            CheckStatus::Fail => "ERROR",
        };
        let message = format!("self-test: {}", check.what);
        let line = Line { timestamp: now, level, message, report: &report.of_one(check) };
        serde_json::to_string(&line).expect("a report is plain data with string keys")
    })
}

#[cfg(test)]
mod tests {
    use spillway_core::clock::Clock;
    use spillway_receipt::{LONGEST_LINE, schema};

    use super::*;
    use crate::catalogue::{CheckId, FindingId};
    use crate::report::{Finding, HeldUpNode, Severity};

    #[tokio::test(start_paused = true)]
    async fn every_finding_fits_into_a_short_line() {
        let node = |n: usize| format!("{n:0>250}");
        let finding = |n: usize| {
            let what = "w".repeat(2_000);
            Finding::new(FindingId::DoNotDisrupt, Severity::Warn, format!("pod {n}"), what, "").on((0..20).map(node))
        };
        let held_up = |n| HeldUpNode { node: node(n), because: vec![node(n); 3] };
        let nodes = Check::made(CheckId::Nodes, "all", (0..30).map(finding).collect());
        let checks = vec![nodes.with_nodes((0..50).map(held_up).collect()), Check::skipped(CheckId::Hooks, "none")];
        let report = SelfTestReport::new("r-1", Clock::start(), checks);
        let lines: Vec<_> = lines(&report, Timestamp::UNIX_EPOCH).collect();
        assert!(lines.iter().all(|line| line.len() <= LONGEST_LINE), "{:?}", lines.iter().map(String::len));
        let lines: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let count = |what: &str| lines.iter().filter_map(|line| line["checks"][0][what].as_array()).map(Vec::len).sum();
        let counts: [usize; 2] = ["findings", "nodes"].map(count);
        assert_eq!(counts, [30, 50]);
        assert!(lines.iter().all(|line| line["checks"].as_array().unwrap().len() == 1 && line["request_id"] == "r-1"));
    }

    #[test]
    fn schema_of_the_page_is_that_of_the_types() {
        schema::is_documented::<Line<'_>>("self-test.schema.json", "Spillway's self-test, as a line of the log");
    }
}
