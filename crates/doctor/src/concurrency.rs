//! Whether Lambda may run as many drains at once as there are nodes to drain: each takes one of the account's concurrent
//! executions for its whole length.

use spillway_drainer::aws::{self, CallError, Itself};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, counted};

const ID: CheckId = CheckId::Concurrency;
const ACCOUNT_SETTINGS: &str = "lambda:GetAccountSettings";
/// What accounts have that are not new (Lambda's quota L-B99A9384): who asks for more than they have gets no less.
const USUAL: usize = 1000;
/// Fewest free executions: below, a few blocked hooks leave none for a spot notice. A new account has 10.
const LEAST: usize = 50;

/// How many invocations may run at once. Asked until `end`.
pub(crate) async fn limit(itself: &Itself, end: Instant) -> Result<u64, CallError> {
    aws::until(ACCOUNT_SETTINGS, asked_until(end), || itself.concurrency_limit()).await
}

/// The check, where so many nodes are Spillway's to drain in all clusters that could be looked at.
pub(crate) fn look(limit: &Result<u64, CallError>, nodes: usize) -> Check {
    let limit = match limit {
        Ok(limit) => usize::try_from(*limit).unwrap_or(usize::MAX),
        Err(error) => return unknown(error),
    };
    let what = format!(
        "Lambda runs {} at once for this account, and {} are Spillway's to drain",
        counted(limit, "invocation"),
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
    let what = format!("nobody knows how many drains may run at once: {}", chain(error));
    let to_do =
        "look at the limit yourself: docs/install.md has the command; give the role the right if that was denied";
    let finding = Finding::new(FindingId::ConcurrencyUnknown, Severity::Unknown, ACCOUNT_SETTINGS, what, to_do);
    Check::made(ID, "Lambda did not tell its limit", vec![finding])
}

/// Finding of an account in which blocked hooks alone can use up all executions.
fn too_few_for_hooks(limit: usize, nodes: usize) -> Finding {
    let what = format!(
        "Lambda's quota L-B99A9384 leaves {limit} free, fewer than {LEAST}: each drain of a lifecycle hook takes one until its last \
         pod has gone, and beside {limit} blocked hooks a spot notice finds none in its two minutes"
    );
    low(Severity::Fail, what, nodes)
}

fn too_few(limit: usize, nodes: usize) -> Finding {
    let what = format!(
        "Lambda runs {limit} at once, of all functions, and {nodes} nodes are Spillway's to drain: if more of them go together, \
         the last notices wait for a free slot, past their two minutes"
    );
    low(Severity::Warn, what, nodes)
}

fn low(severity: Severity, what: String, nodes: usize) -> Finding {
    let wanted = nodes.max(USUAL);
    let to_do = "ask for at least as many as nodes may go at once, and what your other functions need";
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
    fn nodes_that_lambda_could_not_drain_all_at_once_are_told_with_what_to_ask_for() {
        assert_eq!(look(&Ok(60), 60).findings, []);
        let check = look(&Ok(60), 61);
        let [finding] = &check.findings[..] else { panic!("{check:?}") };
        assert_eq!(finding.severity, Severity::Warn);
        assert!(finding.what.contains("runs 60 at once, of all functions, and 61 nodes"), "{finding:?}");
        let asks_for =
            |nodes| look(&Ok(60), nodes).findings[0].command.clone().unwrap().rsplit(' ').next().map(str::to_owned);
        assert_eq!(asks_for(61).as_deref(), Some("1000"), "no less than what accounts usually have");
        assert_eq!(asks_for(2400).as_deref(), Some("2400"));
    }

    #[test]
    fn fewer_than_fifty_free_executions_fail() {
        assert_eq!(look(&Ok(50), 0).findings, []);
        let check = look(&Ok(49), 0);
        let [finding] = &check.findings[..] else { panic!("{check:?}") };
        assert_eq!(finding.severity, Severity::Fail);
        assert!(finding.what.contains("quota L-B99A9384") && finding.what.contains("blocked hooks"), "{finding:?}");
    }

    #[test]
    fn a_limit_that_is_not_told_is_unknown() {
        let check = look(&Err(CallError::unanswered(ACCOUNT_SETTINGS, "the time was up")), 48);
        assert_eq!(check.findings[0].id, FindingId::ConcurrencyUnknown);
    }
}
