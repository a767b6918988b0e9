//! Limits of a notice over all of its invocations. Pure.

use std::time::Duration;

use jiff::Timestamp;
use spillway_notice::continued::History;
use spillway_notice::{Deadline, Kind, Notice};
use spillway_settings::Settings;

use crate::decision::{REBALANCE_WINDOW, our_hook};
use crate::drain::volumes::VOLUME_WAIT;
use crate::hook_timeouts::HookTimeouts;
use crate::invocation::Invocation;

/// Most invocations of one notice. The longest drain, 48 hours in invocations of 15 minutes, takes 193 (a test counts them).
/// The bound ends a notice whose times are calculated wrong.
pub const MOST_INVOCATIONS: usize = 200;

/// Longest wait for a node that comes back: its machine boots, and its kubelet starts, in two or three minutes.
const BACK_WITHIN: Duration = Duration::from_mins(10);
/// Longest drain of an instance that is going at an unknown time: a stop or shutdown, a passed deadline, maintenance that has
/// begun. An instance that stops has stopped long before, and its node reports it.
pub const GONE_WITHIN: Duration = Duration::from_mins(10);
/// Longest wait until the control plane marks a node whose kubelet is gone as not Ready (50 s by default).
const SILENT_WITHIN: Duration = Duration::from_secs(90);

/// Limits of a notice over all of its invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub drain: Timestamp,
    /// End of retries. A hook waits longer for its answer than the setting lets the drain take.
    retry: Timestamp,
    /// Longest time for which our hook is held until volumes are detached.
    pub detaching: Duration,
}

