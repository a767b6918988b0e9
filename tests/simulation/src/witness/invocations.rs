//! Ends of invocations: in time, and with a receipt that is true.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::deadline::Termination;
use super::past::{PodPast, claim};
use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::{Fact, LeaveRequest};
use crate::lambda::{Attempt, AttemptId, Ending};
use crate::plan::{Plan, Side};

/// A drawn drain lasts ten invocations at most, each tried up to three times, and delivered up to twice.
const MOST_INVOCATIONS: usize = 60;
/// Longest time to the continuation of a drain.
const CONTINUES_WITHIN: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Invocations {
    /// Attempts that ended as continued, with the times of their receipts.
    continued: Vec<(AttemptId, Timestamp)>,
    written: BTreeSet<AttemptId>,
    /// Attempts and the pods whose grace they shortened.
    clamped: BTreeSet<(AttemptId, String)>,
}

/// Returns `true` if no watch and no request to the API server fails.
fn is_watched(plan: &Plan) -> bool {
    plan.watch_breaks == 0 && plan.compactions.is_empty() && plan.is_well(Side::Api)
}

fn pods_of(receipt: &Value) -> impl Iterator<Item = &Value> {
    receipt["pods"].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Witness for Invocations {
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::LeaveRequested { by, request: LeaveRequest { uid: Some(uid), grace_s: Some(_), .. } } => {
                self.clamped.insert((*by, uid.clone()));
            }
            Fact::ReceiptWritten { by, receipt } => {
                self.written.insert(*by);
                if receipt["ending"] == "continued" && receipt["decision"] == "drain" {
                    self.continued.push((*by, facts.clock.now()));
                }
                self.check(*by, receipt, facts, verdict);
            }
            Fact::AttemptEnded { id, ending: Ending::TimedOut } => {
                verdict.violate(Invariant::EndsInTime, &format!("{id} times out"));
            }
            Fact::AttemptEnded { id, ending: Ending::Panicked(panic) } => {
                verdict.violate(Invariant::NoPanic, &format!("{id}: {panic}"));
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
    fn check(&self, by: AttemptId, receipt: &Value, facts: &Facts<'_>, verdict: &mut Verdict) {
        let now = facts.clock.now();
        let at: Option<Timestamp> = receipt["notice"]["time"].as_str().and_then(|at| at.parse().ok());
        let end = receipt["window"]["end_ms"].as_i64().map(SignedDuration::from_millis);
        let end = at.zip(end).map_or(now, |(at, end)| (at + end).min(now));
        // Watches may not have reported changes of the last seconds.
        let known_until = end - SignedDuration::from_secs(10) - facts.skew();
        let is_out = !facts.plan.is_well(Side::Api);
        let is_watched = is_watched(facts.plan);
        for pod in pods_of(receipt) {
            let (uid, fate) = (text(&pod["uid"]), text(&pod["fate"]));
            let past = facts.past.pods.get(uid);
            let there = facts.clusters.pod(uid);
            let is_true = match fate {
                // After a break, a watch does not say how a pod ended, nor does an answer 404.
                "clean" | "clamped" | "forced" if is_watched && past.is_some_and(|past| past.is_collected) => {
                    ["gone", "replaced"].iter().any(|answer| pod["answers"][answer].is_u64())
                }
                "clean" | "clamped" | "forced" => there.is_none_or(|pod| pod.has_stopped),
                "lost" => {
                    let gone = past.and_then(|past| past.gone);
                    let is_there = there.is_some() || gone.is_some_and(|gone| known_until <= gone);
                    verdict.excuse("lost in an outage of the API server", is_there, is_out)
                }
                _ => true,
            };
            let fits = past.is_none_or(|past| self.fits(past, pod, (by, receipt), facts));
            // Without an answer about the node, its owner is unknown.
            let is_successors = past.is_some_and(|past| Some(&*past.instance) != facts.instance(by));
            let fits =
                verdict.excuse("a successor's pod in an outage of the API server", fits, is_successors && is_out);
            verdict.check(Invariant::ReceiptIsTrue, is_true && fits, || format!("{by} calls {uid} {fate}: {past:?}"));
        }
        let is_drained = receipt["steps"].as_array().into_iter().flatten().any(|step| step["step"] == "drained");
        if is_watched && is_drained {
            names_all(by, receipt, known_until, facts, verdict);
        }
    }

    /// Returns `true` if the fate of a pod fits its past.
    fn fits(&self, past: &PodPast, pod: &Value, (by, receipt): (AttemptId, &Value), facts: &Facts<'_>) -> bool {
        let (app, uid) = (&facts.plan.apps[past.app], text(&pod["uid"]));
        let is_clamped = self.clamped.contains(&(by, uid.to_owned()));
        match text(&pod["fate"]) {
            "stayed" => {
                let node = facts.clusters.place_of(uid).and_then(|node| facts.clusters.node(&node));
                let is_given_back = node.is_some_and(|node| claim(node).is_none());
                app.stays() || app.finalizer || receipt["ending"] == "ignored" || is_given_back
            }
            "returned" => app.tolerates,
            // The grace is unknown if the pod had stopped before the first list, or another request shortened it during a break.
            "clean" if !app.finalizer => {
                let is_unknown = pod["accepted_ms"].is_null() || (!is_clamped && !is_watched(facts.plan));
                is_unknown || past.given_s.is_none_or(|given| given >= app.grace_s)
            }
            // The effect of a request without an answer is unknown. A pod with a finalizer may have stopped before a request that the
            // API server accepts.
            "clamped" => {
                let answers = pod["answers"].as_object();
                let is_unknown = answers.is_none_or(|answers| answers.is_empty() || answers.contains_key("no-answer"));
                let may_have_stopped = app.finalizer && is_clamped;
                is_unknown || may_have_stopped || past.given_s.is_some_and(|given| given < app.grace_s)
            }
            // A pod without a grace period goes at once, so that a later invocation never observes its end.
            "unconfirmed" => {
                let began = facts.lambda.attempts()[by.0].began;
                let left_before = past.gone.is_some_and(|gone| gone <= began + facts.skew());
                past.given_s.is_some() || left_before || !facts.clusters.reports(&past.instance)
            }
            _ => true,
        }
    }

    fn all_end(&self, facts: &Facts<'_>, verdict: &mut Verdict) {
        let attempts = facts.lambda.attempts();
        verdict.check(Invariant::AllEnds, !facts.lambda.is_at_work(), || "an attempt is still at work".to_owned());
        let has_receipt = |notice: &Value| self.written.iter().any(|by| attempts[by.0].notice()["id"] == notice["id"]);
        for attempt in attempts.iter().filter(|attempt| !facts.lambda.has_given_up(&attempt.event)) {
            let has_receipt = has_receipt(attempt.notice());
            verdict.check(Invariant::AllEnds, has_receipt, || format!("no receipt: {}", attempt.event));
        }
        // Maintenance may be cancelled before its continuation.
        let of_health = |id: &AttemptId| attempts[id.0].notice()["source"] == "aws.health";
        for (id, ended) in self.continued.iter().filter(|(id, _)| !of_health(id)) {
            let soon = *ended + CONTINUES_WITHIN + facts.skew();
            let mut later = attempts[id.0 + 1..].iter().filter(|later| is_same(later, &attempts[id.0]));
            let continues = later.any(|later| later.began <= soon);
            verdict.check(Invariant::AllEnds, continues, || format!("no continuation of {id}"));
        }
    }

    /// An attempt returns.
    fn ends(&self, id: AttemptId, facts: &Facts<'_>, verdict: &mut Verdict) {
        verdict.check(Invariant::ReceiptIsWritten, self.written.contains(&id), || format!("{id} writes no receipt"));
        is_bounded(id, facts, verdict);
        let Some(Termination::At(at)) = facts.deadline(id).map(|deadline| deadline.termination) else { return };
        let (now, began) = (facts.clock.now(), facts.lambda.attempt(id).began);
        // By its own clock the attempt may have begun after its deadline.
        let late = if at <= began + facts.skew() { SignedDuration::from_mins(10) } else { SignedDuration::ZERO };
        let latest =
            at.max(began + SignedDuration::from_secs(10)) + SignedDuration::from_secs(20) + late + facts.skew();
        let is_in_time = verdict.excuse("ends late in an outage", now <= latest, facts.calm_since(id) > now);
        verdict.check(Invariant::EndsInTime, is_in_time, || format!("{id} ends at {now}, its instance at {at}"));
    }
}

/// Each pod that is still on the node is in the receipt.
fn names_all(by: AttemptId, receipt: &Value, known_until: Timestamp, facts: &Facts<'_>, verdict: &mut Verdict) {
    let named: BTreeSet<_> = pods_of(receipt).map(|pod| text(&pod["uid"])).collect();
    // An earlier invocation may have named a pod that returned.
    let is_open = facts.past.is_any_uncordoned() || facts.plan.may_stay_open();
    for (uid, pod) in facts.past.pods.iter().filter(|(_, pod)| !facts.plan.apps[pod.app].tolerates && !is_open) {
        let is_of = Some(&*pod.instance) == facts.instance(by) && pod.bound <= known_until;
        let is_named = !is_of || facts.clusters.pod(uid).is_none() || named.contains(&**uid);
        verdict.check(Invariant::ReceiptIsTrue, is_named, || format!("{by} does not name {uid}"));
    }
}

/// Returns `true` if two attempts have the same notice and instance.
fn is_same(one: &Attempt, other: &Attempt) -> bool {
    one.notice()["id"] == other.notice()["id"] && one.instance == other.instance
}

/// Requests without an outage: some for each pod, one every five seconds for a pod under several budgets, and three every two
/// seconds for the search of a node by three names.
fn is_bounded(id: AttemptId, facts: &Facts<'_>, verdict: &mut Verdict) {
    let attempt = facts.lambda.attempt(id);
    let lasts = facts.clock.now().duration_since(attempt.began) + facts.skew();
    let own = facts.node(id).map(|node| node.cluster);
    let pods = |budgets| -> i64 {
        let apps = facts.plan.apps.iter().filter(|app| Some(app.cluster) == own && app.budgets >= budgets);
        apps.map(|app| i64::try_from(app.pods).unwrap_or(0)).sum()
    };
    let most = 60 + 20 * pods(0) + pods(2) * (lasts.as_secs() / 5) + 2 * lasts.as_secs();
    let is_bounded = !facts.plan.is_all_well() || i64::from(attempt.requests) <= most;
    verdict.check(Invariant::WorkIsBounded, is_bounded, || {
        format!("{id} makes {} requests in {lasts:#}", attempt.requests)
    });
    let invocations = facts.lambda.attempts().iter().filter(|other| is_same(other, attempt)).count();
    // An undo check has no notice id, and may run every ten minutes for a day.
    let is_bounded = attempt.notice()["id"].is_null() || invocations <= MOST_INVOCATIONS;
    // Unlike a drain, the wait for a launched node does not join a duplicate of its continuation.
    let is_launch = attempt.notice()["detail-type"] == "EC2 Instance-launch Lifecycle Action";
    let is_excused = is_launch && facts.plan.duplicates > 0;
    let is_bounded = verdict.excuse("invocations that multiply", is_bounded, is_excused);
    verdict.check(Invariant::WorkIsBounded, is_bounded, || format!("{id} is one of {invocations}"));
}
