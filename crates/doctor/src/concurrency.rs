//! Checks that the account's Lambda concurrency limit suffices: each drain takes one execution.

use spillway_drainer::aws::{self, CallError, Itself};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, counted};
use crate::retry_end;

const ID: CheckId = CheckId::Concurrency;
const ACCOUNT_SETTINGS: &str = "lambda:GetAccountSettings";
/// Usual concurrency limit of an account (Lambda quota L-B99A9384). AWS accepts no request for less.
const USUAL: usize = 1000;
/// Minimum concurrency limit. With a lower limit, blocked drains may occupy all executions.
const LEAST: usize = 50;

pub(crate) async fn limit(itself: &Itself, end: Instant) -> Result<u64, CallError> {
    aws::until(ACCOUNT_SETTINGS, retry_end(end), || itself.concurrency_limit()).await
}

pub(crate) fn run_check(limit: &Result<u64, CallError>, nodes: usize) -> Check {
    let limit = match limit {
        Ok(limit) => usize::try_from(*limit).unwrap_or(usize::MAX),
        Err(error) => return unknown(error),
    };
    let what = format!(
        "the account has {}, and Spillway drains {}",
        counted(limit, "concurrent execution"),
        counted(nodes, "node")
    );
    let finding = match limit {
        ..LEAST => Some(too_few_for_hooks(limit, nodes)),
        _ if limit < nodes => Some(too_few(limit, nodes)),
        _ => None,
    };
    Check::made(ID, what, finding.into_iter().collect())
}

fn unknown(error: &CallError) -> Check {
    let what = format!("cannot be read, so that the number of simultaneous drains is unknown: {}", chain(error));
    let to_do = "read the limit by the command in docs/install.md; give the role the right if it is denied";
    let finding = Finding::new(FindingId::ConcurrencyUnknown, Severity::Unknown, ACCOUNT_SETTINGS, what, to_do);
    Check::made(ID, "the concurrency limit is unknown", vec![finding])
}

/// Reports a limit so low that blocked drains may occupy all executions.
fn too_few_for_hooks(limit: usize, nodes: usize) -> Finding {
    let what = format!(
        "are too few: Lambda's quota L-B99A9384 leaves {limit}, fewer than {LEAST}. Each drain for a lifecycle hook takes one until \
         its last pod has gone, and beside {limit} blocked hooks a spot notice gets none in its two minutes"
    );
    low(Severity::Fail, what, nodes)
}

fn too_few(limit: usize, nodes: usize) -> Finding {
    let what = format!(
        "are {limit} for all functions, but Spillway drains {nodes} nodes: if more of them end together, the last notices wait for \
         a free execution, past their two minutes"
    );
    low(Severity::Warn, what, nodes)
}

fn low(severity: Severity, what: String, nodes: usize) -> Finding {
    let wanted = nodes.max(USUAL);
    let to_do = "request one execution for each node that may end at the same time, and those of your other functions";
    let command = format!(
        "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value {wanted}"
    );
    Finding::new(FindingId::ConcurrencyLow, severity, "the account's concurrent executions", what, to_do)
        .with_command(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_nodes_than_executions_are_a_warning() {
        assert_eq!(run_check(&Ok(60), 60).findings, []);
        let check = run_check(&Ok(60), 61);
        let [finding] = &check.findings[..] else { panic!("{check:?}") };
        assert_eq!(finding.severity, Severity::Warn);
        assert!(finding.what.contains("60 for all functions, but Spillway drains 61 nodes"), "{finding:?}");
    }

    #[test]
    fn fewer_than_fifty_executions_fail_and_no_answer_is_unknown() {
        assert_eq!(run_check(&Ok(50), 0).findings, []);
        let check = run_check(&Ok(49), 0);
        let [finding] = &check.findings[..] else { panic!("{check:?}") };
        assert_eq!(finding.severity, Severity::Fail);
        assert!(finding.what.contains("quota L-B99A9384") && finding.what.contains("blocked hooks"), "{finding:?}");
        let check = run_check(&Err(CallError::unanswered(ACCOUNT_SETTINGS, "the time was up")), 48);
        assert_eq!(check.findings[0].id, FindingId::ConcurrencyUnknown);
    }
}
