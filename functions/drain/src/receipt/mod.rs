//! The receipt: the one record of what became of a notice, from which everything people see
//! is made.

mod counts;
mod hook;
mod length;
pub(crate) mod outcome;
mod pod;
pub(crate) mod record;
mod times;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::aws::instance::ManagedBy;
use crate::failure::Failure;
use crate::invocation::{Home, Invocation};
use crate::node::How;
use crate::notice::continued::Earlier;
use crate::notice::{Deadline, Notice, Several};
pub(crate) use counts::Counts;
pub(crate) use hook::{HookRecord, HookState};
pub(crate) use length::shorten;
pub(crate) use outcome::Outcome;
pub(crate) use pod::{Fate, Leaving, PodRecord};
use record::Record;
pub(crate) use times::{AfterDrain, StepName};
use times::{Step, WindowRecord};

/// The version of this document. It changes when a field is renamed or changes its meaning.
const VERSION: u32 = 2;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum BeginNotified {
    /// By this invocation or an earlier one.
    Told,
    /// It joined another notice's drain, or was no drain, or was over before it was under way: there was nothing to evict.
    #[default]
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
    /// The stack that the function is of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) stack: String,
    pub(crate) notice: NoticeRecord,
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
    /// What manages the node's life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) managed_by: Option<&'static str>,
    /// What was to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Whether it was about an instance of no cluster of ours. Not for the log, where `reason` says it in words.
    #[serde(skip)]
    pub(crate) is_not_ours: bool,
    /// Whether the node's events tell of the begin. Not for the log.
    #[serde(skip)]
    pub(crate) begin: BeginNotified,
    /// How the node was claimed. Not for the log, where `reason` says it in words.
    #[serde(skip)]
    how: Option<How>,
    /// The node's labels when it was claimed. Not for the log, whose lines people read.
    #[serde(skip)]
    pub(crate) node_labels: BTreeMap<String, String>,
    /// How long there was for the drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<WindowRecord>,
    /// Milliseconds from the notice to each step.
    pub(crate) steps: Vec<Step>,
    /// What was waited for when the last pod had gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_drain: Option<AfterDrain>,
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
#[cfg_attr(test, schemars(rename = "Notice"))]
pub(crate) struct NoticeRecord {
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

/// What an event was about, as far as it could be read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// One instance.
    One { notice: &'a Notice, earlier: &'a [Earlier] },
    /// Several instances, to which the notice is handed on.
    Several(&'a Several),
    /// Nothing that could be read, or nothing for us; with the event's id if it has one.
    Unread { event_id: Option<&'a str> },
}

/// How a notice ended: what it came to, or what went wrong.
pub(crate) type Ended<'a> = Result<&'a Outcome, &'a Failure>;

impl Receipt {
    /// The receipt of a notice that has ended.
    pub(crate) fn of(
        invocation: &Invocation,
        subject: Subject<'_>,
        record: &Record,
        heartbeats: &[Timestamp],
        ended: Ended<'_>,
    ) -> Self {
        let mut receipt = Self::so_far(invocation, subject, record, heartbeats);
        (receipt.ending, receipt.reason) = match ended {
            Ok(outcome) => (Some(outcome.ending()), outcome.reason(receipt.hook.as_ref())),
            Err(failure) => (Some(Ending::Failed), receipt.failed(failure)),
        };
        receipt.is_not_ours = ended.is_ok_and(Outcome::is_not_ours);
        receipt
    }

    /// The receipt of a drain that is under way.
    pub(crate) fn begun(invocation: &Invocation, subject: Subject<'_>, record: &Record, reason: String) -> Self {
        Self { reason, ..Self::so_far(invocation, subject, record, &[]) }
    }

    fn so_far(invocation: &Invocation, subject: Subject<'_>, record: &Record, heartbeats: &[Timestamp]) -> Self {
        let notice = NoticeRecord::of(subject);
        let (instance, hook, earlier) = match subject {
            Subject::One { notice, earlier } => (Some(notice.instance.to_string()), notice.hook.as_ref(), earlier),
            Subject::Several(_) | Subject::Unread { .. } => (None, None, [].as_slice()),
        };
        let Home { account, region } = invocation.home.clone();
        let ms = |at| notice.ms_until(at);
        let described = record.instance.as_ref();
        Self {
            version: VERSION,
            request_id: invocation.request_id.clone(),
            account,
            region,
            stack: String::new(),
            instance,
            zone: described.map(|instance| instance.zone.clone()).filter(|zone| !zone.is_empty()),
            instance_type: described.and_then(|instance| instance.type_name.clone()),
            auto_scaling_group: described.and_then(|instance| instance.group().map(str::to_owned)),
            managed_by: record.managed_by.map(ManagedBy::as_str),
            decision: record.decision,
            cluster: record.cluster.as_ref().map(ToString::to_string),
            node: record.node.clone(),
            is_not_ours: false,
            begin: record.begin,
            how: record.claim.as_ref().map(|claim| claim.how.clone()),
            node_labels: record.claim.as_ref().map(|claim| claim.labels.clone()).unwrap_or_default(),
            window: record.window.map(|window| WindowRecord::of(window, |at| ms(invocation.clock.at(at)))),
            steps: record.steps.iter().map(|(step, at)| Step { step: *step, at_ms: ms(*at) }).collect(),
            after_drain: record.after_drain,
            hook: hook.map(|hook| HookRecord::of(hook, record.hook, heartbeats.iter().map(|at| ms(*at)))),
            ending: None,
            reason: String::new(),
            dry_run: false,
            earlier: earlier.to_vec(),
            pods_cut: None,
            pods: record.pods.clone(),
            notice,
        }
    }

    /// What went wrong, and what that means for the hook.
    fn failed(&self, failure: &Failure) -> String {
        let text = failure.text();
        match &self.hook {
            Some(hook) if hook.is_left() || hook.is_not_completed() => {
                format!("{text}; {hook} unless a retry completes it")
            }
            Some(hook) => format!("{text}; {hook}"),
            None => text,
        }
    }

    /// Whether another notice holds the node's claim.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.how, Some(How::Joined { .. }))
    }

    /// When a step was done, in milliseconds from the notice.
    pub(crate) fn step_ms(&self, step: StepName) -> Option<i64> {
        self.steps.iter().find(|done| done.step == step).map(|done| done.at_ms)
    }
}

impl NoticeRecord {
    fn of(subject: Subject<'_>) -> Self {
        match subject {
            Subject::One { notice, .. } => Self {
                event_id: Some(notice.event_id.clone()),
                kind: Some(notice.kind.as_str()),
                time: Some(notice.time),
                deadline: match notice.deadline {
                    Deadline::Hard(at) => Some(at),
                    Deadline::Unknown | Deadline::HeldByHook | Deadline::Open => None,
                },
            },
            Subject::Several(several) => Self {
                event_id: Some(several.event_id.clone()),
                kind: Some(several.kind.as_str()),
                time: Some(several.time),
                deadline: None,
            },
            Subject::Unread { event_id } => Self { event_id: event_id.map(str::to_owned), ..Self::default() },
        }
    }

    /// Milliseconds from the notice to `at`.
    fn ms_until(&self, at: Timestamp) -> i64 {
        let since = self.time.map_or(SignedDuration::ZERO, |time| at.duration_since(time));
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}
