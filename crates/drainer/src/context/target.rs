//! Describes the work on one notice in one invocation: the drain's window, the lifecycle action and the instance.

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use jiff::{SignedDuration, Timestamp};
use spillway_core::cluster::ClusterName;
use spillway_core::continuation::limits::{GONE_WITHIN, Limits};
use spillway_core::decision::{begins, planned_start};
use spillway_core::drain::deadline::{MARGIN, Termination, Window};
use spillway_core::instance::{Instance, ManagedBy};
use spillway_core::invocation::Invocation;
use spillway_core::node::claim_annotation::{ClaimAnnotation, Pace};
use spillway_core::node::claimant::{Claim, Claimant};
use spillway_core::node::taint;
use spillway_core::replacement;
use spillway_notice::continued::History;
use spillway_notice::{Deadline, Kind, Notice, spot};
use spillway_settings::{LoadBalancers, Settings};
use tokio::time::Instant;

use crate::aws::lifecycle::LifecycleAction;
use crate::failure::Failure;

/// Minimum duration of a drain, even if the notice came late.
pub(crate) const LEAST_WINDOW: SignedDuration = SignedDuration::from_secs(10);
/// Minimum duration of a drain with a lifecycle hook. Short, so that time is left to complete the hook.
const LEAST_WINDOW_OF_A_HOOK: SignedDuration = SignedDuration::from_secs(2);
/// Time for which PodDisruptionBudgets are respected after a notice with an unknown deadline.
const RESPECTED_FOR: SignedDuration = SignedDuration::from_mins(2);

/// Work on one notice in one invocation.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) notice: &'a Notice,
    pub(crate) history: &'a History,
    pub(crate) invocation: &'a Invocation,
    pub(crate) action: Option<LifecycleAction<'a>>,
    pub(crate) settings: &'a Settings,
    /// Time limits of the drain. The hook's timeouts are ignored here, but not in [`Self::window_of_hook`].
    pub(crate) window: Window,
    /// Deadline that [`Self::adopt_deadline`] adopted from the spot notice that holds the claim.
    joined: Cell<Option<Timestamp>>,
}

/// Instance of a notice, with its cluster and the manager of its node, such as Karpenter.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) attempt: &'a Attempt<'a>,
    pub(crate) instance: &'a Instance,
    pub(crate) managed_by: ManagedBy,
    pub(crate) cluster: &'a ClusterName,
}

/// Returns the time limits of the drain in this invocation.
fn window(notice: &Notice, history: &History, invocation: &Invocation, settings: &Settings, limits: Limits) -> Window {
    let clock = invocation.clock;
    let least = match notice.deadline {
        Deadline::Hard(_) | Deadline::Unknown | Deadline::Open => LEAST_WINDOW,
        Deadline::HeldByHook => LEAST_WINDOW_OF_A_HOOK,
    };
    // A notice from the future means that the function's clock is slow.
    let slow_by = notice.time.duration_since(clock.started()).max(SignedDuration::ZERO);
    let limit = limits.drain.saturating_sub(slow_by).unwrap_or(Timestamp::MIN);
    let over = is_past_deadline(notice, invocation).then_some(limit);
    let limit = over.map_or(limit, |over| over.saturating_add(GONE_WITHIN).unwrap_or(Timestamp::MAX));
    let limit = clock.instant(limit.max(clock.started() + least));
    let instance_goes = match notice.deadline {
        // The maintenance may be over, and the instance may stay.
        Deadline::Unknown if notice.kind == Kind::Maintenance => Termination::MayStay,
        Deadline::Unknown => {
            Termination::SoonAtUnknownTime { respected_until: clock.instant(notice.time + RESPECTED_FOR) }
        }
        Deadline::Hard(_) => match over {
            Some(over) => Termination::SoonAtUnknownTime { respected_until: clock.instant(over) },
            None => Termination::At(limit),
        },
        Deadline::HeldByHook => Termination::AtTheLatest(limit),
        Deadline::Open => Termination::MayStay,
    };
    // The invocation may begin before the planned drain.
    let began = history.began().unwrap_or(clock.started()).max(begins(notice, settings));
    Window {
        start: clock.instant(began),
        end: limit.min(invocation.drains_until()),
        instance_goes,
        margin: MARGIN,
        detaching: limits.detaching,
        dead_since: None,
    }
}

