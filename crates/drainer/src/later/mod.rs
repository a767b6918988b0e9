//! Starts another invocation: the function invokes itself at once, or EventBridge Scheduler invokes the function at a set time.

mod schedules;

use std::time::Duration;

use jiff::Timestamp;
use spillway_core::invocation::Invocation;
use tokio::time::{Instant, sleep_until};

pub(crate) use schedules::{Deleted, FunctionName, ScheduleName, Scheduler};

/// Maximum time that an invocation sleeps. For a longer wait, it creates a schedule, which may fire a minute late.
const SLEEPS_FOR: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) enum Later {
    Now,
    /// EventBridge Scheduler invokes the function at this time, by a schedule with this name.
    At(Timestamp, ScheduleName),
}

/// Sleeps until `at` and returns `true`. Returns `false` at once if `at` is too late for the invocation or
/// more than [`SLEEPS_FOR`] away.
pub(crate) async fn sleep_if_short(at: Timestamp, invocation: &Invocation) -> bool {
    let wakes = invocation.clock.instant(at);
    let is_short = wakes <= invocation.drains_until().min(Instant::now() + SLEEPS_FOR);
    if is_short {
        sleep_until(wakes).await;
    }
    is_short
}
