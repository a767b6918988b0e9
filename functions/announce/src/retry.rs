//! Retries within one invocation. If all attempts fail, SQS sends the event again later.

use std::error::Error;
use std::time::Duration;

use spillway_aws_call::CallError;
use spillway_retry::{Stopped, Transient, with_pauses};
use spillway_startup::logs::chain;
use tokio::time::Instant;

/// Pauses before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// Maximum `Retry-After` that the function waits for, because an invocation has only a minute.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Error text if the invocation ends before the webhook or AWS answers.
pub(crate) const TIME_UP: &str = "the time was up";

/// Calls `attempt` up to three times before the end of the invocation.
pub(crate) async fn retried<T, E: Transient + Error + 'static>(
    end: Instant,
    attempt: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, Stopped<E>> {
    with_pauses(end, PAUSES, attempt, |error| tracing::warn!(error = chain(error), "an attempt failed; trying again"))
        .await
}

/// Calls AWS up to three times before the end of the invocation.
pub(crate) async fn call<T>(
    action: &'static str,
    end: Instant,
    attempt: impl AsyncFnMut() -> Result<T, CallError>,
) -> Result<T, CallError> {
    retried(end, attempt).await.map_err(|stopped| stopped.error_or(CallError::unanswered(action, TIME_UP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn third_attempt_or_the_end_is_the_last() {
        let failing = async |end| {
            let mut attempts = 0;
            let attempt = async || {
                attempts += 1;
                Err::<(), _>(CallError::unanswered("sns:Publish", "it broke"))
            };
            let error = call("sns:Publish", end, attempt).await.expect_err("it fails");
            (attempts, chain(&error))
        };
        let text = "sns:Publish got no answer: it broke".to_owned();
        let begin = Instant::now();
        assert_eq!(failing(begin + Duration::from_secs(60)).await, (3, text.clone()));
        assert_eq!(begin.elapsed(), PAUSES.iter().sum::<Duration>());
        assert_eq!(failing(Instant::now() + Duration::from_secs(1)).await, (2, text));
    }
}