fn is_past_deadline(notice: &Notice, invocation: &Invocation) -> bool {
    matches!(notice.deadline, Deadline::Hard(at) if at <= invocation.clock.started())
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(
        notice: &'a Notice,
        history: &'a History,
        invocation: &'a Invocation,
        action: Option<LifecycleAction<'a>>,
        settings: &'a Settings,
    ) -> Self {
        let mut window = window(notice, history, invocation, settings, Limits::of(notice, None, settings));
        if action.is_some() {
            // No force before the hook's timeouts are known.
            window.instance_goes = Termination::MayStay;
        }
        Self { notice, history, invocation, action, settings, window, joined: Cell::default() }
    }

    pub(crate) fn limits(&self) -> Limits {
        let timeouts = self.action.as_ref().and_then(LifecycleAction::known_timeouts);
        Limits::of(self.notice, timeouts, self.settings).within(self.joined.get())
    }

    /// Adopts the deadline of `claim` if a spot notice holds `claim` and the instance is to be replaced.
    pub(crate) fn adopt_deadline(&self, claim: &Claim, instance: &Instance) {
        let now = self.invocation.clock.now();
        self.joined.set(replacement::deadline_of_claim(self.notice, instance, claim, self.settings, now));
    }

    /// Returns `true` if [`Self::adopt_deadline`] adopted the deadline of a spot notice.
    pub(crate) fn has_spot_deadline(&self) -> bool {
        self.joined.get().is_some()
    }

    /// Returns `window`, with an end no later than the adopted deadline. Without an adopted deadline, `window` is unchanged.
    pub(crate) fn limited_to_joined_claim(&self, window: Window) -> Window {
        let Some(deadline) = self.joined.get() else { return window };
        let at = self.invocation.clock.instant(deadline);
        let instance_goes = match window.instance_goes {
            Termination::AtTheLatest(_) => Termination::At(at),
            other => other,
        };
        let start = self.invocation.clock.instant(deadline - spot::NOTICE).min(window.start);
        Window { start, end: window.end.min(at), instance_goes, detaching: Duration::ZERO, ..window }
    }

    /// Reads the hook's timeouts and the group's retention policy. Returns a window that respects both and ends no later than
    /// `self.window`.
    pub(crate) async fn window_of_hook(&self) -> Window {
        let Some(action) = &self.action else { return self.window };
        action.timeouts().await;
        let window = window(self.notice, self.history, self.invocation, self.settings, self.limits());
        if self.notice.kind == Kind::Terminate {
            let forced_from = window.half().unwrap_or(window.end).min(window.end);
            action.look_up_retention(forced_from).await;
        }
        let instance_goes = if self.keeps_instance() { Termination::MayStay } else { window.instance_goes };
        Window { end: window.end.min(self.window.end), instance_goes, ..window }
    }

    /// Returns `true` if the deadline had passed when this invocation started.
    pub(crate) fn is_past_deadline(&self) -> bool {
        is_past_deadline(self.notice, self.invocation)
    }

    /// Returns `true` if the invocation ends before the drain's time limit.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.invocation.is_over_before(self.limits().drain)
    }

    /// Returns `true` if a later invocation can continue the work after `failure`.
    pub(crate) fn leaves_time_after(&self, failure: &Failure) -> bool {
        let unfinished = failure.unfinished();
        unfinished.is_some_and(|unfinished| self.limits().may_continue_after(self.invocation, unfinished, self.history))
    }

    /// Returns the milliseconds from the notice's time to `instant`.
    pub(crate) fn ms_until(&self, instant: Instant) -> i64 {
        let since = self.invocation.clock.at(instant).duration_since(self.notice.time);
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Returns `true` if the Auto Scaling group is known to keep the instance when the lifecycle action is abandoned.
    pub(crate) fn keeps_instance(&self) -> bool {
        self.action.as_ref().is_some_and(LifecycleAction::keeps_instance)
    }

    /// Sends heartbeats for the lifecycle action while `doing` runs.
    pub(crate) async fn with_heartbeats<T>(&self, doing: impl Future<Output = T>) -> T {
        let Some(action) = &self.action else { return doing.await };
        beside(doing, action.hold()).await
    }

    /// Returns when the lifecycle action is over. Waits forever if the notice has no lifecycle action.
    pub(crate) async fn wait_until_action_is_over(&self) {
        match &self.action {
            Some(action) => action.wait_until_over().await,
            None => std::future::pending().await,
        }
    }

    /// Waits for the answer to the first heartbeat if the instance returns to its warm pool. The answer shows whether the
    /// lifecycle action is over.
    pub(crate) async fn wait_until_action_is_known(&self) {
        if let (Kind::ReturnToWarmPool, Some(action)) = (self.notice.kind, &self.action) {
            action.wait_until_known().await;
        }
    }

    pub(crate) fn heartbeats(&self) -> Vec<Timestamp> {
        let sent = self.action.as_ref().map(LifecycleAction::held_at).unwrap_or_default();
        sent.into_iter().map(|at| self.invocation.clock.at(at)).collect()
    }
}

/// Runs `doing` and `other` concurrently. Drops `other` when `doing` ends.
pub(crate) async fn beside<T>(doing: impl Future<Output = T>, other: impl Future) -> T {
    match select(pin!(doing), pin!(other)).await {
        Either::Left((done, _)) => done,
        Either::Right((_, doing)) => doing.await,
    }
}

