//! Calls the AWS APIs that a drain needs.

pub mod ec2;
pub(crate) mod events;
pub mod itself;
pub(crate) mod lifecycle;
pub(crate) mod managed_tag;
pub(crate) mod queue;
pub(crate) mod replacement;
pub(crate) mod retention;
pub(crate) mod target_groups;

pub use itself::Itself;
pub use lifecycle::timeouts as hook_timeouts;
pub use replacement::state_of as group_state;
pub use retention::keeps_abandoned;
pub use spillway_aws_call::{CallError, CallErrorKind};
use spillway_retry as retry;
use spillway_startup::logs::chain;
use tokio::time::Instant;

/// Repeats a call after transient failures, until `end`.
pub async fn until<T, F>(action: &'static str, end: Instant, mut call: impl FnMut() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let retrying = |error: &CallError| tracing::warn!(error = chain(error), "{action} failed; trying again");
    let called = retry::until(end, async || call().await, retrying).await;
    called.map_err(|stopped| stopped.error_or(CallError::unanswered(action, "the time was up")))
}
