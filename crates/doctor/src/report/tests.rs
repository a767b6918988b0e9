use serde_json::json;

use super::*;

/// Check as text, with its findings.
pub(crate) fn shown(check: &Check) -> String {
    let finding = |finding: &Finding| {
        let Finding { id, severity, object, what, to_do, command, .. } = finding;
        let (id, command) = (json!(id), command.as_deref().unwrap_or("no command"));
        format!("{severity:?} {}\n{object}: {what}\n-> {to_do}\n$ {command}\n", id.as_str().unwrap())
    };
    let findings: Vec<_> = check.findings.iter().map(finding).collect();
    format!("{:?}: {}\n\n{}", check.status, check.what, findings.join("\n"))
}

fn found(severity: Severity) -> Check {
    Check::made(
        CheckId::Nodes,
        "nodes",
        vec![Finding::new(FindingId::DoNotDisrupt, severity, "pod shop/web", "has an annotation", "remove it")],
    )
}

fn report(checks: Vec<Check>) -> SelfTestReport {
    SelfTestReport::new("r-1", Clock::starting_at(Timestamp::UNIX_EPOCH), checks)
}

#[tokio::test(start_paused = true)]
async fn worst_check_decides_the_verdict() {
    let skipped = || Check::skipped(CheckId::Hooks, "not needed");
    let unknown = || Check::unknown(CheckId::Nth, "no answer");
    let verdict = |checks| {
        let SelfTestReport { status, summary, .. } = report(checks);
        (status, summary)
    };
    for (checks, status, summary) in [
        (
            vec![found(Severity::Info), skipped()],
            CheckStatus::Ok,
            "the next notice would be handled (2 checks, 1 skipped, 0 failures, 0 warnings)",
        ),
        (
            vec![found(Severity::Warn)],
            CheckStatus::Warn,
            "the next notice would be handled, but not as well as possible (1 check, 0 failures, 1 warning)",
        ),
        (
            vec![found(Severity::Warn), unknown(), found(Severity::Unknown), skipped()],
            CheckStatus::Unknown,
            "the next notice may fail: some checks are incomplete (4 checks, 2 incomplete, 1 skipped, 0 failures, 1 warning)",
        ),
        (
            vec![unknown(), found(Severity::Fail)],
            CheckStatus::Fail,
            "the next notice may fail (2 checks, 1 incomplete, 1 failure, 0 warnings)",
        ),
    ] {
        assert_eq!(verdict(checks), (status, summary.to_owned()));
    }
}