impl Target<'_> {
    /// Returns the annotation and taint that the claim for this notice sets on the node, and the preconditions of the claim.
    pub(crate) fn claimant(&self) -> Claimant<'_> {
        let Attempt { notice, history, invocation, settings, .. } = self.attempt;
        let (kind, event) = (notice.kind, &notice.event_id);
        let maintenance = notice.maintenance.as_ref();
        let until = match notice.deadline {
            Deadline::Hard(at) => Some(at),
            Deadline::Unknown | Deadline::HeldByHook | Deadline::Open => None,
        };
        let now = invocation.clock.now();
        let pace = planned_start(notice).map(|_| Pace {
            group: self.instance.group().map(str::to_owned),
            claimed: now,
            over: false,
        });
        let annotation = ClaimAnnotation {
            until,
            pace,
            since: Some(notice.time.max(begins(notice, settings))),
            maintenance: maintenance.map(|maintenance| maintenance.id.clone()),
            ..ClaimAnnotation::new(event, &invocation.request_id, kind)
        };
        Claimant {
            annotation,
            earlier: &history.earlier,
            reboots: kind == Kind::ReplaceRootVolume || maintenance.is_some_and(|maintenance| maintenance.reboots),
            requires_existing_claim: notice.deadline == Deadline::Unknown
                && maintenance.is_some_and(|maintenance| maintenance.reboots),
            taint: settings.taints.of_claim.and_then(|names| taint::for_notice(kind, event, names)),
            excludes: settings.load_balancers != LoadBalancers::Leave,
            managed_by: self.managed_by,
            selector: &settings.node_selector,
        }
    }
}

#[cfg(test)]
mod tests {
    use spillway_core::test_support::maintenance;
    use tokio::time::sleep;

    use super::*;
    use crate::test_support::at;
    use crate::test_support::aws::{group_described, heartbeat, hook_described, hook_described_for};
    use crate::test_support::context::{Case, TestContext};

    #[tokio::test(start_paused = true)]
    async fn stopping_goes_soon_and_late_maintenance_is_unknown() {
        let context = TestContext::new(&[], [], []);
        let soon = Termination::SoonAtUnknownTime { respected_until: Instant::now() + Duration::from_mins(2) };
        for (kind, instance_goes) in [(Kind::ShuttingDown, soon), (Kind::Maintenance, Termination::MayStay)] {
            let case = Case::of(kind, Deadline::Unknown);
            assert_eq!(case.attempt(&context).await.window.instance_goes, instance_goes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn window_of_maintenance_starts_with_its_lead() {
        let context = TestContext::new(&[], [], []);
        let case = Case::of(Kind::Maintenance, Deadline::Hard(at("1970-01-01T02:00:00Z")));
        let start = case.attempt(&context).await.window.start;
        assert_eq!(case.invocation.clock.at(start), at("1970-01-01T01:00:00Z"));
    }

    #[tokio::test(start_paused = true)]
    async fn window_of_a_hook_is_tightened_and_never_moves() {
        // Three seconds a hundred times, less five for the completion.
        let aws = [hook_described_for(3), group_described(false).repeated()];
        let (context, case) = (TestContext::new(&[], [], aws), Case::held(Kind::Terminate));
        let (attempt, end) = (case.attempt(&context).await, Instant::now() + Duration::from_secs(295));
        assert_eq!((attempt.window.instance_goes, end < attempt.window.end), (Termination::MayStay, true));
        for _ in 0..2 {
            let window = attempt.window_of_hook().await;
            assert_eq!((window.instance_goes, window.end), (Termination::AtTheLatest(end), end));
            sleep(Duration::from_mins(10)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn late_hook_leaves_two_seconds() {
        let (context, mut case) = (TestContext::new(&[], [], []), Case::of(Kind::Terminate, Deadline::HeldByHook));
        case.notice.time = at("1969-12-24T00:00:00Z");
        let end = case.attempt(&context).await.window.end;
        assert_eq!(case.invocation.clock.at(end), at("1970-01-01T00:00:02Z"));
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_are_recorded_with_their_times() {
        let (context, case) = (TestContext::new(&[], [], [hook_described(), heartbeat()]), Case::held(Kind::Terminate));
        let attempt = case.attempt(&context).await;
        attempt.with_heartbeats(sleep(Duration::from_secs(5))).await;
        assert_eq!(attempt.heartbeats(), [at("1970-01-01T00:00:01Z")], "not confirmed as ours");
        assert_eq!(attempt.ms_until(Instant::now()), 5_000);
    }

    #[tokio::test(start_paused = true)]
    async fn claim_has_times_and_maintenance_of_the_notice() {
        let (context, case) = (TestContext::new(&[], [], []), Case::spot());
        let attempt = case.attempt(&context).await;
        let ClaimAnnotation { since, until, .. } = case.target(&attempt).claimant().annotation;
        assert_eq!((since, until), (Some(Timestamp::UNIX_EPOCH), Some(at("1970-01-01T00:02:00Z"))));
        // After the deadline of a reboot only a drain that has begun continues.
        for (deadline, requires_existing_claim) in [(Deadline::Unknown, true), (Deadline::Open, false)] {
            let mut case = Case::of(Kind::Maintenance, deadline);
            case.notice.maintenance = Some(maintenance("m-1"));
            let attempt = case.attempt(&context).await;
            let target = case.target(&attempt);
            let claimant = target.claimant();
            assert_eq!(claimant.annotation.maintenance.as_deref(), Some("m-1"));
            assert_eq!(claimant.requires_existing_claim, requires_existing_claim, "{deadline:?}");
        }
    }
}
