//! Limits for handling one notice in several invocations. Pure.

use std::time::Duration;

use jiff::Timestamp;
use spillway_notice::continued::History;
use spillway_notice::{Deadline, Kind, Notice};
use spillway_settings::Settings;

use crate::decision::{REBALANCE_WINDOW, our_hook};
use crate::drain::volumes::VOLUME_WAIT;
use crate::hook_timeouts::HookTimeouts;
use crate::invocation::Invocation;

/// Maximum number of invocations for one notice. The longest drain takes 48 hours: 193 invocations of 15 minutes.
pub const MOST_INVOCATIONS: usize = 200;

/// Maximum wait for a Ready node after its instance starts. An instance usually boots in two or three minutes.
const BACK_WITHIN: Duration = Duration::from_mins(10);
/// Maximum duration of a drain if the time at which EC2 takes the instance is unknown.
pub const GONE_WITHIN: Duration = Duration::from_mins(10);
/// Maximum wait until the node of a stopped instance is marked not Ready. By default, Kubernetes needs 50 s.
const SILENT_WITHIN: Duration = Duration::from_secs(90);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Latest end of the drain.
    pub drain: Timestamp,
    /// Latest time for the retry of a failed call. With a lifecycle hook, `retry` may be later than `drain`.
    retry: Timestamp,
    /// Maximum wait for the detachment of volumes; zero if no lifecycle hook holds the instance.
    pub detaching: Duration,
}

impl Limits {
    /// Returns the time limits for a notice. If Spillway completes the lifecycle hook that holds the instance, the limits depend
    /// on `hook_max_wait` and the hook's timeouts (`waits`). Otherwise, the limits depend on the notice's deadline and kind.
    pub fn of(notice: &Notice, waits: Option<HookTimeouts>, settings: &Settings) -> Self {
        let after = |wait| notice.time.saturating_add(wait).unwrap_or(Timestamp::MAX);
        match (notice.deadline, waits) {
            (Deadline::Hard(at), _) => Self::until(at),
            (Deadline::Unknown, _) => Self::until(after(GONE_WITHIN)),
            (Deadline::HeldByHook, _) if our_hook(notice, settings).is_none() => Self::until(after(BACK_WITHIN)),
            (Deadline::Open, _) => Self::until(after(match notice.kind {
                Kind::Rebalance => REBALANCE_WINDOW,
                Kind::Stopped | Kind::Terminated => SILENT_WITHIN,
                _ => BACK_WITHIN,
            })),
            (Deadline::HeldByHook, waits) => {
                let longest = waits.map_or(settings.hook_max_wait, HookTimeouts::longest_hold);
                let drain = after(settings.hook_max_wait.min(longest));
                Self { drain, retry: after(longest), detaching: VOLUME_WAIT }
            }
        }
    }

    #[must_use]
    pub fn within(self, deadline: Option<Timestamp>) -> Self {
        Self { drain: deadline.map_or(self.drain, |deadline| self.drain.min(deadline)), ..self }
    }

    fn until(at: Timestamp) -> Self {
        Self { drain: at, retry: at, detaching: Duration::ZERO }
    }

