//! The receipt: the one record of what became of a notice, from which everything people see
//! is made.

mod counts;
pub(crate) mod ending;
mod hook;
mod length;
mod pod;
mod times;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::time::Instant;

use crate::aws::instance::Instance;
use crate::aws::lifecycle::Completion;
use crate::drain::deadline::Window;
use crate::drain::dry_run::Preview;
use crate::drain::{DrainEnd, DrainReport, StopReason};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::node::{Claim, How};
use crate::notice::continued::Earlier;
use crate::notice::{Deadline, Home, Interruption, Several};
use crate::settings::LifecycleResult;
pub(crate) use hook::{HookRecord, HookState};
pub(crate) use length::shorten;
pub(crate) use pod::{Fate, Leaving, PodRecord};
pub(crate) use times::StepName;
use times::{Step, WindowRecord};

/// The version of this document. It changes when a field is renamed or changes its meaning.
const VERSION: u32 = 1;

/// How a notice ended. There is no other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ending {
    /// Every pod that had to leave has gone.
    Drained,
    /// Another notice holds the claim, and the node is empty all the same; or Karpenter was taking it away already.
    Joined,
    /// Nothing was to be done, for the reason stated.
    Ignored,
    /// A later invocation goes on with it.
    Continued,
    /// What was asked for, which is no drain, has been done.
    Done,
    /// It did not work; the event is kept.
    Failed,
}

/// Whether people were told that a drain had begun, by the time it was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// By this invocation or an earlier one.
    Told,
    /// It joined another notice's drain, or was no drain, or was over before it was under way: there was nothing to evict.
    Untold,
}

/// The record of one notice for one instance.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Receipt {
    #[serde(rename = "receipt")]
    version: u32,
    /// Lambda's id of the invocation.
    pub(crate) request_id: String,
    /// Where the function is at home.
    pub(crate) account: String,
    pub(crate) region: String,
    pub(crate) notice: Notice,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance: Option<String>,
    /// The instance's availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_type: Option<String>,
    /// The group that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_scaling_group: Option<String>,
    /// Who manages the node's life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<&'static str>,
    /// What was to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Whether the node's events tell of the begin. Not for the log.
    #[serde(skip)]
    pub(crate) begin: Begin,
    /// How the node was claimed. Not for the log, where `reason` says it in words.
    #[serde(skip)]
    how: Option<How>,
    /// The node, if the claim on it is this notice's.
    #[serde(skip)]
    claimed: Option<String>,
    /// The node's labels when it was claimed. Not for the log, whose lines people read.
    #[serde(skip)]
    pub(crate) node_labels: BTreeMap<String, String>,
    /// How long there was for the drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<WindowRecord>,
    /// Milliseconds from the notice to each step.
    pub(crate) steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hook: Option<HookRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ending: Option<Ending>,
    /// The ending in a sentence.
    pub(crate) reason: String,
    /// Whether nothing was touched, whatever was found.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dry_run: bool,
    /// The invocations that worked on the notice before this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<Earlier>,
    /// How many pods are not in the list that follows, because the receipt would have been too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods_cut: Option<usize>,
    /// Last, because CloudWatch Logs Insights reads the first 200 fields of a line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<pod::InDocument>"))]
    pub(crate) pods: Vec<PodRecord>,
}

/// The notice, as far as it could be read.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Notice {
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Timestamp>,
    /// When the instance goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<Timestamp>,
}

impl Receipt {
    /// A receipt for an interruption that is about to be handled.
    pub(crate) fn begin(invocation: &Invocation, interruption: &Interruption, earlier: &[Earlier]) -> Self {
        let hook = interruption.hook.as_ref().map(HookRecord::of);
        let notice = Notice {
            event_id: Some(interruption.event_id.clone()),
            kind: Some(interruption.kind.as_str()),
            time: Some(interruption.time),
            deadline: match interruption.deadline {
                Deadline::Hard(at) => Some(at),
                Deadline::HeldByHook | Deadline::Open => None,
            },
        };
        let instance = Some(interruption.instance.to_string());
        Self { instance, hook, earlier: earlier.to_vec(), ..Self::blank(invocation, notice) }
    }

    /// A receipt for a notice of several instances, which hands them on.
    pub(crate) fn of_several(invocation: &Invocation, several: &Several) -> Self {
        let notice = Notice {
            event_id: Some(several.event_id.clone()),
            kind: Some(several.kind.as_str()),
            time: Some(several.time),
            deadline: None,
        };
        Self::blank(invocation, notice)
    }

    /// A receipt for an event that is no interruption, or none that can be read.
    pub(crate) fn without_interruption(invocation: &Invocation, event_id: Option<String>) -> Self {
        Self::blank(invocation, Notice { event_id, ..Notice::default() })
    }

    fn blank(invocation: &Invocation, notice: Notice) -> Self {
        let Home { account, region } = invocation.home.clone();
        Self {
            version: VERSION,
            request_id: invocation.request_id.clone(),
            account,
            region,
            notice,
            instance: None,
            zone: None,
            instance_type: None,
            auto_scaling_group: None,
            owner: None,
            decision: None,
            cluster: None,
            node: None,
            begin: Begin::Untold,
            how: None,
            claimed: None,
            node_labels: BTreeMap::new(),
            window: None,
            steps: Vec::new(),
            hook: None,
            ending: None,
            reason: String::new(),
            dry_run: false,
            earlier: Vec::new(),
            pods_cut: None,
            pods: Vec::new(),
        }
    }

