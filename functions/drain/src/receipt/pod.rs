//! A pod in the receipt: what it asked for, what it got, and how it ended.

use std::collections::BTreeMap;

use serde::Serialize;
use tokio::time::Instant;

use crate::drain::dry_run::{PodPreview, Predicted, Preview};
use crate::drain::evict::{BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS, Method};
use crate::drain::pod::blocker::Blocker;
use crate::drain::pod::{PodState, RequestedBy, Tracked};
use crate::drain::{DrainEnd, DrainReport, StopReason};

/// Which of the two it was is not to be seen.
const ANOTHER: &str = "another notice's drain or a person";

/// What became of a pod.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PodRecord {
    pub(crate) pod: String,
    pub(crate) uid: String,
    pub(crate) fate: Fate,
    /// The grace period it asked for.
    pub(crate) grace_s: u64,
    /// The least that it was given, by whomever, if that was less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) given_s: Option<u64>,
    /// How often an eviction was asked for; in a dry run, one without effect.
    evictions: u32,
    /// How often each answer was given to the requests that it leave.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    answers: BTreeMap<&'static str, u32>,
    /// The budget that blocked its eviction last.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_by: Option<String>,
    /// Why it stayed, was forced or was lost, or who else had it leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// When it was first requested to leave. This and those that follow: milliseconds from the notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_ms: Option<i64>,
    /// When the request that it leave was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accepted_ms: Option<i64>,
    /// When it had gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gone_ms: Option<i64>,
    /// Whose request it followed. Not for the log, where `why` says it in words.
    #[serde(skip)]
    pub(crate) followed: Option<RequestedBy>,
}

/// A pod that has to leave, in the document of a drain that has begun.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Leaving {
    pub(crate) pod: String,
}

/// A pod: its record, or, in the document of a drain that has begun, its name.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(untagged, rename = "Pod")]
#[expect(dead_code, reason = "only its schema is wanted")]
pub(super) enum InDocument {
    AtTheEnd(PodRecord),
    AtTheBegin(Leaving),
}

/// A pod's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fate {
    /// It shut down with all the grace it asked for.
    Clean,
    /// It shut down with less grace than it asked for.
    Clamped,
    /// It was deleted past what blocked its eviction, so that it could still shut down.
    Forced,
    /// It was left alone.
    Stayed,
    /// It was still there when the time was up.
    Lost,
    /// It was shutting down when its node stopped answering, so that nobody knows how it ended.
    Unconfirmed,
    /// In a dry run: the API server would let it go.
    WouldLeave,
    /// In a dry run: something would block its eviction.
    WouldBeBlocked,
}

impl Fate {
    /// As it stands in the receipt.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Clamped => "clamped",
            Self::Forced => "forced",
            Self::Stayed => "stayed",
            Self::Lost => "lost",
            Self::Unconfirmed => "unconfirmed",
            Self::WouldLeave => "would-leave",
            Self::WouldBeBlocked => "would-be-blocked",
        }
    }
}

impl PodRecord {
    /// The records of a drain's pods; `ms` says how long after the notice an instant was.
    pub(crate) fn all(report: &DrainReport, ms: impl Fn(Instant) -> i64) -> Vec<Self> {
        let blind = report.blind.as_deref();
        let mut pods: Vec<_> = report.pods.iter().map(|(uid, pod)| Self::new(uid.0.clone(), pod, &ms, blind)).collect();
        if report.end == DrainEnd::Stopped(StopReason::GivenBack) {
            pods.iter_mut().for_each(Self::may_stay);
        }
        pods
    }

    /// The records of a dry run's pods.
    pub(crate) fn of_preview(preview: &Preview) -> Vec<Self> {
        preview.pods.iter().map(|(uid, pod)| Self::preview(uid.0.clone(), pod)).collect()
    }

    /// The record of a pod; `ms` says how long after the notice an instant was.
    fn new(uid: String, pod: &Tracked, ms: impl Fn(Instant) -> i64, blind: Option<&str>) -> Self {
        let given_s = pod.given_less().map(|given| given.as_secs());
        let history = &pod.history;
        let forced = history.last_method() == Some(Method::Delete);
        let (fate, why) = match pod.state {
            PodState::Stays(why) => (Fate::Stayed, Some(why.as_str().to_owned())),
            PodState::Gone { .. } if forced => (Fate::Forced, history.blocked_by.as_ref().map(blocked)),
            PodState::Gone { .. } => (if given_s.is_some() { Fate::Clamped } else { Fate::Clean }, who_else(pod)),
            PodState::Unconfirmed(why) => (Fate::Unconfirmed, Some(why.as_str().to_owned())),
            PodState::Due { .. } | PodState::Blocked { .. } | PodState::Requested { .. } | PodState::Leaving { .. } => {
                (Fate::Lost, Some(why_lost(pod, blind)))
            }
        };
        let gone_at = match pod.state {
            PodState::Gone { at } => Some(at),
            _ => None,
        };
        Self {
            pod: pod.name.to_string(),
            uid,
            fate,
            grace_s: pod.grace.as_secs(),
            given_s,
            evictions: history.evictions(),
            answers: history.answers.clone(),
            blocked_by: history.budget().map(ToString::to_string),
            why,
            requested_ms: history.requested_at().map(&ms),
            accepted_ms: history.accepted_at.map(&ms),
            gone_ms: gone_at.map(&ms),
            followed: history.followed,
        }
    }

