use super::*;

fn found(severity: Severity) -> Check {
    Check::made(
        CheckId::Nodes,
        "nodes",
        vec![Finding::new(FindingId::DoNotDisrupt, severity, "pod shop/web", "is not to be disrupted", "look")],
    )
}

fn report(checks: Vec<Check>) -> SelfTestReport {
    SelfTestReport::new("r-1", Clock::starting_at(Timestamp::UNIX_EPOCH), checks)
}

#[tokio::test(start_paused = true)]
async fn the_verdict_is_that_of_the_worst_check() {
    let skipped = || Check::skipped(CheckId::Hooks, "the settings do not want it");
    let unknown = || Check::unknown(CheckId::Nth, "no answer");
    let verdict = |checks| {
        let SelfTestReport { status, summary, .. } = report(checks);
        (status, summary)
    };
    let told = |status, summary: &str| (status, summary.to_owned());
    assert_eq!(
        verdict(vec![found(Severity::Info), skipped()]),
        told(CheckStatus::Ok, "the next notice would be handled: 2 checks, 1 of them not made, 0 failures, 0 warnings")
    );
    assert_eq!(
        verdict(vec![found(Severity::Warn)]),
        told(
            CheckStatus::Warn,
            "the next notice would be handled, and not as well as it could: 1 check, 0 failures, 1 warning"
        )
    );
    assert_eq!(
        verdict(vec![found(Severity::Warn), unknown(), found(Severity::Unknown), skipped()]),
        told(
            CheckStatus::Unknown,
            "nobody knows whether the next notice would be handled: 4 checks, 2 of them could not be made in full, \
             1 of them not made, 0 failures, 1 warning"
        )
    );
    assert_eq!(
        verdict(vec![unknown(), found(Severity::Fail)]),
        told(
            CheckStatus::Fail,
            "the next notice may well go wrong: 2 checks, 1 of them could not be made in full, 1 failure, 0 warnings"
        )
    );
}
