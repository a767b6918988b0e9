//! Calls to AWS: what each service is asked, and for how long.

pub mod ec2;
pub(crate) mod events;
pub mod itself;
pub(crate) mod lifecycle;
pub(crate) mod managed_tag;
pub(crate) mod queue;
pub(crate) mod retention;
pub(crate) mod target_groups;

pub use itself::Itself;
pub use lifecycle::timeouts as hook_timeouts;
pub use retention::keeps_abandoned;
pub use spillway_aws_call::{CallError, CallErrorKind};
use spillway_retry as retry;
use spillway_startup::logs::chain;
use tokio::time::Instant;

/// Makes a call again and again until it is answered or `end` is here.
pub async fn until<T, F>(action: &'static str, end: Instant, mut call: impl FnMut() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let retrying = |error: &CallError| tracing::warn!(error = chain(error), "{action} failed; trying again");
    let called = retry::until(end, async || call().await, retrying).await;
    called.map_err(|stopped| stopped.error_or(CallError::unanswered(action, "the time was up")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_is_given_up_when_its_time_is_over_and_says_so() {
        let end = Instant::now() + std::time::Duration::from_secs(5);
        let given_up = until::<(), _>("ec2:DescribeInstances", end, std::future::pending).await.expect_err("it hangs");
        assert_eq!(chain(&given_up), "ec2:DescribeInstances got no answer: the time was up");
        assert_eq!(Instant::now(), end);
    }
}
