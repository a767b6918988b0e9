//! One notice in one invocation: how long there is, who claims, what hook is held meanwhile.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use crate::aws::instance::ManagedBy;
use crate::aws::lifecycle::LifecycleAction;
use crate::continuation::Limits;
use crate::drain::deadline::{Termination, Window};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::node::{ClaimAnnotation, Claimant, taint};
use crate::notice::continued::History;
use crate::notice::{Deadline, Kind, Notice};
use crate::settings::{HeldPods, Settings};

/// A notice that comes late is still worked on this long: clocks differ, and evictions that
/// are asked for at once cost nothing.
pub(crate) const LEAST_WINDOW: SignedDuration = SignedDuration::from_secs(10);
/// The same when a hook waits: its answer must still find it waiting.
const LEAST_WINDOW_OF_A_HOOK: SignedDuration = SignedDuration::from_secs(2);

/// EC2 answers sooner as a rule, and then says whose the instance is: most hooks of an account are none of ours to hold.
const UNHELD: Duration = Duration::from_secs(1);

/// One notice in one invocation.
pub(crate) struct Attempt<'a> {
    pub(crate) notice: &'a Notice,
    pub(crate) history: &'a History,
    pub(crate) invocation: &'a Invocation,
    /// The lifecycle action that waits for us, if there is one.
    pub(crate) action: Option<LifecycleAction<'a>>,
    pub(crate) limits: Limits,
}

impl Attempt<'_> {
    /// From when to when the node is drained: within this invocation, by the notice's own clock.
    pub(crate) fn window(&self, settings: &Settings) -> Window {
        let clock = self.invocation.clock;
        let least = match self.notice.deadline {
            Deadline::Hard(_) | Deadline::Open => LEAST_WINDOW,
            Deadline::HeldByHook => LEAST_WINDOW_OF_A_HOOK,
        };
        // A notice that is ahead of our clock was not sent later than now: it is the clock that is slow.
        let slow_by = self.notice.time.duration_since(clock.started()).max(SignedDuration::ZERO);
        let limit = self.limits.drain.saturating_sub(slow_by).unwrap_or(Timestamp::MIN);
        let limit = clock.instant(limit.max(clock.now() + least));
        let instance_goes = match (self.notice.deadline, settings.held_pods) {
            (Deadline::Hard(_), _) | (_, HeldPods::Delete) => Termination::At(limit),
            (Deadline::HeldByHook, HeldPods::Keep) => Termination::AtTheLatest(limit),
            (Deadline::Open, HeldPods::Keep) => Termination::Unknown,
        };
        Window {
            start: self.history.began().map_or_else(Instant::now, |began| clock.instant(began)),
            end: limit.min(self.invocation.drains_until()),
            instance_goes,
            margin: settings.margin,
        }
    }

    /// Whether only the invocation's time is up, and not the notice's.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.invocation.is_over_before(self.limits.drain)
    }

    /// Whether a later invocation may still mend what this one could not.
    pub(crate) fn leaves_time_after(&self, failure: &Failure) -> bool {
        self.limits.leave_time_after(self.invocation, failure, self.history)
    }

    pub(crate) fn claimant<'s>(&self, owner: ManagedBy, settings: &'s Settings) -> Claimant<'s> {
        let notice = self.notice;
        let (kind, event) = (notice.kind, &notice.event_id);
        let maintenance = notice.maintenance.as_ref();
        let until = match notice.deadline {
            Deadline::Hard(at) => Some(at),
            Deadline::HeldByHook | Deadline::Open => None,
        };
        let mark = ClaimAnnotation {
            event: event.clone(),
            request: self.invocation.request_id.clone(),
            notice: kind.as_str().to_owned(),
            until,
            cordoned: true,
            taints: Vec::new(),
            maintenance: maintenance.map(|maintenance| maintenance.id.clone()),
            boot: None,
        };
        let names = settings.taint;
        Claimant {
            mark,
            handed_on_by: self.history.handed_on_by().map(str::to_owned),
            reboots: kind == Kind::ReplaceRootVolume || maintenance.is_some_and(|maintenance| maintenance.reboots),
            taint: names.and_then(|names| taint::for_notice(kind, event, names, settings.taint_effect)),
            excludes: settings.exclude_from_load_balancers,
            owner,
            selector: &settings.node_selector,
        }
    }

    /// Does something, and keeps the hook waiting if that takes long. Whether anybody still waits is seen by whoever holds
    /// it next.
    pub(crate) async fn keep_hook_during<T>(&self, settings: &Settings, doing: impl Future<Output = T>) -> T {
        let held = pin!(async {
            sleep(UNHELD).await;
            self.hold(settings).await;
        });
        match select(pin!(doing), held).await {
            Either::Left((done, _)) => done,
            Either::Right(((), doing)) => doing.await,
        }
    }

    /// Keeps the hook waiting; ends when nobody waits for us any more. Without a hook, never.
    pub(crate) async fn hold(&self, settings: &Settings) {
        match &self.action {
            Some(action) => action.hold(settings.heartbeat).await,
            None => std::future::pending().await,
        }
    }
}
