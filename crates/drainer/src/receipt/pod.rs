//! Builds the pod records of a receipt from a drain or a dry run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use spillway_core::drain::dry_run::{PodPreview, Predicted, Preview};
use spillway_core::drain::plan::PodUid;
use spillway_core::drain::pod::blocker::Blocker;
use spillway_core::drain::pod::{PodState, RequestedBy, Tracked};
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::drain::request::Method;
use spillway_notice::continued::History;
use spillway_receipt::{Fate, PodRecord};
use tokio::time::Instant;

use super::record::Record;

/// Text for the unknown client that made a pod leave or shortened its grace period.
const ANOTHER: &str = "another notice's drain or a person";

impl Record {
    /// Records the pods of a drain, and pods that left between two invocations. `ms` converts an instant to milliseconds after
    /// the notice.
    pub(crate) fn drained(&mut self, report: &DrainReport, history: &History, ms: impl Fn(Instant) -> i64) {
        let watch_error = report.watch_error.as_deref();
        self.pods = report.pods.iter().map(|(uid, pod)| of_drain(uid.0.clone(), pod, &ms, watch_error)).collect();
        if report.end == DrainEnd::Stopped(StopReason::GivenBack) {
            self.pods.iter_mut().for_each(may_stay);
        }
        let is_reported = |pod: &PodRecord| report.pods.contains_key(&PodUid(pod.uid.clone()));
        let left = history.remaining.iter().filter(|pod| !is_reported(pod));
        self.pods.extend(left.map(|pod| ended(pod, Fate::Clean, "it left between two invocations")));
        let left_by = report.pods.iter().filter_map(|(uid, pod)| Some((uid.0.clone(), pod.history.left_by?)));
        self.left_by = left_by.collect();
    }

    /// Records the fate of the pods that earlier invocations left on the node, after the lifecycle hook has ended. A pod in
    /// `on_node` is lost, any other pod is unconfirmed. If `on_node` is `None`, every pod is lost.
    pub(crate) fn left_to_a_hook(&mut self, history: &History, on_node: Option<&BTreeSet<String>>) {
        let record = |pod: &PodRecord| match on_node {
            Some(uids) if !uids.contains(&pod.uid) => ended(pod, Fate::Unconfirmed, "it left between two invocations"),
            _ => ended(pod, Fate::Lost, "its lifecycle hook was over before a later invocation looked at it"),
        };
        self.pods = history.remaining.iter().map(record).collect();
    }
}

/// Copies a pod's record from an earlier invocation, and replaces the record's [`Fate`] and cause.
fn ended(pod: &PodRecord, fate: Fate, why: &str) -> PodRecord {
    PodRecord { fate, why: Some(why.to_owned()), ..pod.clone() }
}

pub(crate) fn of_preview(preview: &Preview) -> Vec<PodRecord> {
    preview.pods.iter().map(|(uid, pod)| predicted(uid.0.clone(), pod)).collect()
}

/// Builds the record of a drained pod. `ms` converts an instant to milliseconds after the notice.
fn of_drain(uid: String, pod: &Tracked, ms: impl Fn(Instant) -> i64, watch_error: Option<&str>) -> PodRecord {
    let given_s = pod.shortened_grace().map(|given| given.as_secs());
    let history = &pod.history;
    let forced = history.is_forced();
    let (fate, why) = match pod.state {
        PodState::Stays(why) => (Fate::Stayed, Some(why.as_str().to_owned())),
        _ if pod.is_returned => (Fate::Returned, Some("it tolerates the cordon, and came after it".to_owned())),
        PodState::Gone { .. } if forced => (Fate::Forced, pod.blocked.last().map(|by| blocked(pod, by))),
        PodState::Gone { .. } => (if given_s.is_some() { Fate::Clamped } else { Fate::Clean }, other_cause(pod)),
        PodState::Unconfirmed(why) => (Fate::Unconfirmed, Some(why.as_str().to_owned())),
        PodState::Waits { .. } if pod.is_finished_and_blocked() => {
            (Fate::Stayed, Some(format!("it had finished, and {}", why_lost(pod, watch_error))))
        }
        PodState::Waits { .. } | PodState::Requested | PodState::Leaving { .. } => {
            (Fate::Lost, Some(why_lost(pod, watch_error)))
        }
    };
    let gone_at = match pod.state {
        PodState::Gone { at } => Some(at),
        _ => None,
    };
    PodRecord {
        given_s,
        evictions: history.evictions(),
        answers: answers(&history.answers),
        blocked_by: pod.blocked.last().and_then(budgets),
        why,
        requested_ms: history.requested_at().map(&ms),
        accepted_ms: history.accepted_at.map(&ms),
        gone_ms: gone_at.map(&ms),
        ..PodRecord::of(pod.name.to_string(), uid, fate, pod.grace)
    }
}

