//! How invocations end: in time, and with a receipt that is true.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::deadline::Termination;
use super::{Facts, Invariant, Verdict, Witness, is_uncordoned};
use crate::fact::{Fact, LeaveRequest};
use crate::lambda::{Attempt, AttemptId, Ending};
use crate::plan::{Command, Fault, Plan, Side};

/// What is drawn lasts ten invocations at most, and each may be tried three times, twice over.
const MOST_INVOCATIONS: usize = 60;
/// How long it takes until a drain is continued.
const CONTINUES_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// The receipts, and what they may call gone.
#[derive(Debug, Default)]
pub(super) struct Invocations {
    /// The attempts that have left something to a later one, and when.
    continued: Vec<(AttemptId, Timestamp)>,
    /// The attempts that have written a receipt.
    written: BTreeSet<AttemptId>,
    /// The pods that came to a node.
    pods: BTreeMap<String, Known>,
    /// The pods to which each attempt gave less grace than they ask for.
    clamped: BTreeSet<(AttemptId, String)>,
    /// Whether a node was uncordoned, by a person or because it was given back.
    is_uncordoned: bool,
    /// When each pod went.
    gone: BTreeMap<String, Timestamp>,
    /// Those that were leaving when the garbage collector removed them: whether they had stopped, nobody knows.
    collected: BTreeSet<String>,
}