    /// Notes that it need not leave any more, whatever it was told: its node is in use again.
    fn may_stay(&mut self) {
        if self.fate == Fate::Lost {
            (self.fate, self.why) = (Fate::Stayed, Some("its node was given back".to_owned()));
        }
    }

    /// Why it was lost, was forced or stayed.
    pub(crate) fn why(&self) -> &str {
        self.why.as_deref().unwrap_or("nothing is known of why")
    }

    /// Whether it shut down with all the grace it asked for, by whichever way it was told.
    pub(crate) fn had_its_full_grace(&self) -> bool {
        matches!(self.fate, Fate::Clean | Fate::Forced) && self.given_s.is_none()
    }

    /// How often a budget refused to let it go.
    pub(crate) fn refusals(&self) -> u32 {
        [BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS].iter().filter_map(|answer| self.answers.get(answer)).sum()
    }

    #[cfg(test)]
    pub(super) fn sample(pod: &str, fate: Fate, refusals: u32) -> Self {
        Self {
            pod: pod.to_owned(),
            uid: "0b6c1c9e-5a77-4f0b-9a53-0a4f4f2d7c11".to_owned(),
            fate,
            grace_s: 30,
            given_s: None,
            evictions: 1,
            answers: [(BLOCKED_BY_BUDGET, refusals)].into(),
            blocked_by: None,
            why: None,
            requested_ms: Some(843),
            accepted_ms: None,
            gone_ms: Some(9120),
            followed: Some(RequestedBy::ThisDrain),
        }
    }

    /// The record of a pod in a dry run.
    fn preview(uid: String, pod: &PodPreview) -> Self {
        let (fate, why) = match &pod.would {
            Predicted::Stays(why) => (Fate::Stayed, Some(why.as_str().to_owned())),
            Predicted::Leaves => (Fate::WouldLeave, None),
            Predicted::BlockedBy(blocker) => (Fate::WouldBeBlocked, Some(format!("{blocker} would block it"))),
            Predicted::Refused(why) | Predicted::Unanswered(why) => (Fate::WouldBeBlocked, Some(why.clone())),
        };
        let blocked_by = match &pod.would {
            Predicted::BlockedBy(Blocker::Budget(budget)) => Some(budget.to_string()),
            _ => None,
        };
        Self {
            pod: pod.name.to_string(),
            uid,
            fate,
            grace_s: pod.grace.as_secs(),
            given_s: None,
            evictions: pod.answers.values().sum(),
            answers: pod.answers.clone(),
            blocked_by,
            why,
            requested_ms: None,
            accepted_ms: None,
            gone_ms: None,
            followed: None,
        }
    }
}

/// Why a pod is still there.
fn why_lost(pod: &Tracked, blind: Option<&str>) -> String {
    match (&pod.state, pod.state.failed(), &pod.history.blocked_by) {
        (PodState::Leaving { .. }, ..) => match blind {
            Some(why) => format!("it was shutting down, and could not be watched to its end: {why}"),
            None => "it was still shutting down".to_owned(),
        },
        (_, Some(failed), _) => failed.message.clone(),
        (PodState::Requested { .. }, None, Some(blocker)) if pod.history.last_method() == Some(Method::Delete) => {
            format!("{}, and the API server did not answer its deletion", blocked(blocker))
        }
        (_, None, Some(blocker)) => blocked(blocker),
        (PodState::Requested { .. }, None, None) => "the API server did not answer its eviction".to_owned(),
        (_, None, None) => "its turn had not come".to_owned(),
    }
}

/// Who had it leave, or leave sooner, if that was not this drain.
fn who_else(pod: &Tracked) -> Option<String> {
    match (pod.history.followed, pod.history.accepted_at, &pod.history.blocked_by) {
        (Some(RequestedBy::Another), Some(_), _) => {
            Some(format!("{ANOTHER} cut short the grace that it had been given"))
        }
        (Some(RequestedBy::Another), None, Some(blocker)) => {
            Some(format!("{} until {ANOTHER} had it leave", blocked(blocker)))
        }
        (Some(RequestedBy::Another), None, None) => Some(format!("{ANOTHER} had it leave")),
        (None, ..) if pod.history.last_request().is_none() => {
            pod.given_less().map(|_| "it was leaving already, with less".to_owned())
        }
        (Some(RequestedBy::ThisDrain) | None, ..) => None,
    }
}

fn blocked(blocker: &Blocker) -> String {
    format!("{blocker} blocked it")
}