    /// Notes what EC2 says of the instance.
    pub(crate) fn describe(&mut self, instance: &Instance) {
        self.zone = Some(instance.zone.clone()).filter(|zone| !zone.is_empty());
        self.instance_type.clone_from(&instance.type_name);
        self.auto_scaling_group = instance.group().map(str::to_owned);
    }

    /// Notes the node that is claimed.
    pub(crate) fn claim(&mut self, claim: &Claim) {
        self.node = Some(claim.node.clone());
        self.how = Some(claim.how.clone());
        self.claimed = self.node.clone().filter(|_| self.notice.event_id.as_ref() == Some(&claim.holder));
        self.node_labels.clone_from(&claim.labels);
    }

    /// Whether another notice holds the node's claim.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.how, Some(How::Joined { .. }))
    }

    /// Milliseconds from the notice to `at`.
    pub(crate) fn since_notice(&self, at: Timestamp) -> i64 {
        let since = self.notice.time.map_or(SignedDuration::ZERO, |time| at.duration_since(time));
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Notes that a step is done.
    pub(crate) fn step(&mut self, step: StepName, at: Timestamp) {
        let at_ms = self.since_notice(at);
        self.steps.push(Step { step, at_ms });
    }

    /// When a step was done, in milliseconds from the notice.
    pub(crate) fn step_ms(&self, step: StepName) -> Option<i64> {
        self.steps.iter().find(|done| done.step == step).map(|done| done.at_ms)
    }

    /// Notes how long there is for the drain. `now` is both clocks at once.
    pub(crate) fn window(&mut self, window: Window, now: (Timestamp, Instant)) {
        let (from_ms, to_ms) = (self.ms(window.start, now), self.ms(window.end, now));
        let goes_ms = window.instance_goes.hard().map(|at| self.ms(at, now));
        self.window = Some(WindowRecord { from_ms, to_ms, goes_ms, margin_s: window.margin.as_secs() });
    }

    /// Notes the heartbeats that the hook was sent.
    pub(crate) fn heartbeats(&mut self, sent: &[Instant], now: (Timestamp, Instant)) {
        let heartbeats_ms = sent.iter().take(hook::MOST_HEARTBEATS).map(|at| self.ms(*at, now)).collect();
        if let Some(hook) = &mut self.hook {
            hook.heartbeats_ms = heartbeats_ms;
        }
    }

    /// Milliseconds from the notice to an instant, before or after `now`.
    fn ms(&self, at: Instant, now: (Timestamp, Instant)) -> i64 {
        let (wall, instant) = now;
        let ms = |from: Instant, to: Instant| i64::try_from(to.saturating_duration_since(from).as_millis());
        let distance = ms(instant, at).unwrap_or(i64::MAX).saturating_sub(ms(at, instant).unwrap_or(i64::MAX));
        self.since_notice(wall).saturating_add(distance)
    }

    /// Notes what became of the pods. `now` is both clocks at once.
    pub(crate) fn pods(&mut self, report: &DrainReport, now: (Timestamp, Instant)) {
        let ms = |at| self.ms(at, now);
        let blind = report.blind.as_deref();
        self.pods = report.pods.iter().map(|(uid, pod)| PodRecord::new(uid.0.clone(), pod, ms, blind)).collect();
        if report.end == DrainEnd::Stopped(StopReason::GivenBack) {
            self.pods.iter_mut().for_each(PodRecord::may_stay);
        }
    }

    /// Notes what would become of the pods.
    pub(crate) fn preview(&mut self, preview: &Preview) {
        self.pods = preview.pods.iter().map(|(uid, pod)| PodRecord::preview(uid.0.clone(), pod)).collect();
    }

    /// Notes what became of the hook.
    pub(crate) fn hook(&mut self, completion: Result<Completion, ()>, result: LifecycleResult) {
        if let Some(hook) = &mut self.hook {
            hook.answered(completion, result);
        }
    }

    /// Notes that the hook is held for a later invocation.
    pub(crate) fn hook_is_held(&mut self) {
        if let Some(hook) = &mut self.hook {
            hook.state = HookState::Held;
        }
    }

    /// Notes that the hook waited no longer.
    pub(crate) fn hook_is_over(&mut self) {
        if let Some(hook) = &mut self.hook {
            hook.state = HookState::AlreadyOver;
        }
    }

    /// The receipt so far, with what is going on in a sentence.
    pub(crate) fn so_far(&self, reason: String) -> Self {
        Self { reason, ..self.clone() }
    }

    /// Closes the receipt.
    pub(crate) fn end(&mut self, ending: Ending, reason: String) {
        self.ending = Some(ending);
        self.reason = reason;
    }

    /// Closes the receipt with what went wrong.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        let hook = match &self.hook {
            Some(hook) if matches!(hook.state, HookState::Left | HookState::Failed) => {
                format!("; {hook} unless a retry completes it")
            }
            Some(hook) => format!("; {hook}"),
            None => String::new(),
        };
        self.end(Ending::Failed, format!("{failure}{hook}"));
    }

    /// The reason why nothing was done, with what that means for a hook that waits.
    pub(crate) fn with_hook_left(&self, reason: String) -> String {
        match &self.hook {
            Some(hook) if hook.state == HookState::Left => format!("{reason}; its {hook}"),
            _ => reason,
        }
    }
}
