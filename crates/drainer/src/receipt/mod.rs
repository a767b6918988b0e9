//! Fills in the receipt of a notice. Log lines, events, metrics and messages are made from the receipt.

mod pod;
pub(crate) mod record;

use std::collections::BTreeMap;

use spillway_core::drain::pod::RequestedBy;
use spillway_core::instance::ManagedBy;
use spillway_core::invocation::Invocation;
use spillway_core::node::claimant::{Claim, ClaimResult};
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Home, Notice, Several};
use spillway_receipt::{Earlier, NoticeRecord, Pod, Receipt, Step, VERSION, WindowRecord};

use crate::failure::Failure;
pub(crate) use pod::of_preview;
use record::Record;
pub(crate) use spillway_receipt::{AfterDrain, Counts, Ending, Fate, HookState, PodRecord, StepName};

/// Version of the Lambda function.
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Receipt and further data that is needed to publish the receipt.
#[derive(Debug, Clone)]
pub(crate) struct Publication {
    pub(crate) receipt: Receipt,
    /// Labels of the node at the time of the claim, for events on the event bus.
    pub(crate) node_labels: BTreeMap<String, String>,
    /// `true` if the receipt is excluded from metrics.
    pub(crate) is_uncounted: bool,
    /// `true` if another notice holds the node's claim.
    pub(crate) is_joined: bool,
    /// Requester of each pod's eviction or deletion. The key is the pod's UID.
    pub(crate) left_by: BTreeMap<String, RequestedBy>,
}

/// Event that a receipt describes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    One {
        notice: &'a Notice,
        earlier: &'a [Earlier],
    },
    /// Notice about several instances. Each instance has an invocation of its own.
    Several(&'a Several),
    /// Lookup of EC2's scheduled events.
    MaintenanceLookup,
    /// Unreadable or unhandled event, with its id if known.
    Unread {
        event_id: Option<&'a str>,
    },
}

pub(crate) type Ended<'a> = Result<&'a Outcome, &'a Failure>;

impl Publication {
    /// Creates the receipt of a notice at the end of the invocation.
    pub(crate) fn of(invocation: &Invocation, subject: Subject<'_>, record: &Record, ended: Ended<'_>) -> Self {
        let mut so_far = Self::so_far(invocation, subject, record);
        let receipt = &mut so_far.receipt;
        (receipt.ending, receipt.reason) = match ended {
            Ok(outcome) => (Some(outcome.ending()), outcome.reason(receipt.hook.as_ref())),
            Err(failure) => (Some(Ending::Failed), failed(receipt, failure)),
        };
        receipt.error = ended.err().map(|failure| failure.error_type().into());
        if receipt.ending == Some(Ending::Continued) || matches!(ended, Err(Failure::InstanceKept { .. })) {
            // Pods left at the end are not lost if a later invocation continues or the instance stays.
            let lost = receipt.records_mut().filter(|pod| pod.fate == Fate::Lost);
            lost.for_each(|pod| pod.fate = Fate::Remaining);
        }
        so_far.is_uncounted = ended.is_ok_and(Outcome::is_uncounted);
        so_far
    }

    /// Creates the receipt of a drain in progress.
    pub(crate) fn begun(invocation: &Invocation, subject: Subject<'_>, record: &Record, reason: String) -> Self {
        let mut so_far = Self::so_far(invocation, subject, record);
        so_far.receipt.reason = reason;
        so_far
    }

    fn so_far(invocation: &Invocation, subject: Subject<'_>, record: &Record) -> Self {
        let notice = notice_record(subject);
        let (instance, hook, earlier) = match subject {
            Subject::One { notice, earlier } => (Some(notice.instance.to_string()), notice.hook.as_ref(), earlier),
            Subject::Several(_) | Subject::MaintenanceLookup | Subject::Unread { .. } => (None, None, [].as_slice()),
        };
        let Home { account, region } = invocation.home.clone();
        let ms = |at| notice.ms_until(at);
        let described = record.instance.as_ref();
        let claim = record.claim.as_ref();
        let receipt = Receipt {
            version: VERSION,
            release: RELEASE.into(),
            request_id: invocation.request_id.clone(),
            account,
            region,
            instance,
            zone: described.map(|instance| instance.zone.clone()).filter(|zone| !zone.is_empty()),
            instance_type: described.and_then(|instance| instance.type_name.clone()),
            auto_scaling_group: described.and_then(|instance| instance.group().map(str::to_owned)),
            managed_by: record.managed_by.map(|managed_by| ManagedBy::as_str(managed_by).into()),
            decision: record.decision.as_ref().map(|decision| decision.as_str().into()),
            cluster: record.cluster.as_ref().map(ToString::to_string),
            node: record.node.clone(),
            not_cordoned: record.claim.as_ref().and_then(Claim::denied).map(ToString::to_string),
            warnings: record.warnings.clone(),
            window: record.window.map(|window| WindowRecord {
                start_ms: ms(invocation.clock.at(window.start)),
                end_ms: ms(invocation.clock.at(window.end)),
                deadline_ms: window.instance_goes.hard().map(|at| ms(invocation.clock.at(at))),
                margin_s: window.margin.as_secs(),
            }),
            steps: record.steps.iter().map(|(step, at)| Step { step: *step, at_ms: ms(*at) }).collect(),
            after_drain: record.after_drain,
            replacement: record.replacement.as_ref().zip(notice.time).map(|(replaced, time)| replaced.text(time)),
            hook: hook.map(|hook| record.hook.of(hook).with_heartbeats(record.heartbeats.iter().map(|at| ms(*at)))),
            earlier: earlier.to_vec(),
            pods: record.pods.iter().cloned().map(Pod::Full).collect(),
            notice,
            ..Receipt::default()
        };
        Self {
            receipt,
            node_labels: claim.map(|claim| claim.labels.clone()).unwrap_or_default(),
            is_uncounted: false,
            is_joined: matches!(claim, Some(Claim { how: ClaimResult::Joined { .. }, .. })),
            left_by: record.left_by.clone(),
        }
    }

    /// Returns the requester of the pod's eviction or deletion, if known.
    pub(crate) fn left_by(&self, pod: &PodRecord) -> Option<RequestedBy> {
        self.left_by.get(&pod.uid).copied()
    }
}

/// Returns a text that describes a failure and the lifecycle hook's state.
fn failed(receipt: &Receipt, failure: &Failure) -> String {
    let text = failure.text();
    match &receipt.hook {
        Some(hook) if matches!(hook.state, HookState::Left | HookState::Failed) => {
            format!("{text}; {hook} unless a retry completes it")
        }
        Some(hook) => format!("{text}; {hook}"),
        None => text,
    }
}

fn notice_record(subject: Subject<'_>) -> NoticeRecord {
    let (event_id, kind, time, deadline) = match subject {
        Subject::One { notice, .. } => (&notice.event_id, notice.kind, notice.time, notice.deadline),
        Subject::Several(several) => (&several.event_id, several.kind, several.time, Deadline::Open),
        Subject::MaintenanceLookup => {
            return NoticeRecord { kind: Some("maintenance lookup".into()), ..NoticeRecord::default() };
        }
        Subject::Unread { event_id } => {
            return NoticeRecord { event_id: event_id.map(str::to_owned), ..NoticeRecord::default() };
        }
    };
    let deadline = match deadline {
        Deadline::Hard(at) => Some(at),
        Deadline::Unknown | Deadline::HeldByHook | Deadline::Open => None,
    };
    NoticeRecord { event_id: Some(event_id.clone()), kind: Some(kind.as_str().into()), time: Some(time), deadline }
}
