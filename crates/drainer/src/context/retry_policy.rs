//! Decides whether a failed request to a cluster is retried.

use std::cell::OnceCell;
use std::time::Duration;

use spillway_retry::Transient as _;
use tokio::time::Instant;

use crate::failure::Failure;

/// Time that Lambda's first retry needs: a minute until the start, and half a minute for the drain.
const LAMBDA_RETRY: Duration = Duration::from_secs(90);
/// Time for retries after the first 401 or 403 of an uncordon. A busy or starting API server may deny allowed requests.
const DENIED_RETRIES: Duration = Duration::from_secs(2);

/// Policy for retries of work in a cluster. Transient failures are retried until `end`, but 401 and 403 for a shorter time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryPolicy {
    /// A 403 is not retried. A 401 is retried until `unauthorized_until`. If the first 401 comes later, a 401 is retried until
    /// `end`.
    Drain { end: Instant, unauthorized_until: Instant },
    /// A 401 or 403 is retried for two seconds ([`DENIED_RETRIES`]).
    Uncordon { end: Instant },
}

impl RetryPolicy {
    pub(super) fn end(self) -> Instant {
        match self {
            Self::Drain { end, .. } | Self::Uncordon { end } => end,
        }
    }

    /// Returns `true` if the work is retried after this failure. `first_denied` stores the time of the first 401 or 403.
    pub(super) fn retries(self, failure: &Failure, first_denied: &OnceCell<Instant>) -> bool {
        match failure.denied_code() {
            Some(code) => self.retries_denied(code, *first_denied.get_or_init(Instant::now)),
            None => failure.is_transient(),
        }
    }

    fn retries_denied(self, code: u16, first: Instant) -> bool {
        let until = match self {
            Self::Drain { .. } if code == 403 => return false,
            Self::Drain { unauthorized_until, .. } if first < unauthorized_until => unauthorized_until,
            Self::Drain { end, .. } => end,
            Self::Uncordon { .. } => first + DENIED_RETRIES,
        };
        Instant::now() < until
    }
}

/// Policy of a drain that ends at the given time.
impl From<Instant> for RetryPolicy {
    fn from(end: Instant) -> Self {
        let for_a_retry = end.checked_sub(LAMBDA_RETRY).filter(|at| *at > Instant::now());
        Self::Drain { end, unauthorized_until: for_a_retry.unwrap_or(end) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// Seconds of retries after a denial that first comes `after_s` seconds after the begin.
    async fn retried_for(code: u16, policy: RetryPolicy, after_s: u64) -> u64 {
        advance(Duration::from_secs(after_s)).await;
        let first = Instant::now();
        while policy.retries_denied(code, first) {
            advance(Duration::from_secs(1)).await;
        }
        first.elapsed().as_secs()
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn denied_drain_fails_in_time_for_lambdas_retry() {
        assert_eq!(retried_for(401, in_seconds(120).into(), 0).await, 30);
        assert_eq!(retried_for(401, in_seconds(30).into(), 0).await, 30, "too late for Lambda's retry");
        assert_eq!(retried_for(401, in_seconds(120).into(), 40).await, 80, "too late for Lambda's retry");
        assert_eq!(retried_for(403, in_seconds(30).into(), 0).await, 0, "a permission is missing");
    }

    #[tokio::test(start_paused = true)]
    async fn denied_uncordon_fails_two_seconds_after_the_first_denial() {
        for (code, after_s) in [(401, 0), (403, 0), (401, 10), (403, 10)] {
            assert_eq!(retried_for(code, RetryPolicy::Uncordon { end: in_seconds(15) }, after_s).await, 2);
        }
    }
}
