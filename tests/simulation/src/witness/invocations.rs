//! How invocations end: in time, and with a receipt that is true.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::deadline::Termination;
use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;
use crate::lambda::{AttemptId, Ending};
use crate::plan::Side;

/// The receipts, and what they may call gone.
#[derive(Debug, Default)]
pub(super) struct Invocations {
    /// The attempts that have written a receipt.
    written: BTreeSet<AttemptId>,
    /// When each pod went.
    gone: BTreeMap<String, Timestamp>,
    /// Those that were leaving when the garbage collector removed them: whether they had stopped, nobody knows.
    collected: BTreeSet<String>,
}

impl Witness for Invocations {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::PodGone { uid, is_collected } => {
                self.gone.insert(uid.clone(), facts.clock.now());
                if *is_collected {
                    self.collected.insert(uid.clone());
                }
            }
            Fact::ReceiptWritten { by, receipt } => {
                self.written.insert(*by);
                self.check(*by, receipt, facts, verdict);
            }
            Fact::AttemptEnded { id, ending: Ending::TimedOut } => {
                verdict.broken(Invariant::EndsInTime, &format!("{id} outlasts its invocation"));
            }
            Fact::AttemptEnded { id, ending: Ending::Panicked(how) } => {
                verdict.broken(Invariant::NoPanic, &format!("{id}: {how}"));
            }
            Fact::AttemptEnded { id, ending: Ending::Succeeded(_) | Ending::Failed(_) } => {
                self.ends(*id, facts, verdict);
            }
            _ => {}
        }
    }
}

impl Invocations {
    /// What a receipt says of pods.
    fn check(&self, by: AttemptId, receipt: &Value, facts: &Facts<'_>, verdict: &mut Verdict) {
        // What the drain could have seen: what went in its last seconds may not have been told yet.
        let now = facts.clock.now();
        let at: Option<Timestamp> = receipt["notice"]["time"].as_str().and_then(|at| at.parse().ok());
        let end = receipt["window"]["end_ms"].as_i64().map(SignedDuration::from_millis);
        let end = at.zip(end).map_or(now, |(at, end)| (at + end).min(now));
        let seen = end - SignedDuration::from_secs(10) - facts.skew();
        let plan = facts.plan;
        let is_watched = plan.watch_breaks == 0 && plan.compactions.is_empty() && plan.is_well(Side::Api);
        for pod in receipt["pods"].as_array().into_iter().flatten() {
            let (uid, fate) = (pod["uid"].as_str().unwrap_or_default(), pod["fate"].as_str().unwrap_or_default());
            let there = facts.cluster.pod(uid);
            let is_true = match fate {
                // A watch that broke does not say how a pod went meanwhile, nor does the answer that there is none.
                "clean" | "clamped" | "forced" if is_watched && self.collected.contains(uid) => {
                    ["gone", "replaced"].iter().any(|answer| pod["answers"][answer].is_u64())
                }
                "clean" | "clamped" | "forced" => there.is_none_or(|pod| pod.has_stopped),
                "lost" if facts.plan.is_well(Side::Api) => {
                    there.is_some() || self.gone.get(uid).is_some_and(|gone| seen <= *gone)
                }
                _ => true,
            };
            verdict.holds(Invariant::ReceiptIsTrue, is_true, || format!("{by} says that {uid} is {fate}"));
        }
    }

    /// An attempt ends by itself.
    fn ends(&self, id: AttemptId, facts: &Facts<'_>, verdict: &mut Verdict) {
        verdict.holds(Invariant::ReceiptIsWritten, self.written.contains(&id), || format!("{id} writes none"));
        let Some(Termination::At(at)) = facts.deadline(id).map(|deadline| deadline.termination) else { return };
        let began = facts.lambda.attempt(id).began;
        // By its own clock it may have begun when its deadline was over.
        let late = if at <= began + facts.skew() { SignedDuration::from_mins(10) } else { SignedDuration::ZERO };
        let latest =
            at.max(began + SignedDuration::from_secs(10)) + late + SignedDuration::from_secs(20) + facts.skew();
        let now = facts.clock.now();
        verdict.holds(Invariant::EndsInTime, now <= latest, || {
            format!("{id} ends at {now}, and its instance goes at {at}")
        });
    }
}
