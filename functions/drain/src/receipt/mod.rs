//! The receipt: the one record of what became of a notice, from which everything people see
//! is made.

mod pod;

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp, Unit};
use serde::Serialize;
use tokio::time::Instant;

use crate::drain::Report;
use crate::drain::deadline::Window;
use crate::drain::outlook::Outlook;
use crate::failure::Failure;
use crate::interruption::continued::Earlier;
use crate::interruption::{Deadline, Interruption, Several};
use crate::lifecycle::Completion;
use crate::settings::LifecycleResult;
pub(crate) use pod::{Fate, PodRecord};

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

/// The record of one notice for one instance.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Receipt {
    #[serde(rename = "receipt")]
    version: u32,
    /// Lambda's id of the invocation.
    request_id: String,
    pub(crate) notice: Notice,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance: Option<String>,
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
    /// Last, because CloudWatch Logs Insights reads the first 200 fields of a line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pods: Vec<PodRecord>,
}

/// The notice, as far as it could be read.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Notice {
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Timestamp>,
    /// When the instance goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<Timestamp>,
}

/// The window of a drain, in milliseconds from the notice.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowRecord {
    /// When it began.
    pub(crate) from_ms: i64,
    /// When this invocation has to stop.
    pub(crate) to_ms: i64,
    /// When the instance goes; absent while something may wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goes_ms: Option<i64>,
    /// Seconds kept before it goes.
    margin_s: u64,
}

/// A step and when it was done.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Step {
    pub(crate) step: StepName,
    /// Milliseconds from the notice.
    pub(crate) at_ms: i64,
}

/// The steps of a drain, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StepName {
    /// The function began to work on the notice.
    Begun,
    /// EC2 said who the instance is.
    Described,
    /// The node is cordoned.
    Claimed,
    /// The node's `NodeClaim` is deleted: the rest is Karpenter's.
    NodeClaimDeleted,
    /// The drain is over.
    Drained,
    /// The node of a launched instance is Ready.
    Ready,
    /// The lifecycle action is completed.
    Completed,
    /// What is left is a later invocation's.
    HandedOn,
}

/// The lifecycle hook.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HookRecord {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) state: HookState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<LifecycleResult>,
    /// When heartbeats were sent, in milliseconds from the notice; the first fifty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    heartbeats_ms: Vec<i64>,
}

/// What became of the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HookState {
    /// Not touched: it is left to its owner, or to its own timeout.
    Left,
    /// Held for a later invocation.
    Held,
    /// Completed by us.
    Completed,
    /// Nobody waited any more: it had been completed, or its time had passed.
    AlreadyOver,
    /// Completing it failed; Auto Scaling ends it by its timeout.
    Failed,
}

impl Receipt {
    /// A receipt for an interruption that is about to be handled.
    pub(crate) fn begin(request_id: &str, interruption: &Interruption, earlier: &[Earlier]) -> Self {
        let hook = interruption.hook.as_ref().map(|hook| HookRecord {
            group: hook.group.clone(),
            name: hook.name.clone(),
            state: HookState::Left,
            result: None,
            heartbeats_ms: Vec::new(),
        });
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
        Self { instance, hook, earlier: earlier.to_vec(), ..Self::blank(request_id, notice) }
    }

    /// A receipt for a notice of several instances, which hands them on.
    pub(crate) fn of_several(request_id: &str, several: &Several) -> Self {
        let notice = Notice {
            event_id: Some(several.event_id.clone()),
            kind: Some(several.kind.as_str()),
            time: Some(several.time),
            deadline: None,
        };
        Self::blank(request_id, notice)
    }

    /// A receipt for an event that is no interruption, or none that can be read.
    pub(crate) fn without_interruption(request_id: &str, event_id: Option<String>) -> Self {
        Self::blank(request_id, Notice { event_id, ..Notice::default() })
    }

    fn blank(request_id: &str, notice: Notice) -> Self {
        Self {
            version: VERSION,
            request_id: request_id.to_owned(),
            notice,
            instance: None,
            owner: None,
            decision: None,
            cluster: None,
            node: None,
            window: None,
            steps: Vec::new(),
            hook: None,
            ending: None,
            reason: String::new(),
            dry_run: false,
            earlier: Vec::new(),
            pods: Vec::new(),
        }
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
        let goes_ms = window.instance_goes.map(|at| self.ms(at, now));
        self.window = Some(WindowRecord { from_ms, to_ms, goes_ms, margin_s: window.margin.as_secs() });
    }

    /// Notes the heartbeats that the hook was sent.
    pub(crate) fn heartbeats(&mut self, sent: &[Instant], now: (Timestamp, Instant)) {
        const MOST: usize = 50;
        let heartbeats_ms = sent.iter().take(MOST).map(|at| self.ms(*at, now)).collect();
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
    pub(crate) fn pods(&mut self, report: &Report, now: (Timestamp, Instant)) {
        let ms = |at| self.ms(at, now);
        let blind = report.blind.as_deref();
        self.pods = report.pods.iter().map(|(uid, pod)| PodRecord::new(uid.0.clone(), pod, ms, blind)).collect();
    }

    /// Notes what would become of the pods.
    pub(crate) fn outlook(&mut self, outlook: &Outlook) {
        self.pods = outlook.pods.iter().map(|(uid, pod)| PodRecord::outlook(uid.0.clone(), pod)).collect();
    }

    /// Notes what became of the hook.
    pub(crate) fn hook(&mut self, completion: Result<Completion, ()>, result: LifecycleResult) {
        if let Some(hook) = &mut self.hook {
            hook.result = Some(result);
            hook.state = match completion {
                Ok(Completion::Completed) => HookState::Completed,
                Ok(Completion::AlreadyOver) => HookState::AlreadyOver,
                Err(()) => HookState::Failed,
            };
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

    /// This receipt in short, for those of the invocations that go on with it.
    pub(crate) fn in_short(&self, from: Timestamp, to: Timestamp) -> Earlier {
        let mut pods = BTreeMap::new();
        for pod in &self.pods {
            *pods.entry(pod.fate.as_str().to_owned()).or_default() += 1;
        }
        let second = |at: Timestamp| at.round(Unit::Second).unwrap_or(at);
        Earlier { request_id: self.request_id.clone(), from: second(from), to: second(to), pods }
    }

    /// How many pods are left that no later invocation goes on with.
    pub(crate) fn left_for_good(&self) -> usize {
        if self.ending == Some(Ending::Continued) { 0 } else { self.count(Fate::Left) }
    }

    /// How many pods have gone, in this invocation and in those before it.
    pub(crate) fn moved(&self) -> usize {
        let gone = [Fate::Clean, Fate::Clamped, Fate::Forced];
        let before =
            self.earlier.iter().flat_map(|earlier| gone.iter().filter_map(|fate| earlier.pods.get(fate.as_str())));
        gone.iter().map(|fate| self.count(*fate)).sum::<usize>() + before.sum::<usize>()
    }

    /// How many pods came to such an end.
    pub(crate) fn count(&self, fate: Fate) -> usize {
        self.pods.iter().filter(|pod| pod.fate == fate).count()
    }
}

/// What became of the hook, in words.
impl fmt::Display for HookRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lifecycle hook {} of group {} ", self.name, self.group)?;
        match self.state {
            HookState::Left | HookState::Failed => f.write_str("is left to its own timeout"),
            HookState::Held => f.write_str("is held for a later invocation"),
            HookState::Completed => write!(f, "got {}", self.result.map_or("its answer", LifecycleResult::as_str)),
            HookState::AlreadyOver => f.write_str("waited no longer"),
        }
    }
}
