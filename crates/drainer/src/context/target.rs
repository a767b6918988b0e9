//! One notice in one invocation, and the node that it is about: how long there is, who claims, which hook waits.

use std::pin::pin;

use futures_util::future::{Either, select};
use jiff::{SignedDuration, Timestamp};
use spillway_core::cluster::ClusterName;
use spillway_core::continuation::limits::{GONE_WITHIN, Limits};
use spillway_core::decision::{begins, planned_start};
use spillway_core::drain::deadline::{MARGIN, Termination, Window};
use spillway_core::instance::{Instance, ManagedBy};
use spillway_core::invocation::Invocation;
use spillway_core::node::claim_annotation::{ClaimAnnotation, Pace};
use spillway_core::node::claimant::Claimant;
use spillway_core::node::taint;
use spillway_notice::continued::History;
use spillway_notice::{Deadline, Kind, Notice};
use spillway_settings::{LoadBalancers, Settings};
use tokio::time::Instant;

use crate::aws::lifecycle::LifecycleAction;
use crate::failure::Failure;

/// A notice that comes late is still worked on this long: clocks differ, and evictions that
/// are asked for at once cost nothing.
pub(crate) const LEAST_WINDOW: SignedDuration = SignedDuration::from_secs(10);
/// The same when a hook waits: its answer must still find it waiting.
const LEAST_WINDOW_OF_A_HOOK: SignedDuration = SignedDuration::from_secs(2);
/// How long what blocks a pod is respected when its instance is going and nobody says when: as long as after a spot
/// notice, which an operating system that is shutting down seldom takes. Sooner, if its kubelet reports no more.
const RESPECTED_FOR: SignedDuration = SignedDuration::from_mins(2);

/// One notice in one invocation.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) notice: &'a Notice,
    /// How far earlier invocations came with it.
    pub(crate) history: &'a History,
    pub(crate) invocation: &'a Invocation,
    /// The lifecycle action that waits for us, if there is one.
    pub(crate) action: Option<LifecycleAction<'a>>,
    pub(crate) settings: &'a Settings,
    /// From when to when the node is drained, as far as it is known without [the hook](Self::window_of_hook).
    pub(crate) window: Window,
}

/// The node that a notice is about, as far as AWS tells: whose instance it is, in which cluster.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) attempt: &'a Attempt<'a>,
    pub(crate) instance: &'a Instance,
    pub(crate) managed_by: ManagedBy,
    pub(crate) cluster: &'a ClusterName,
}