    /// Returns `true` if the limits allow another invocation after `invocation`.
    pub fn may_continue_after(&self, invocation: &Invocation, unfinished: Unfinished, history: &History) -> bool {
        let limit = match unfinished {
            Unfinished::Call if invocation.is_over() => self.retry,
            // A call that failed before the end of the invocation failed because the drain's time limit was reached. Another
            // attempt would fail at once.
            Unfinished::Node | Unfinished::Call => self.drain,
        };
        invocation.is_over_before(limit) && history.earlier.len() + 1 < MOST_INVOCATIONS
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// Pods are left on the node, or the node is not Ready.
    Node,
    /// A call to AWS or Kubernetes has failed.
    Call,
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;
    use spillway_notice::continued::Earlier;
    use spillway_receipt::{Fate, PodRecord};
    use tokio::time::{Instant, sleep, sleep_until};

    use super::*;
    use crate::clock::Clock;
    use crate::test_support::{self, hook, settings};

    const BEGIN: Timestamp = Timestamp::UNIX_EPOCH;

    fn held(time: Timestamp) -> Notice {
        let notice = test_support::notice(Kind::Terminate, Deadline::HeldByHook);
        Notice { hook: Some(hook("spillway")), time, ..notice }
    }

    /// Limits of a hook's notice, with the setting and Auto Scaling's limit in seconds.
    fn limits(max_wait_s: u64, total_s: u64) -> Limits {
        let total = Duration::from_secs(total_s);
        let settings = Settings { hook_max_wait: Duration::from_secs(max_wait_s), ..settings(&[]) };
        Limits::of(&held(BEGIN), Some(HookTimeouts { timeout: total / 100, total }), &settings)
    }

    fn history(earlier: usize) -> History {
        let id = || "6f2c1c9e-5a77-4f0b-9a53-0a4f4f2d7c11".to_owned();
        let one = Earlier {
            request_id: id(),
            from: BEGIN,
            to: BEGIN,
            node: Some("i-0123456789abcdef0.ap-southeast-1.compute.internal".to_owned()),
            pods: ["clean", "clamped", "forced", "stayed", "lost", "unconfirmed"].map(|f| (f.to_owned(), 1000)).into(),
        };
        let pod = PodRecord::of("n".repeat(80), id(), Fate::Remaining, Duration::from_secs(3600));
        let notice = json!({"detail": "x".repeat(8_000)});
        History { earlier: vec![one; earlier], remaining: vec![pod; 110], ..History::of(notice) }
    }

    /// Invocation of 15 minutes that begins now.
    fn invocation(clock: Clock) -> Invocation {
        Invocation::until(clock.now() + SignedDuration::from_mins(15), "r-1", clock)
    }

    /// Invocation that is about to end.
    async fn ending() -> Invocation {
        let invocation = invocation(Clock::starting_at(BEGIN));
        sleep_until(invocation.drains_until()).await;
        invocation
    }

    #[test]
    fn hook_is_held_until_the_setting_or_auto_scaling_ends_it() {
        for (max_wait_s, total_s, (drain_s, retry_s)) in [(3600, 86_400, (3600, 86_395)), (86_400, 3600, (3595, 3595))]
        {
            let limits = limits(max_wait_s, total_s);
            assert_eq!((limits.drain.as_second(), limits.retry.as_second()), (drain_s, retry_s));
        }
    }

    #[test]
    fn notice_without_deadline_has_a_limit_by_its_kind() {
        let limit = |kind, deadline, variables: &[(&str, &str)]| {
            let notice = Notice { kind, deadline, ..held(BEGIN) };
            let total = Duration::from_hours(2);
            let timeouts = HookTimeouts { timeout: total / 100, total };
            Limits::of(&notice, Some(timeouts), &settings(variables)).drain.as_second()
        };
        assert_eq!(limit(Kind::Rebalance, Deadline::Open, &[]), 3600);
        assert_eq!(limit(Kind::Running, Deadline::Open, &[]), 600);
        assert_eq!(limit(Kind::Stopping, Deadline::Unknown, &[]), 600);
        assert_eq!(limit(Kind::Stopped, Deadline::Open, &[]), 90);
        let root_volume = |variables| limit(Kind::RootVolumeReplaced, Deadline::HeldByHook, variables);
        assert_eq!(root_volume(&[]), 600, "the hook is not ours, and not held");
        assert_eq!(root_volume(&[("SPILLWAY_LAUNCH", "ABANDON")]), 3600);
    }

    #[tokio::test(start_paused = true)]
    async fn remaining_pods_are_continued_until_the_drain_limit() {
        let invocation = ending().await;
        let may_continue = |max_wait_s, earlier| {
            limits(max_wait_s, 172_800).may_continue_after(&invocation, Unfinished::Node, &history(earlier))
        };
        assert!(may_continue(896, 0));
        assert!(!may_continue(895, 0), "the drain ended in this invocation");
        assert!(may_continue(896, 198));
        assert!(!may_continue(896, 199), "too many invocations");
        let deadline = Deadline::Hard(BEGIN + SignedDuration::from_secs(120));
        let spot = Limits::of(&test_support::notice(Kind::Spot, deadline), None, &settings(&[]));
        assert!(!spot.may_continue_after(&invocation, Unfinished::Node, &history(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn failed_call_is_continued_while_the_hook_waits() {
        let invocation = ending().await;
        let may_continue = |unfinished| limits(60, 3600).may_continue_after(&invocation, unfinished, &history(0));
        assert!(may_continue(Unfinished::Call));
        assert!(!may_continue(Unfinished::Node), "the drain is over");
    }

    #[tokio::test(start_paused = true)]
    async fn call_that_fails_at_the_drain_limit_is_not_continued() {
        let invocation = invocation(Clock::starting_at(BEGIN));
        sleep(Duration::from_secs(60)).await;
        let may_continue =
            |max_wait_s| limits(max_wait_s, 172_800).may_continue_after(&invocation, Unfinished::Call, &history(0));
        assert!(!may_continue(60));
        assert!(may_continue(3600), "the drain has time");
    }

    /// Number of invocations and duration of a drain that never ends.
    async fn endless_drain(limits: &Limits) -> (usize, Duration) {
        let begin = Instant::now();
        let mut history = history(0);
        loop {
            let clock = Clock::starting_at(BEGIN + SignedDuration::try_from(begin.elapsed()).expect("it fits"));
            let invocation = invocation(clock);
            sleep_until(clock.instant(limits.drain).min(invocation.drains_until())).await;
            if !limits.may_continue_after(&invocation, Unfinished::Node, &history) {
                return (history.earlier.len() + 1, begin.elapsed());
            }
            history = history.with(self::history(1).earlier.remove(0), None);
            // Delay of Lambda's queue.
            sleep(Duration::from_secs(2)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn longest_drains_take_193_invocations() {
        for (max_wait_s, invocations, seconds) in [(172_800, 193, 172_795), (3600, 5, 3600)] {
            let drain = endless_drain(&limits(max_wait_s, 172_800)).await;
            assert_eq!(drain, (invocations, Duration::from_secs(seconds)));
        }
        let lead = |seconds: &str| settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", seconds)]);
        assert!(lead("172801").wrong.is_some());
        let longest = lead("172800").maintenance_lead;
        let starts = BEGIN.saturating_add(longest).expect("a time of these days");
        let notice = test_support::notice(Kind::Maintenance, Deadline::Hard(starts));
        assert_eq!(endless_drain(&Limits::of(&notice, None, &lead("172800"))).await, (193, longest));
    }

    #[test]
    fn longest_history_fits_into_an_event() {
        // Scheduler's 256 KB; Lambda's queue takes more.
        let detail = serde_json::to_string(&history(199)).expect("plain data");
        assert!(detail.len() < 200 * 1024, "{}", detail.len());
    }
}