impl Limits {
    /// Limits by the instance's own time; for a hook, by Auto Scaling's timeouts and the setting.
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
                let longest = waits.map_or(settings.hook_max_wait, HookTimeouts::longest_wait_for_answer);
                let drain = after(settings.hook_max_wait.min(longest));
                Self { drain, retry: after(longest), detaching: VOLUME_WAIT }
            }
        }
    }

    fn until(at: Timestamp) -> Self {
        Self { drain: at, retry: at, detaching: Duration::ZERO }
    }

    /// Returns `true` if a later invocation may still finish the work.
    pub fn may_continue_after(&self, invocation: &Invocation, unfinished: Unfinished, history: &History) -> bool {
        let limit = match unfinished {
            Unfinished::Call if invocation.is_over() => self.retry,
            // A call that failed in mid-invocation failed because the drain's time was up: the next one would fail at once.
            Unfinished::Node | Unfinished::Call => self.drain,
        };
        invocation.is_over_before(limit) && history.earlier.len() + 1 < MOST_INVOCATIONS
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// Pods are left on the node, or the node is not Ready.
    Node,
    Call,
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;
    use spillway_notice::continued::Earlier;
    use spillway_notice::{Hook, InstanceId};
    use spillway_receipt::{Fate, PodRecord};
    use tokio::time::{Instant, sleep, sleep_until};

    use super::*;
    use crate::clock::Clock;

    const INVOCATION: SignedDuration = SignedDuration::from_mins(15);

    fn notice(time: Timestamp, deadline: Deadline) -> Notice {
        let hook = Hook { group: "workers".to_owned(), name: "spillway".to_owned(), token: None };
        Notice {
            event_id: "e-1".to_owned(),
            kind: Kind::Terminate,
            instance: InstanceId::parse("i-0123456789abcdef0").expect("an id"),
            zone: None,
            time,
            deadline,
            hook: (deadline == Deadline::HeldByHook).then_some(hook),
            maintenance: None,
        }
    }

    fn settings(max_wait: Duration) -> Settings {
        let defaults = Settings::from_variables(std::iter::empty());
        Settings { hook_max_wait: max_wait, ..defaults }
    }

    fn waits(total: Duration) -> HookTimeouts {
        HookTimeouts { timeout: total / 100, total }
    }

    fn history(earlier: usize) -> History {
        let one = Earlier {
            request_id: "6f2c1c9e-5a77-4f0b-9a53-0a4f4f2d7c11".to_owned(),
            from: Timestamp::UNIX_EPOCH,
            to: Timestamp::UNIX_EPOCH,
            node: Some("i-0123456789abcdef0.ap-southeast-1.compute.internal".to_owned()),
            pods: ["clean", "clamped", "forced", "stayed", "lost", "unconfirmed"].map(|f| (f.to_owned(), 1000)).into(),
        };
        let notice = json!({"detail": "x".repeat(8_000)});
        let grace = Duration::from_secs(3600);
        let pod =
            PodRecord::of("n".repeat(80), "6f2c1c9e-5a77-4f0b-9a53-0a4f4f2d7c11".to_owned(), Fate::Remaining, grace);
        History { earlier: vec![one; earlier], remaining: vec![pod; 110], ..History::of(notice) }
    }

    /// Invocation that is about to end.
    async fn ending() -> (Timestamp, Invocation) {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let invocation = Invocation::until(Timestamp::UNIX_EPOCH + INVOCATION, "r-1", clock);
        sleep_until(invocation.drains_until()).await;
        (Timestamp::UNIX_EPOCH, invocation)
    }

    #[test]
    fn hook_is_held_until_the_setting_or_auto_scaling_ends_it() {
        let time = Timestamp::UNIX_EPOCH;
        let limits = |max_wait, total| {
            let limits = Limits::of(&notice(time, Deadline::HeldByHook), Some(waits(total)), &settings(max_wait));
            (limits.drain.as_second(), limits.retry.as_second())
        };
        let (hour, day) = (Duration::from_hours(1), Duration::from_hours(24));
        assert_eq!(limits(hour, day), (3600, 86_395), "the answer may come later than the drain ends");
        assert_eq!(limits(day, hour), (3595, 3595), "early enough for Auto Scaling to accept the answer");
    }

    #[test]
    fn notice_without_deadline_has_a_limit_by_its_kind() {
        let limit = |kind, deadline, variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let settings = Settings::from_variables(variables);
            let notice = Notice { kind, ..notice(Timestamp::UNIX_EPOCH, deadline) };
            Limits::of(&notice, Some(waits(Duration::from_hours(2))), &settings).drain.as_second()
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
        let (time, invocation) = ending().await;
        let leave_time = |max_wait, earlier| {
            let hook = notice(time, Deadline::HeldByHook);
            let limits = Limits::of(&hook, Some(waits(Duration::from_hours(48))), &settings(max_wait));
            limits.may_continue_after(&invocation, Unfinished::Node, &history(earlier))
        };
        assert!(leave_time(Duration::from_secs(896), 0));
        assert!(!leave_time(Duration::from_secs(895), 0), "the drain ended in this invocation");
        assert!(leave_time(Duration::from_secs(896), 198));
        assert!(!leave_time(Duration::from_secs(896), 199), "too many invocations");
    }

    #[tokio::test(start_paused = true)]
    async fn failed_call_is_continued_while_the_hook_waits() {
        let (time, invocation) = ending().await;
        let hook = notice(time, Deadline::HeldByHook);
        let limits = Limits::of(&hook, Some(waits(Duration::from_hours(1))), &settings(Duration::from_secs(60)));
        let leave_time = |unfinished| limits.may_continue_after(&invocation, unfinished, &history(0));
        assert!(leave_time(Unfinished::Call));
        assert!(!leave_time(Unfinished::Node), "the drain is over");
    }

    #[tokio::test(start_paused = true)]
    async fn call_that_fails_at_the_drain_limit_is_not_continued() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let invocation = Invocation::until(Timestamp::UNIX_EPOCH + INVOCATION, "r-1", clock);
        let leave_time = |max_wait| {
            let hook = notice(Timestamp::UNIX_EPOCH, Deadline::HeldByHook);
            let limits = Limits::of(&hook, Some(waits(Duration::from_hours(48))), &settings(max_wait));
            limits.may_continue_after(&invocation, Unfinished::Call, &history(0))
        };
        sleep(Duration::from_secs(60)).await;
        assert!(!leave_time(Duration::from_secs(60)));
        assert!(leave_time(Duration::from_hours(1)), "the drain has time");
    }

    #[tokio::test(start_paused = true)]
    async fn spot_notice_is_not_continued_after_15_minutes() {
        let (time, invocation) = ending().await;
        let spot = notice(time, Deadline::Hard(time + SignedDuration::from_secs(120)));
        let limits = Limits::of(&spot, None, &settings(Duration::from_hours(1)));
        assert!(!limits.may_continue_after(&invocation, Unfinished::Node, &history(0)));
    }

    /// Number of invocations and duration of a hook's drain that never ends, of a notice of that time.
    async fn endless_drain(time: Timestamp, max_wait: Duration) -> (usize, Duration) {
        never_empty(&notice(time, Deadline::HeldByHook), &settings(max_wait)).await
    }

    async fn never_empty(notice: &Notice, settings: &Settings) -> (usize, Duration) {
        let (began, now) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let mut history = history(0);
        loop {
            let clock = Clock::starting_at(now + SignedDuration::try_from(began.elapsed()).expect("it fits"));
            let invocation = Invocation::until(clock.now() + INVOCATION, "r-1", clock);
            let limits = Limits::of(notice, Some(waits(Duration::from_hours(48))), settings);
            sleep_until(clock.instant(limits.drain).min(invocation.drains_until())).await;
            if !limits.may_continue_after(&invocation, Unfinished::Node, &history) {
                return (history.earlier.len() + 1, began.elapsed());
            }
            history = history.with(self::history(1).earlier.remove(0), None);
            // Lambda's queue takes its time.
            sleep(Duration::from_secs(2)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn drain_of_48_hours_takes_193_invocations() {
        let longest = Duration::from_hours(48);
        let in_time = Duration::from_secs(48 * 3600 - 5);
        assert_eq!(endless_drain(Timestamp::UNIX_EPOCH, longest).await, (193, in_time));
        let hour = Duration::from_hours(1);
        assert_eq!(endless_drain(Timestamp::UNIX_EPOCH, hour).await, (5, hour));
    }

    #[tokio::test(start_paused = true)]
    async fn drain_with_the_longest_lead_ends_when_maintenance_starts() {
        let lead = |seconds: &str| {
            let variable = ("SPILLWAY_MAINTENANCE_LEAD_S".to_owned(), seconds.to_owned());
            Settings::from_variables(std::iter::once(variable))
        };
        assert!(lead("172801").wrong.is_some());
        let settings = lead("172800");
        let longest = settings.maintenance_lead;
        let starts = Timestamp::UNIX_EPOCH.saturating_add(longest).expect("a time of these days");
        let notice = Notice { kind: Kind::Maintenance, ..notice(Timestamp::UNIX_EPOCH, Deadline::Hard(starts)) };
        assert_eq!(never_empty(&notice, &settings).await, (193, longest));
    }

    #[tokio::test(start_paused = true)]
    async fn notice_from_the_future_ends_after_200_invocations() {
        let (invocations, _) = endless_drain(Timestamp::MAX, Duration::from_hours(1)).await;
        assert_eq!(invocations, 200);
    }

    #[test]
    fn longest_history_fits_into_an_event() {
        // Scheduler's 256 KB; Lambda's queue takes more.
        let detail = serde_json::to_string(&history(199)).expect("plain data");
        assert!(detail.len() < 200 * 1024, "{}", detail.len());
    }
}
