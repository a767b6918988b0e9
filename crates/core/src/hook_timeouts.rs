//! Timeouts of a lifecycle hook.

use std::time::Duration;

/// Minimum `HeartbeatTimeout` in Auto Scaling, assumed if the hook's timeout cannot be read.
const LEAST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time for which Auto Scaling waits for a hook: "48 hours or 100 times the heartbeat timeout, whichever is smaller"
/// (Amazon EC2 Auto Scaling user guide, "Amazon EC2 Auto Scaling lifecycle hooks").
pub const LONGEST: Duration = Duration::from_hours(48);
const MOST_TIMEOUTS: u32 = 100;
/// Time before the hook's timeout that is reserved for the call `CompleteLifecycleAction`.
const FOR_THE_ANSWER: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookTimeouts {
    /// Maximum time between two heartbeats: `HeartbeatTimeout`.
    pub timeout: Duration,
    /// Maximum time for which the hook holds the instance, however many heartbeats arrive: `GlobalTimeout`.
    pub total: Duration,
}

impl HookTimeouts {
    /// Creates the timeouts from the hook's `HeartbeatTimeout` and `GlobalTimeout`, in seconds.
    pub fn described(heartbeat_timeout: Option<i32>, global_timeout: Option<i32>) -> Self {
        let seconds = |seconds: Option<i32>| seconds.and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs);
        let timeout = seconds(heartbeat_timeout).unwrap_or(LEAST_TIMEOUT);
        let total = seconds(global_timeout).unwrap_or_else(|| LONGEST.min(timeout * MOST_TIMEOUTS));
        Self { timeout, total }
    }

    /// Returns the timeouts for a hook that cannot be read: the shortest `timeout` and the longest `total` in Auto Scaling.
    pub fn unknown() -> Self {
        Self { timeout: LEAST_TIMEOUT, total: LONGEST }
    }

    /// Returns the maximum time from the notice until Spillway completes the lifecycle action.
    pub fn longest_hold(self) -> Duration {
        self.total.saturating_sub(FOR_THE_ANSWER)
    }

    /// Returns the time between two heartbeats: half of the timeout, so that a late heartbeat does no harm.
    pub fn heartbeat_interval(self) -> Duration {
        self.timeout / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_waits_for_100_timeouts_but_at_most_48_hours() {
        let waits = |timeout, total| HookTimeouts::described(Some(timeout), total).total;
        assert_eq!(waits(30, None), Duration::from_secs(3000));
        assert_eq!(waits(1728, None), Duration::from_hours(48));
        assert_eq!(waits(7200, None), Duration::from_hours(48));
        assert_eq!(waits(7200, Some(900)), Duration::from_secs(900), "described by Auto Scaling");
    }

    #[test]
    fn two_heartbeats_fit_into_a_timeout() {
        assert_eq!(HookTimeouts::described(Some(300), None).heartbeat_interval(), Duration::from_secs(150));
        assert_eq!(HookTimeouts::unknown().heartbeat_interval(), Duration::from_secs(15), "the least timeout is 30 s");
    }
}
