//! For how long a cluster is tried that does not answer, or does not know us.

use std::time::Duration;

use tokio::time::Instant;

/// Lambda's first retry comes a minute after an attempt that failed, and has half a minute left for the drain.
const FOR_A_RETRY: Duration = Duration::from_secs(90);
/// A busy authenticator answers 401 for a moment; a cluster that does not know us answers so for ever.
const WHILE_THE_AUTHENTICATOR_IS_BUSY: Duration = Duration::from_secs(2);

/// Until when something is tried in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    pub(crate) end: Instant,
    with_401: With401,
}

/// For how long a 401 is taken for that of a busy authenticator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum With401 {
    Until(Instant),
    /// From the first one on: an outage may come before it.
    For(Duration),
}

impl Patience {
    /// For what is given back, and by nobody who is not let in: where we may not enter we have cordoned nothing.
    pub(crate) fn of_giving_back(end: Instant) -> Self {
        Self { end, with_401: With401::For(WHILE_THE_AUTHENTICATOR_IS_BUSY) }
    }

    /// Whether a 401 is tried again now that is the first one since then.
    pub(super) fn bears_401(self, since: Instant) -> bool {
        let until = match self.with_401 {
            With401::Until(until) => until,
            With401::For(time) => since + time,
        };
        Instant::now() < until
    }
}

/// For a drain: to its end; but who is not let in says so in time for one of Lambda's retries, if there is time for one.
impl From<Instant> for Patience {
    fn from(end: Instant) -> Self {
        let for_a_retry = end.checked_sub(FOR_A_RETRY).filter(|at| *at > Instant::now());
        Self { end, with_401: With401::Until(for_a_retry.unwrap_or(end)) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// For how many seconds a 401 is tried again that comes so long after the beginning.
    async fn bears_401_for(patience: Patience, after_s: u64) -> u64 {
        advance(Duration::from_secs(after_s)).await;
        let first = Instant::now();
        while patience.bears_401(first) {
            advance(Duration::from_secs(1)).await;
        }
        first.elapsed().as_secs()
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_let_in_says_so_early_enough_for_a_retry_or_asks_to_the_end() {
        assert_eq!(bears_401_for(in_seconds(120).into(), 0).await, 30);
        assert_eq!(bears_401_for(in_seconds(30).into(), 0).await, 30, "Lambda's retry would come too late");
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_back_bears_a_busy_authenticator_as_long_after_an_outage_as_at_once() {
        let at_once = bears_401_for(Patience::of_giving_back(in_seconds(15)), 0).await;
        assert!(at_once > 0);
        assert_eq!(bears_401_for(Patience::of_giving_back(in_seconds(15)), 10).await, at_once);
    }
}