/// Whether no watch breaks, and no look at the cluster fails.
fn is_watched(plan: &Plan) -> bool {
    plan.watch_breaks == 0 && plan.compactions.is_empty() && plan.is_well(Side::Api)
}

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
            Fact::PodDeleted { uid, grace_s, .. } => {
                if let Some(pod) = self.pods.get_mut(uid) {
                    pod.given_s = Some(pod.given_s.map_or(*grace_s, |given| given.min(*grace_s)));
                }
            }
            Fact::LeaveRequested { by, request: LeaveRequest { uid: Some(uid), grace_s: Some(_), .. } } => {
                self.clamped.insert((*by, uid.clone()));
            }
            Fact::PodBound { uid, node, app } => {
                let instance = facts.clusters.instance_at(node).unwrap_or_default().to_owned();
                self.pods.insert(uid.clone(), Known { instance, app: *app, came: facts.clock.now(), given_s: None });
            }
            Fact::Person { command: Command::Uncordon | Command::Recordon, .. } => self.is_uncordoned = true,
            Fact::NodePatched { before, after, .. } if is_uncordoned(before, after) => self.is_uncordoned = true,
            Fact::PodGone { uid, is_collected } => {
                self.gone.insert(uid.clone(), facts.clock.now());
                if *is_collected {
                    self.collected.insert(uid.clone());
                }
            }
            Fact::ReceiptWritten { by, receipt } => {
                self.written.insert(*by);
                if receipt["ending"] == "continued" && receipt["decision"] == "drain" {
                    self.continued.push((*by, facts.clock.now()));
                }
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
            Fact::Quiet { .. } => self.all_end(facts, verdict),
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
        let is_watched = is_watched(plan);
        for pod in receipt["pods"].as_array().into_iter().flatten() {
            let (uid, fate) = (pod["uid"].as_str().unwrap_or_default(), pod["fate"].as_str().unwrap_or_default());
            let there = facts.clusters.pod(uid);
            let is_true = match fate {
                // A watch that broke does not say how a pod went meanwhile, nor does the answer that there is none.
                "clean" | "clamped" | "forced" if is_watched && self.collected.contains(uid) => {
                    let is_told_gone = ["gone", "replaced"].iter().any(|answer| pod["answers"][answer].is_u64());
                    // Who only watches may hear that its node is no more before how the pod went.
                    let is_observed = receipt["decision"] == "observe";
                    verdict.excuses("collected before it was watched to the end", is_told_gone, is_observed)
                }
                "clean" | "clamped" | "forced" => there.is_none_or(|pod| pod.has_stopped),
                "lost" => {
                    let is_there = there.is_some() || self.gone.get(uid).is_some_and(|gone| seen <= *gone);
                    verdict.excuses("lost in an outage of the API server", is_there, !plan.is_well(Side::Api))
                }
                _ => true,
            };
            let fits = self.pods.get(uid).is_none_or(|known| self.fits(known, pod, (by, receipt), facts));
            // While no look at the node is answered, nobody knows whose it is by now.
            let is_successors = self.pods.get(uid).is_some_and(|known| Some(&*known.instance) != facts.instance(by));
            let is_excused = is_successors && !plan.is_well(Side::Api);
            let fits = verdict.excuses("a successor's pod in an outage of the API server", fits, is_excused);
            verdict.holds(Invariant::ReceiptIsTrue, is_true && fits, || {
                format!("{by} says that {uid} is {fate}: {:?}", self.pods.get(uid))
            });
        }
        let is_told = |step: &Value| step["step"] == "drained";
        if is_watched && receipt["steps"].as_array().is_some_and(|steps| steps.iter().any(is_told)) {
            self.names_all(by, receipt, seen, facts, verdict);
        }
    }

    /// Whether what is known of a pod fits its fate.
    fn fits(&self, known: &Known, pod: &Value, (by, receipt): (AttemptId, &Value), facts: &Facts<'_>) -> bool {
        let app = &facts.plan.apps[known.app];
        match pod["fate"].as_str().unwrap_or_default() {
            "stayed" => {
                let may_return = app.tolerates || self.is_uncordoned || facts.plan.may_stay_open();
                let uid = pod["uid"].as_str().unwrap_or_default();
                let node = facts.clusters.place_of(uid).and_then(|node| facts.clusters.node(&node));
                let is_given_back =
                    node.is_some_and(|node| node["metadata"]["annotations"]["spillway/claim"].is_null());
                app.stays() || may_return || app.finalizer || receipt["ending"] == "ignored" || is_given_back
            }
            // Of one that had stopped before it was seen, nobody knows how long it had; nor of one that another had leave meanwhile.
            "clean" if !app.finalizer => {
                let is_others = !self.clamped.contains(&(by, pod["uid"].as_str().unwrap_or_default().to_owned()));
                let is_unseen = pod["accepted_ms"].is_null() || (is_others && !is_watched(facts.plan));
                is_unseen || known.given_s.is_none_or(|given| given >= app.grace_s)
            }
            // Whether it was given less by a request that was not answered, or not yet, nobody knows.
            "clamped" => {
                let answers = &pod["answers"];
                let is_unknown =
                    answers.as_object().is_none_or(serde_json::Map::is_empty) || answers["no-answer"].is_u64();
                is_unknown || known.given_s.is_some_and(|given| given < app.grace_s)
            }
            "unconfirmed" => known.given_s.is_some() || !facts.clusters.reports(&known.instance),
            _ => true,
        }
    }

    /// Each pod that was on the node, and is there still, is in the receipt.
    fn names_all(&self, by: AttemptId, receipt: &Value, seen: Timestamp, facts: &Facts<'_>, verdict: &mut Verdict) {
        let told: BTreeSet<_> =
            receipt["pods"].as_array().into_iter().flatten().map(|pod| pod["uid"].as_str()).collect();
        // What its controller puts back, an earlier invocation may have named.
        let is_open = self.is_uncordoned || facts.plan.may_stay_open();
        let returns = |pod: &Known| facts.plan.apps[pod.app].tolerates || is_open;
        let is_of = |pod: &Known| Some(&*pod.instance) == facts.instance(by) && pod.came <= seen && !returns(pod);
        for (uid, _) in self.pods.iter().filter(|(uid, pod)| is_of(pod) && facts.clusters.pod(uid).is_some()) {
            verdict
                .holds(Invariant::ReceiptIsTrue, told.contains(&Some(&**uid)), || format!("{by} does not name {uid}"));
        }
    }

    /// Nothing is left half done. No attempt is at work. Each notice has a receipt. Each drain that was to continue did so soon.
    fn all_end(&self, facts: &Facts<'_>, verdict: &mut Verdict) {
        let attempts = facts.lambda.attempts();
        verdict.holds(Invariant::AllEnds, !facts.lambda.is_at_work(), || "an attempt is at work still".to_owned());
        let has_receipt = |notice: &Value| self.written.iter().any(|by| attempts[by.0].notice()["id"] == notice["id"]);
        for attempt in attempts.iter().filter(|attempt| !facts.lambda.has_given_up(&attempt.event)) {
            verdict
                .holds(Invariant::AllEnds, has_receipt(attempt.notice()), || format!("no receipt: {}", attempt.event));
        }
        // Maintenance may be called off before.
        let of_health = |id: &AttemptId| attempts[id.0].notice()["source"] == "aws.health";
        for (id, ended) in self.continued.iter().filter(|(id, _)| !of_health(id)) {
            let of = |attempt: &Attempt| (attempt.notice()["id"].to_string(), attempt.instance.clone());
            let soon = *ended + CONTINUES_WITHIN + facts.skew();
            let mut later = attempts[id.0 + 1..].iter().filter(|later| of(later) == of(&attempts[id.0]));
            verdict.holds(Invariant::AllEnds, later.any(|later| later.began <= soon), || {
                format!("nobody goes on with {id}")
            });
        }
    }

    /// An attempt ends by itself.
    fn ends(&self, id: AttemptId, facts: &Facts<'_>, verdict: &mut Verdict) {
        verdict.holds(Invariant::ReceiptIsWritten, self.written.contains(&id), || format!("{id} writes none"));
        is_bounded(id, facts, verdict);
        let Some(Termination::At(at)) = facts.deadline(id).map(|deadline| deadline.termination) else { return };
        let began = facts.lambda.attempt(id).began;
        // By its own clock it may have begun when its deadline was over.
        let late = if at <= began + facts.skew() { SignedDuration::from_mins(10) } else { SignedDuration::ZERO };
        let latest =
            at.max(began + SignedDuration::from_secs(10)) + late + SignedDuration::from_secs(20) + facts.skew();
        let now = facts.clock.now();
        let is_excused = facts.calm_since(id) > now;
        let is_in_time = verdict.excuses("ends late in an outage", now <= latest, is_excused);
        verdict
            .holds(Invariant::EndsInTime, is_in_time, || format!("{id} ends at {now}, and its instance goes at {at}"));
    }
}

