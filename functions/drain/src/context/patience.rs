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
    /// Until when a 401 is taken for that of a busy authenticator.
    pub(super) lets_us_in: Instant,
}

impl Patience {
    /// For what is given back, and by nobody who is not let in: where we may not enter we have cordoned nothing.
    pub(crate) fn of_giving_back(end: Instant) -> Self {
        Self { end, lets_us_in: end.min(Instant::now() + WHILE_THE_AUTHENTICATOR_IS_BUSY) }
    }
}

/// For a drain: to its end; but who is not let in says so in time for one of Lambda's retries, if there is time for one.
impl From<Instant> for Patience {
    fn from(end: Instant) -> Self {
        let for_a_retry = end.checked_sub(FOR_A_RETRY).filter(|at| *at > Instant::now());
        Self { end, lets_us_in: for_a_retry.unwrap_or(end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lets_us_in_within(window: u64) -> u64 {
        let now = Instant::now();
        (Patience::from(now + Duration::from_secs(window)).lets_us_in - now).as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_let_in_says_so_early_enough_for_a_retry_or_asks_to_the_end() {
        assert_eq!(lets_us_in_within(120), 30);
        assert_eq!(lets_us_in_within(30), 30, "Lambda's retry would come too late");
    }

    #[tokio::test(start_paused = true)]
    async fn giving_back_never_goes_on_past_its_end() {
        let end = Instant::now() + Duration::from_secs(1);
        assert_eq!(Patience::of_giving_back(end).lets_us_in, end);
    }
}
