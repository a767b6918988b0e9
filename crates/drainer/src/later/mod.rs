//! Continuing later, in one way: the function invokes itself, or EventBridge Scheduler invokes it at a time. `Context::send` does
//! it. Limits are decided in core's `continuation/limits.rs`.
//!
//! * `schedules`: the stack's schedules

mod schedules;

use std::time::Duration;

use jiff::Timestamp;
use spillway_core::invocation::Invocation;
use tokio::time::{Instant, sleep_until};

pub(crate) use schedules::{Deleted, FunctionName, ScheduleName, Scheduler};

/// Longest wait that an invocation sleeps. Scheduler invokes within the minute after a time.
const SLEEPS_FOR: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) enum Later {
    Now,
    /// At a time, by the schedule of that name.
    At(Timestamp, ScheduleName),
}

/// Sleeps until a time that is less than two minutes ahead. Returns `false` at once if that is too long for the invocation.
pub(crate) async fn slept(at: Timestamp, invocation: &Invocation) -> bool {
    let wakes = invocation.clock.instant(at);
    let is_short = wakes <= invocation.drains_until().min(Instant::now() + SLEEPS_FOR);
    if is_short {
        sleep_until(wakes).await;
    }
    is_short
}
