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