/// How many requests an invocation makes while all goes well: some for each pod, one every five seconds for a pod that several
/// budgets cover, and three every two seconds while it searches its node by three names. And how many invocations a notice takes.
fn is_bounded(id: AttemptId, facts: &Facts<'_>, verdict: &mut Verdict) {
    let attempt = facts.lambda.attempt(id);
    let lasts = facts.clock.now().duration_since(attempt.began) + facts.skew();
    let own = facts.node(id).map(|node| node.cluster);
    let pods = |budgets| -> i64 {
        let apps = facts.plan.apps.iter().filter(|app| Some(app.cluster) == own && app.budgets >= budgets);
        apps.map(|app| i64::try_from(app.pods).unwrap_or(0)).sum()
    };
    let most = 60 + 20 * pods(0) + pods(2) * (lasts.as_secs() / 5) + 2 * lasts.as_secs();
    let is_well = [Side::Api, Side::Aws].iter().all(|side| facts.plan.is_well(*side));
    verdict.holds(Invariant::WorkIsBounded, !is_well || i64::from(attempt.requests) <= most, || {
        format!("{id} makes {} requests in {lasts:#}", attempt.requests)
    });
    let of = |attempt: &Attempt| (attempt.notice()["id"].to_string(), attempt.instance.clone());
    let invocations = facts.lambda.attempts().iter().filter(|other| of(other) == of(attempt)).count();
    // An undo check, which has no notice's id, may come every ten minutes for a day.
    let is_bounded = attempt.notice()["id"].is_null() || invocations <= MOST_INVOCATIONS;
    verdict.holds(Invariant::WorkIsBounded, is_bounded, || format!("{id} is one of {invocations}"));
}
