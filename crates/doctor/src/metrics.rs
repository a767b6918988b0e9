//! Writes the report as CloudWatch metrics.

use jiff::Timestamp;
use serde_json::json;
use spillway_startup::emf::{self, Breakdown, Metric, Unit};

use crate::report::{CheckStatus, SelfTestReport, Severity};
use crate::request::SelfTestRequest;

/// Returns the metrics as a log line. `None` if only one cluster was checked, because alarms are about all clusters.
pub(crate) fn line(report: &SelfTestReport, request: &SelfTestRequest, stack: &str, now: Timestamp) -> Option<String> {
    if request.cluster.is_some() {
        return None;
    }
    let metrics: Vec<_> = metrics(report).map(|(name, unit, value)| (name, unit, json!(value))).collect();
    Some(emf::line(stack, &metrics, &Breakdown::default(), now))
}

/// Returns the metrics in docs/metrics.md. If the report is incomplete, `Findings` is omitted and `SelfTests` is 0.
fn metrics(report: &SelfTestReport) -> impl Iterator<Item = Metric<usize>> {
    let is_known = report.status != CheckStatus::Unknown;
    let findings = is_known.then(|| report.count(Severity::Fail));
    [
        Some(("SelfTests", Unit::Count, usize::from(is_known))),
        findings.map(|findings| ("Findings", Unit::Count, findings)),
        Some(("Warnings", Unit::Count, report.count(Severity::Warn))),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use spillway_core::clock::Clock;
    use spillway_core::cluster::ClusterName;

    use super::*;
    use crate::catalogue::CheckId;
    use crate::report::Check;

    fn report(checks: Vec<Check>) -> SelfTestReport {
        SelfTestReport::new("r-1", Clock::start(), checks)
    }

    #[tokio::test(start_paused = true)]
    async fn self_test_of_one_cluster_has_no_metrics() {
        let of_one = SelfTestRequest { cluster: Some(ClusterName::new("prod")), ends_deployment: false };
        assert_eq!(line(&report(Vec::new()), &of_one, "spillway", Timestamp::UNIX_EPOCH), None);
    }

    #[tokio::test(start_paused = true)]
    async fn page_lists_each_metric_with_its_unit() {
        let page = include_str!("../../../docs/metrics.md");
        let (_, section) = page.split_once("Each [self-test]").expect("a table");
        let rows = section.lines().skip_while(|line| !line.starts_with("| `"));
        let rows = rows.take_while(|line| line.starts_with("| `"));
        let cells = |row: &'static str| row.split('|').map(str::trim).collect::<Vec<_>>();
        let documented: Vec<_> = rows.map(cells).map(|row| (row[1].trim_matches('`'), row[2])).collect();
        let made: Vec<_> = metrics(&report(Vec::new())).map(|(name, unit, _)| (name, unit.as_str())).collect();
        assert_eq!(documented, made);
    }

    #[tokio::test(start_paused = true)]
    async fn incomplete_report_has_no_failures_and_no_self_test() {
        let made = |check| metrics(&report(vec![check])).map(|(name, _, value)| (name, value)).collect::<Vec<_>>();
        assert_eq!(made(Check::unknown(CheckId::Nodes, "no answer")), [("SelfTests", 0), ("Warnings", 0)]);
        let all = [("SelfTests", 1), ("Findings", 0), ("Warnings", 0)];
        assert_eq!(made(Check::skipped(CheckId::Hooks, "left to others")), all);
    }
}
