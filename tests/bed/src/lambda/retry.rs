//! When Lambda's asynchronous queue tries an event again, and when it gives it up.
//!
//! As AWS documents it ("Error handling for asynchronous invocation"). Nothing waits here, and no clock is read.

use std::time::Duration;

use serde::Serialize;

/// The longest wait for a free execution.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// What a function's `EventInvokeConfig` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventInvokeConfig {
    pub(super) maximum_retry_attempts: usize,
    pub(super) maximum_event_age: Duration,
}

/// Where nobody says otherwise.
impl Default for EventInvokeConfig {
    fn default() -> Self {
        Self { maximum_retry_attempts: 2, maximum_event_age: Duration::from_hours(6) }
    }
}

/// What came of the latest attempt at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The function has failed, for so many times now.
    Failed { times: usize },
    /// No execution was free, for so many times in a row.
    Throttled { times: u32 },
    /// The function may have no execution at all.
    SwitchedOff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    AgainAfter(Duration),
    GivenUp(Condition),
}

/// Why an event is given up, in AWS' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Condition {
    RetriesExhausted,
    EventAgeExceeded,
    ZeroReservedConcurrency,
}

/// `age`: since the event was put into the queue.
pub(super) fn next(config: EventInvokeConfig, age: Duration, latest: Attempt) -> Next {
    let wait = match latest {
        Attempt::SwitchedOff => return Next::GivenUp(Condition::ZeroReservedConcurrency),
        Attempt::Failed { times } if times > config.maximum_retry_attempts => {
            return Next::GivenUp(Condition::RetriesExhausted);
        }
        Attempt::Failed { times: 1 } => Duration::from_mins(1),
        Attempt::Failed { .. } => Duration::from_mins(2),
        Attempt::Throttled { times } => {
            let doubled = 1_u64.checked_shl(times.saturating_sub(1)).unwrap_or(u64::MAX);
            Duration::from_secs(doubled).min(LONGEST_WAIT)
        }
    };
    if age + wait > config.maximum_event_age {
        Next::GivenUp(Condition::EventAgeExceeded)
    } else {
        Next::AgainAfter(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: EventInvokeConfig =
        EventInvokeConfig { maximum_retry_attempts: 2, maximum_event_age: Duration::from_mins(10) };

    fn after(age_s: u64, latest: Attempt) -> Next {
        next(CONFIG, Duration::from_secs(age_s), latest)
    }

    fn again(seconds: u64) -> Next {
        Next::AgainAfter(Duration::from_secs(seconds))
    }

    #[test]
    fn an_error_is_followed_by_a_minute_another_by_two_and_the_last_by_nothing() {
        let nexts = [1, 2, 3].map(|times| after(0, Attempt::Failed { times }));
        assert_eq!(nexts, [again(60), again(120), Next::GivenUp(Condition::RetriesExhausted)]);
        let none = EventInvokeConfig { maximum_retry_attempts: 0, ..CONFIG };
        let next = next(none, Duration::ZERO, Attempt::Failed { times: 1 });
        assert_eq!(next, Next::GivenUp(Condition::RetriesExhausted));
    }

    #[test]
    fn what_would_be_too_old_by_then_is_given_up() {
        assert_eq!(after(540, Attempt::Failed { times: 1 }), again(60));
        for latest in [Attempt::Failed { times: 1 }, Attempt::Throttled { times: 7 }] {
            assert_eq!(after(541, latest), Next::GivenUp(Condition::EventAgeExceeded), "{latest:?}");
        }
        // Whose attempts are used up is not asked for its age.
        assert_eq!(after(900, Attempt::Failed { times: 3 }), Next::GivenUp(Condition::RetriesExhausted));
    }
}