/// Changes [`Fate::Lost`] to [`Fate::Stayed`], because the node is in use again.
fn may_stay(pod: &mut PodRecord) {
    if pod.fate == Fate::Lost {
        (pod.fate, pod.why) = (Fate::Stayed, Some("its node was given back".to_owned()));
    }
}

fn predicted(uid: String, pod: &PodPreview) -> PodRecord {
    let (fate, why) = match &pod.would {
        Predicted::Stays(why) => (Fate::Stayed, Some(why.as_str().to_owned())),
        Predicted::Leaves => (Fate::WouldLeave, None),
        Predicted::BlockedBy(blocker) => (Fate::WouldBeBlocked, Some(format!("{blocker} would block it"))),
        Predicted::Refused(why) | Predicted::Unanswered(why) => (Fate::WouldBeBlocked, Some(why.clone())),
    };
    let blocked_by = match &pod.would {
        Predicted::BlockedBy(blocker) => budgets(blocker),
        _ => None,
    };
    PodRecord {
        evictions: pod.answers.values().sum(),
        answers: answers(&pod.answers),
        blocked_by,
        why,
        ..PodRecord::of(pod.name.to_string(), uid, fate, pod.grace)
    }
}

fn answers(counted: &BTreeMap<&'static str, u32>) -> BTreeMap<Cow<'static, str>, u32> {
    counted.iter().map(|(answer, times)| (Cow::Borrowed(*answer), *times)).collect()
}

/// Returns the reason why a pod was still on the node at the end of the drain.
fn why_lost(pod: &Tracked, watch_error: Option<&str>) -> String {
    match (pod.state, &pod.failures, pod.blocked.last()) {
        (PodState::Leaving { .. }, ..) => match watch_error {
            Some(why) => format!("it was shutting down, and could not be watched to its end: {why}"),
            None => "it was still shutting down".to_owned(),
        },
        (_, Some(failures), _) => failures.message.clone(),
        (PodState::Requested, None, Some(blocker)) if pod.history.last_method() == Some(Method::Delete) => {
            format!("{}, and the API server did not answer its deletion", blocked(pod, blocker))
        }
        (_, None, Some(blocker)) => blocked(pod, blocker),
        (PodState::Requested, None, None) => "the API server did not answer its eviction".to_owned(),
        (_, None, None) => "its eviction was not due yet".to_owned(),
    }
}

/// Returns a text for the receipt if another client made the pod leave or shortened the pod's grace period.
fn other_cause(pod: &Tracked) -> Option<String> {
    match (pod.history.left_by, pod.history.accepted_at, pod.blocked.last()) {
        (Some(RequestedBy::Another), Some(_), _) => {
            Some(format!("{ANOTHER} cut short the grace that it had been given"))
        }
        (Some(RequestedBy::Another), None, Some(blocker)) => {
            Some(format!("{blocker} blocked it until {ANOTHER} had it leave"))
        }
        (Some(RequestedBy::Another), None, None) => Some(format!("{ANOTHER} had it leave")),
        (None, ..) if pod.history.last_request().is_none() => {
            pod.shortened_grace().map(|_| "it was leaving already, with less".to_owned())
        }
        (Some(RequestedBy::ThisDrain) | None, ..) => None,
    }
}

/// Returns the names of the PodDisruptionBudgets that block the pod, if known.
fn budgets(blocker: &Blocker) -> Option<String> {
    match blocker {
        Blocker::Budget(budget) => Some(budget.to_string()),
        Blocker::SeveralBudgets(names) if !names.is_empty() => Some(names.join(", ")),
        _ => None,
    }
}

fn blocked(pod: &Tracked, blocker: &Blocker) -> String {
    let advice = pod.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
    format!("{blocker} blocked it{advice}")
}
