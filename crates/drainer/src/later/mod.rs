//! Continuation in a later invocation: the function invokes itself, or EventBridge Scheduler invokes it at a time
//! (`Context::send`). Core's `continuation/limits.rs` decides the limits.

mod schedules;

use std::time::Duration;

use jiff::Timestamp;
use spillway_core::invocation::Invocation;
use tokio::time::{Instant, sleep_until};

pub(crate) use schedules::{Deleted, FunctionName, ScheduleName, Scheduler};

/// Maximum time that an invocation sleeps instead of using a schedule. Scheduler is precise to one minute.
const SLEEPS_FOR: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) enum Later {
    Now,
    /// At a time, by the schedule with this name.
    At(Timestamp, ScheduleName),
}

/// Sleeps until the time and returns `true`, if the time lies within [`SLEEPS_FOR`] and within the invocation. Returns `false` at
/// once for a later time.
pub(crate) async fn sleep_if_short(at: Timestamp, invocation: &Invocation) -> bool {
    let wakes = invocation.clock.instant(at);
    let is_short = wakes <= invocation.drains_until().min(Instant::now() + SLEEPS_FOR);
    if is_short {
        sleep_until(wakes).await;
    }
    is_short
}
