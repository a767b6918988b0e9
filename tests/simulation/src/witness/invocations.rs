//! How invocations end: in time, and with a receipt that is true.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::deadline::Termination;
use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;
use crate::lambda::{Attempt, AttemptId, Ending};
use crate::plan::{Command, Side};

/// The receipts, and what they may call gone.
#[derive(Debug, Default)]
pub(super) struct Invocations {
    /// The attempts that have left something to a later one.
    continued: Vec<AttemptId>,
    /// The attempts that have written a receipt.
    written: BTreeSet<AttemptId>,
    pods: BTreeMap<String, Known>,
    /// Whether a person has uncordoned a node.
    is_uncordoned: bool,
    /// When each pod went.
    gone: BTreeMap<String, Timestamp>,
    /// Those that were leaving when the garbage collector removed them: whether they had stopped, nobody knows.
    collected: BTreeSet<String>,
}

/// Health's checks of a day, each tried three times.
const MOST_INVOCATIONS: usize = 500;

/// What is known of a pod that came to a node.
#[derive(Debug)]
struct Known {
    instance: String,
    app: usize,
    came: Timestamp,
    /// The least grace that it was given, when it was deleted.
    given_s: Option<u64>,
}

impl Witness for Invocations {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::PodBound { uid, node, app } => {
                let instance = facts.cluster.instance_at(node).unwrap_or_default().to_owned();
                self.pods.insert(uid.clone(), Known { instance, app: *app, came: facts.clock.now(), given_s: None });
            }
            Fact::PodDeleted { uid, grace_s, .. } => {
                if let Some(pod) = self.pods.get_mut(uid) {
                    pod.given_s = Some(pod.given_s.map_or(*grace_s, |given| given.min(*grace_s)));
                }
            }
            Fact::Person { command: Command::Uncordon | Command::Recordon, .. } => self.is_uncordoned = true,
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
            Fact::AttemptEnded { id, ending: ending @ (Ending::Succeeded(_) | Ending::Failed(_)) } => {
                self.ends(*id, facts, verdict);
                if matches!(ending, Ending::Succeeded(ending) if ending.contains("Continued")) {
                    self.continued.push(*id);
                }
            }
            Fact::Quiet { .. } => {
                verdict
                    .holds(Invariant::AllEnds, !facts.lambda.is_at_work(), || "an attempt is at work still".to_owned());
                self.go_on(facts, verdict);
                is_bounded(facts, verdict);
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
            let fits = self.pods.get(uid).is_none_or(|pod| self.fits(pod, fate, receipt["ending"] == "ignored", facts));
            verdict.holds(Invariant::ReceiptIsTrue, fits, || {
                format!("{by} says that {uid} is {fate}: {:?}", self.pods.get(uid))
            });
        }
        let is_told = |step: &Value| step["step"] == "drained";
        if is_watched && receipt["steps"].as_array().is_some_and(|steps| steps.iter().any(is_told)) {
            self.check_all_there(by, receipt, seen, facts, verdict);
        }
    }

    /// Whether what is known of a pod fits its fate.
    fn fits(&self, pod: &Known, fate: &str, is_called_off: bool, facts: &Facts<'_>) -> bool {
        let app = &facts.plan.apps[pod.app];
        match fate {
            "stayed" => app.stays() || app.tolerates || self.is_uncordoned || is_called_off,
            // Of one that had stopped before it was seen, nobody knows how long it had.
            "clean" if !app.finalizer => pod.given_s.is_none_or(|given| given >= app.grace_s),
            // What a namespace that is being deleted refuses counts as given.
            "clamped" if facts.plan.namespace_ends.is_none() => pod.given_s.is_some_and(|given| given < app.grace_s),
            "unconfirmed" => pod.given_s.is_some() || !facts.cluster.reports(&pod.instance),
            _ => true,
        }
    }

    /// Each pod that was on the node, and is there still, is in the receipt.
    fn check_all_there(
        &self,
        by: AttemptId,
        receipt: &Value,
        seen: Timestamp,
        facts: &Facts<'_>,
        verdict: &mut Verdict,
    ) {
        let told: BTreeSet<_> =
            receipt["pods"].as_array().into_iter().flatten().map(|pod| pod["uid"].as_str()).collect();
        for (uid, pod) in &self.pods {
            let is_there =
                Some(&*pod.instance) == facts.instance(by) && pod.came <= seen && facts.cluster.pod(uid).is_some();
            verdict.holds(Invariant::ReceiptIsTrue, !is_there || told.contains(&Some(&**uid)), || {
                format!("{by} does not name {uid}")
            });
        }
    }

    /// What was left to a later attempt, one has gone on with. What was scheduled for maintenance may be called off.
    fn go_on(&self, facts: &Facts<'_>, verdict: &mut Verdict) {
        for id in &self.continued {
            let attempt = facts.lambda.attempt(*id);
            let is_later = |(number, later): (usize, &Attempt)| {
                number > id.0 && later.instance == attempt.instance && later.notice_id() == attempt.notice_id()
            };
            let goes_on = facts.lambda.attempts().iter().enumerate().any(is_later);
            let may_be_off = facts.kind(*id) == Some("maintenance");
            verdict.holds(Invariant::Continues, goes_on || may_be_off, || format!("nobody goes on with {id}"));
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

/// How many invocations a notice takes, and an invocation how many requests.
fn is_bounded(facts: &Facts<'_>, verdict: &mut Verdict) {
    let mut of_notices = BTreeMap::<_, usize>::new();
    for attempt in facts.lambda.attempts() {
        *of_notices.entry((attempt.notice_id().to_string(), &attempt.instance)).or_default() += 1;
    }
    for ((notice, _), invocations) in of_notices {
        verdict.most("invocations of a notice", invocations);
        verdict
            .holds(Invariant::WorkIsBounded, invocations <= MOST_INVOCATIONS, || format!("{invocations} for {notice}"));
    }
    let pods: usize = facts.plan.apps.iter().map(|app| app.pods).sum();
    // While something is out of order each pod may be asked for twice in a second, and all else once.
    let lasts = usize::try_from(facts.plan.invocation.as_secs()).unwrap_or(usize::MAX);
    let most = 100 + 2 * lasts * (pods + 4);
    for attempt in facts.lambda.attempts() {
        let requests = usize::try_from(attempt.requests).unwrap_or(usize::MAX);
        verdict.most("requests of an invocation", requests);
        verdict
            .holds(Invariant::WorkIsBounded, requests <= most, || format!("{requests} requests for {}", attempt.event));
    }
}
