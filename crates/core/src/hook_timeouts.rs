//! How long Auto Scaling waits at a lifecycle hook, and when an answer still finds it waiting.

use std::time::Duration;

/// The least `HeartbeatTimeout` that Auto Scaling allows: assumed while the hook's own cannot be read.
const LEAST_TIMEOUT: Duration = Duration::from_secs(30);
/// Auto Scaling waits in all for "48 hours or 100 times the heartbeat timeout, whichever is smaller"
/// (Amazon EC2 Auto Scaling user guide, "Amazon EC2 Auto Scaling lifecycle hooks").
pub const LONGEST: Duration = Duration::from_hours(48);
const MOST_TIMEOUTS: u32 = 100;
/// The action is completed this long before its timeout, so that the answer still finds Auto Scaling waiting.
const FOR_THE_ANSWER: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookTimeouts {
    /// From one sign of life to the next: `HeartbeatTimeout`.
    pub timeout: Duration,
    /// In all, whatever is sent: `GlobalTimeout`.
    pub in_all: Duration,
}

impl HookTimeouts {
    /// Takes the hook's `HeartbeatTimeout` and `GlobalTimeout`, in seconds, as Auto Scaling describes them.
    pub fn described(heartbeat_timeout: Option<i32>, global_timeout: Option<i32>) -> Self {
        let seconds = |seconds: Option<i32>| seconds.and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs);
        let timeout = seconds(heartbeat_timeout).unwrap_or(LEAST_TIMEOUT);
        let in_all = seconds(global_timeout).unwrap_or_else(|| LONGEST.min(timeout * MOST_TIMEOUTS));
        Self { timeout, in_all }
    }

    /// What is assumed when Auto Scaling does not say. It reports when the waiting is over.
    pub fn unknown() -> Self {
        Self { timeout: LEAST_TIMEOUT, in_all: LONGEST }
    }

    /// How long after the notice an answer still finds the action waiting.
    pub fn longest_for_an_answer(self) -> Duration {
        self.in_all.saturating_sub(FOR_THE_ANSWER)
    }

    /// Twice in each timeout: one that is late does no harm.
    pub fn between_heartbeats(self) -> Duration {
        self.timeout / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_waits_for_100_timeouts_and_never_longer_than_48_hours() {
        let waits = |timeout, in_all| HookTimeouts::described(Some(timeout), in_all).in_all;
        assert_eq!(waits(30, None), Duration::from_secs(3000));
        assert_eq!(waits(1728, None), Duration::from_hours(48));
        assert_eq!(waits(7200, None), Duration::from_hours(48));
        assert_eq!(waits(7200, Some(900)), Duration::from_secs(900), "what Auto Scaling says counts");
    }

    #[test]
    fn a_heartbeat_is_sent_twice_in_the_hooks_timeout() {
        assert_eq!(HookTimeouts::described(Some(300), None).between_heartbeats(), Duration::from_secs(150));
        let shortest = HookTimeouts::unknown().between_heartbeats();
        assert_eq!(shortest, Duration::from_secs(15), "Auto Scaling waits for 30 s at least");
    }
}