/// From when to when a node is drained: within this invocation, by the notice's own clock.
fn window(notice: &Notice, history: &History, invocation: &Invocation, settings: &Settings, limits: Limits) -> Window {
    let clock = invocation.clock;
    let least = match notice.deadline {
        Deadline::Hard(_) | Deadline::Unknown | Deadline::Open => LEAST_WINDOW,
        Deadline::HeldByHook => LEAST_WINDOW_OF_A_HOOK,
    };
    // A notice that is ahead of our clock was not sent later than now: it is the clock that is slow.
    let slow_by = notice.time.duration_since(clock.started()).max(SignedDuration::ZERO);
    let limit = limits.drain.saturating_sub(slow_by).unwrap_or(Timestamp::MIN);
    let over = is_past_deadline(notice, invocation).then_some(limit);
    let limit = over.map_or(limit, |over| over.saturating_add(GONE_WITHIN).unwrap_or(Timestamp::MAX));
    let limit = clock.instant(limit.max(clock.started() + least));
    let instance_goes = match notice.deadline {
        // It may be over by now: nobody says that the instance goes.
        Deadline::Unknown if notice.kind == Kind::Maintenance => Termination::Unknown,
        Deadline::Unknown => Termination::Soon { respected_until: clock.instant(notice.time + RESPECTED_FOR) },
        Deadline::Hard(_) => match over {
            Some(over) => Termination::Soon { respected_until: clock.instant(over) },
            None => Termination::At(limit),
        },
        Deadline::HeldByHook => Termination::AtTheLatest(limit),
        Deadline::Open => Termination::Unknown,
    };
    // The invocation, and earlier ones, may have begun before a planned drain was to begin.
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
    /// A notice in its invocation.
    pub(crate) fn new(
        notice: &'a Notice,
        history: &'a History,
        invocation: &'a Invocation,
        action: Option<LifecycleAction<'a>>,
        settings: &'a Settings,
    ) -> Self {
        let mut window = window(notice, history, invocation, settings, Limits::of(notice, None, settings));
        if action.is_some() {
            // Nothing is forced until the hook is known.
            window.instance_goes = Termination::Unknown;
        }
        Self { notice, history, invocation, action, settings, window }
    }

    /// Until when the notice is worked on.
    pub(crate) fn limits(&self) -> Limits {
        let timeouts = self.action.as_ref().and_then(LifecycleAction::known_timeouts);
        Limits::of(self.notice, timeouts, self.settings)
    }

    /// Asks Auto Scaling how long the lifecycle action waits, and whether its group keeps an instance whose pods cannot leave.
    /// The second answer is asked for until pods may be forced. Returns the window, which is never wider than before.
    pub(crate) async fn window_of_hook(&self) -> Window {
        let Some(action) = &self.action else { return self.window };
        action.timeouts().await;
        let window = window(self.notice, self.history, self.invocation, self.settings, self.limits());
        if self.notice.kind == Kind::Terminate {
            let forced_from = window.half().unwrap_or(window.end).min(window.end);
            action.look_up_retention(forced_from).await;
        }
        let instance_goes = if self.is_kept() { Termination::Unknown } else { window.instance_goes };
        Window { end: window.end.min(self.window.end), instance_goes, ..window }
    }

    /// Whether the instance was to go before the invocation began. Nobody says how long it stays since then: no pod is given
    /// less than its own grace.
    pub(crate) fn is_past_deadline(&self) -> bool {
        is_past_deadline(self.notice, self.invocation)
    }

    /// Whether only the invocation's time is up, and not the notice's.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.invocation.is_over_before(self.limits().drain)
    }

    /// Whether a later invocation may still do what this one could not.
    pub(crate) fn leaves_time_after(&self, failure: &Failure) -> bool {
        let unfinished = failure.unfinished();
        unfinished.is_some_and(|unfinished| self.limits().may_continue_after(self.invocation, unfinished, self.history))
    }

    /// Milliseconds from the notice to an instant.
    pub(crate) fn ms_until(&self, instant: Instant) -> i64 {
        let since = self.invocation.clock.at(instant).duration_since(self.notice.time);
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Whether the instance stays if its pods cannot leave, as far as that was asked.
    pub(crate) fn is_kept(&self) -> bool {
        self.action.as_ref().is_some_and(LifecycleAction::is_kept)
    }

    /// Does something, and keeps the lifecycle action waiting meanwhile.
    pub(crate) async fn hold_action_during<T>(&self, doing: impl Future<Output = T>) -> T {
        let Some(action) = &self.action else { return doing.await };
        beside(doing, action.hold()).await
    }

    /// Ends when the lifecycle action waits no longer; never, if there is none.
    pub(crate) async fn wait_until_action_is_over(&self) {
        match &self.action {
            Some(action) => action.wait_until_over().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until it is known whether the lifecycle action still waits, where the instance may be in use again if not: a
    /// notice of a return to the warm pool that comes again when the instance has left it would cordon a node in use for good.
    pub(crate) async fn wait_until_action_is_known(&self) {
        if let (Kind::ReturnToWarmPool, Some(action)) = (self.notice.kind, &self.action) {
            action.wait_until_known().await;
        }
    }

    /// When heartbeats held the lifecycle action.
    pub(crate) fn heartbeats(&self) -> Vec<Timestamp> {
        let sent = self.action.as_ref().map(LifecycleAction::held_at).unwrap_or_default();
        sent.into_iter().map(|at| self.invocation.clock.at(at)).collect()
    }
}

/// Does something, and something else beside it for as long as that takes.
pub(crate) async fn beside<T>(doing: impl Future<Output = T>, other: impl Future) -> T {
    match select(pin!(doing), pin!(other)).await {
        Either::Left((done, _)) => done,
        Either::Right((_, doing)) => doing.await,
    }
}

impl Target<'_> {
    /// Who claims the node, and what they leave on it.
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
    use std::time::Duration;

    use spillway_core::test_support::maintenance;
    use spillway_notice::Maintenance;
    use tokio::time::sleep;

    use super::*;
    use crate::test_support::at;
    use crate::test_support::aws::{group_described, heartbeat, hook_described, hook_described_for};
    use crate::test_support::context::{Case, TestContext};

    #[tokio::test(start_paused = true)]
    async fn an_instance_that_was_shut_down_goes_soon_and_of_one_whose_maintenance_may_be_over_nobody_knows() {
        let context = TestContext::new(&[], [], []);
        let (shut_down, maintained) =
            (Case::of(Kind::ShuttingDown, Deadline::Unknown), Case::of(Kind::Maintenance, Deadline::Unknown));
        let goes = shut_down.attempt(&context).await.window.instance_goes;
        assert_eq!(goes, Termination::Soon { respected_until: Instant::now() + Duration::from_mins(2) });
        assert_eq!(maintained.attempt(&context).await.window.instance_goes, Termination::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn window_of_a_hook_is_tightened_and_never_moves() {
        // Three seconds a hundred times, and five for the answer.
        let aws = [hook_described_for(3), group_described(false).repeated()];
        let (context, case) = (TestContext::new(&[], [], aws), Case::held(Kind::Terminate));
        let (attempt, end) = (case.attempt(&context).await, Instant::now() + Duration::from_secs(295));
        assert_eq!((attempt.window.instance_goes, end < attempt.window.end), (Termination::Unknown, true));
        for _ in 0..2 {
            let window = attempt.window_of_hook().await;
            assert_eq!((window.instance_goes, window.end), (Termination::AtTheLatest(end), end));
            sleep(Duration::from_mins(10)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_for_a_maintenance_names_it() {
        let (context, mut case) = (TestContext::new(&[], [], []), Case::of(Kind::Maintenance, Deadline::Open));
        case.notice.maintenance = Some(Maintenance { id: "m-1".to_owned(), reboots: false, starts: None });
        let attempt = case.attempt(&context).await;
        assert_eq!(case.target(&attempt).claimant().annotation.maintenance.as_deref(), Some("m-1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_moment_is_told_in_milliseconds_since_the_notice() {
        let (context, case) = (TestContext::new(&[], [], []), Case::spot());
        let attempt = case.attempt(&context).await;
        assert_eq!(attempt.ms_until(Instant::now() + Duration::from_millis(1500)), 1500);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_done_with_a_hook_tells_when_heartbeats_held_it() {
        let (context, case) = (TestContext::new(&[], [], [hook_described(), heartbeat()]), Case::held(Kind::Terminate));
        let attempt = case.attempt(&context).await;
        attempt.hold_action_during(sleep(Duration::from_secs(5))).await;
        assert_eq!(attempt.heartbeats(), [at("1970-01-01T00:00:01Z")], "it is not known to be ours");
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_says_since_when_its_instance_was_to_go_and_until_when_it_has() {
        let (context, case) = (TestContext::new(&[], [], []), Case::spot());
        let attempt = case.attempt(&context).await;
        let ClaimAnnotation { since, until, .. } = case.target(&attempt).claimant().annotation;
        assert_eq!((since, until), (Some(Timestamp::UNIX_EPOCH), Some(at("1970-01-01T00:02:00Z"))));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_reboot_that_may_be_over_only_a_drain_that_has_begun_goes_on() {
        for (deadline, requires_existing_claim) in [(Deadline::Unknown, true), (Deadline::Open, false)] {
            let (context, mut case) = (TestContext::new(&[], [], []), Case::of(Kind::Maintenance, deadline));
            case.notice.maintenance = Some(maintenance("m-1"));
            let attempt = case.attempt(&context).await;
            assert_eq!(
                case.target(&attempt).claimant().requires_existing_claim,
                requires_existing_claim,
                "{deadline:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_hook_that_has_waited_for_too_long_the_drain_has_two_seconds() {
        let (context, mut case) = (TestContext::new(&[], [], []), Case::of(Kind::Terminate, Deadline::HeldByHook));
        case.notice.time = at("1969-12-24T00:00:00Z");
        let end = case.attempt(&context).await.window.end;
        assert_eq!(case.invocation.clock.at(end), at("1970-01-01T00:00:02Z"));
    }
}
