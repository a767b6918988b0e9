//! How long to try a cluster that does not answer, or that denies us.

use std::time::Duration;

use tokio::time::Instant;

/// Lambda's first retry comes a minute after an attempt that failed, and has half a minute left for the drain.
const FOR_A_RETRY: Duration = Duration::from_secs(90);
/// A busy authenticator answers 401 for a moment, an API server that has just started 403 until it has read the roles; a cluster
/// that is not ours answers so for ever.
const FOR_A_MOMENT: Duration = Duration::from_secs(2);

/// Until when something is tried in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    pub(crate) end: Instant,
    not_let_in: NotLetIn,
}

/// How long to retry after 401 or 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotLetIn {
    /// A 401, until then if it first comes before, else to the end: an outage may come before it. A 403 is a right that somebody
    /// has to give, and Lambda's retries are there for one that passes.
    Until(Instant),
    /// From the first such answer on: an outage may come before it.
    For(Duration),
}

impl Patience {
    /// For uncordoning. A cluster that denies us cannot hold a node that we cordoned, so this gives up after a moment.
    pub(crate) fn of_giving_back(end: Instant) -> Self {
        Self { end, not_let_in: NotLetIn::For(FOR_A_MOMENT) }
    }

    /// Whether to retry after a 401 or 403 now, when the first of them came at `first`.
    pub(super) fn bears(self, code: u16, first: Instant) -> bool {
        match self.not_let_in {
            NotLetIn::Until(until) => code == 401 && Instant::now() < if first < until { until } else { self.end },
            NotLetIn::For(time) => Instant::now() < first + time,
        }
    }
}

/// For a drain: retry until its end, but fail on 401 early enough that Lambda can retry, if there is time for that.
impl From<Instant> for Patience {
    fn from(end: Instant) -> Self {
        let for_a_retry = end.checked_sub(FOR_A_RETRY).filter(|at| *at > Instant::now());
        Self { end, not_let_in: NotLetIn::Until(for_a_retry.unwrap_or(end)) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// For how many seconds an answer is retried that first comes `after_s` seconds after the beginning.
    async fn bears_for(code: u16, patience: Patience, after_s: u64) -> u64 {
        advance(Duration::from_secs(after_s)).await;
        let first = Instant::now();
        while patience.bears(code, first) {
            advance(Duration::from_secs(1)).await;
        }
        first.elapsed().as_secs()
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_let_in_says_so_early_enough_for_a_retry_or_asks_to_the_end() {
        assert_eq!(bears_for(401, in_seconds(120).into(), 0).await, 30);
        assert_eq!(bears_for(401, in_seconds(30).into(), 0).await, 30, "Lambda's retry would come too late");
        assert_eq!(bears_for(401, in_seconds(120).into(), 40).await, 80, "Lambda's retry would come too late by now");
        assert_eq!(bears_for(403, in_seconds(30).into(), 0).await, 0, "a right is missing");
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_back_bears_a_server_that_is_busy_or_starts_as_long_after_an_outage_as_at_once() {
        for code in [401, 403] {
            let at_once = bears_for(code, Patience::of_giving_back(in_seconds(15)), 0).await;
            assert_eq!(at_once, 2);
            assert_eq!(bears_for(code, Patience::of_giving_back(in_seconds(15)), 10).await, at_once);
        }
    }
}
