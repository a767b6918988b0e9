//! Evictions and deletions of pods: their order, time, number and grace periods.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::deadline::{Deadline, Termination};
use super::past::PodPast;
use super::{Facts, Invariant, Verdict, Witness};
use crate::cluster::Pod;
use crate::fact::{Fact, LeaveRequest, Method};
use crate::lambda::AttemptId;
use crate::plan::{Annotation, App, Side};

/// Least window of a late notice.
const LEAST_WINDOW_S: i64 = 10;
/// A notice is late if its deadline is this soon after the begin of its attempt: the claim takes a while.
const LATE: SignedDuration = SignedDuration::from_secs(45);
/// A notice is also late if its deadline is this soon after the first request: the claim had no answer for long.
const LATE_AT_FIRST: SignedDuration = SignedDuration::from_secs(LEAST_WINDOW_S + 5);
/// Least time between eviction and deletion.
const EVICTED_BEFORE: SignedDuration = SignedDuration::from_secs(15);
/// Most rounds of evictions of an app's pods by an attempt: at once, then after pauses of 5 s that double, for 15 minutes.
const MOST_ROUNDS: usize = 8;
/// Longest time from a notice to its first evictions.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_secs(25);

/// Event id, instance and app of evicted pods.
type Round = (String, Option<String>, usize);

#[derive(Debug, Default)]
pub(super) struct LeavingPods {
    requests: BTreeMap<(AttemptId, String), u32>,
    /// First request of each attempt.
    first: BTreeMap<AttemptId, Timestamp>,
    evictions: BTreeSet<(AttemptId, String)>,
    evicted: BTreeMap<Round, BTreeSet<String>>,
}

/// A request that a pod leave.
#[derive(Debug, Clone, Copy)]
struct Leave<'a> {
    by: AttemptId,
    uid: &'a str,
    request: &'a LeaveRequest,
    pod: &'a PodPast,
    app: &'a App,
    deadline: Deadline,
    now: Timestamp,
}

impl Witness for LeavingPods {
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        let Fact::LeaveRequested { by, request } = fact else { return };
        let uid = request.uid.as_deref().unwrap_or_default();
        let (Some(pod), Some(deadline)) = (facts.past.pods.get(uid), facts.deadline(*by)) else { return };
        let (app, now) = (&facts.plan.apps[pod.app], facts.clock.now());
        let leave = Leave { by: *by, uid, request, pod, app, deadline, now };

        // After its last safe moment a pod is evicted and deleted in turn, each once a second, while no answer arrives.
        let requests = self.requests.entry((*by, uid.to_owned())).or_default();
        *requests += 1;
        let most = 40 + 2 * u32::try_from(facts.plan.invocation.as_secs()).unwrap_or(0);
        verdict.check(Invariant::WorkIsBounded, *requests <= most, || format!("{by} requests {uid} {requests} times"));

        check_order(leave, facts, verdict);
        let first = *self.first.entry(*by).or_insert(now);
        check_grace(leave, first, facts, verdict);
        match request.method {
            Method::Evict => self.evict(leave, facts, verdict),
            Method::Delete => {
                self.delete(leave, facts, verdict);
                check_evicted(leave, facts, verdict);
            }
        }
    }
}

impl LeavingPods {
    fn evict(&mut self, leave: Leave<'_>, facts: &Facts<'_>, verdict: &mut Verdict) {
        let Leave { by, uid, .. } = leave;
        self.evictions.insert((by, uid.to_owned()));
        // A pod that is leaving has no replacement.
        if facts.clusters.pod(uid).is_none_or(|pod| pod.deletion.is_some()) {
            return;
        }
        let notice = &facts.lambda.attempt(by).notice()["id"];
        // Each attempt counts its own rounds.
        let attempts = facts.lambda.attempts().iter().filter(|attempt| attempt.notice()["id"] == *notice).count();
        let instance = facts.instance(by).map(str::to_owned);
        let uncordons = instance.as_deref().map_or(0, |instance| facts.past.instance(instance).uncordons);
        let most = MOST_ROUNDS * leave.app.pods * (attempts + uncordons);
        let evicted = self.evicted.entry((notice.to_string(), instance, leave.pod.app)).or_default();
        evicted.insert(uid.to_owned());
        verdict.check(Invariant::WorkIsBounded, evicted.len() <= most, || {
            format!("{by} evicts {} pods of app {}, with {} pods at once", evicted.len(), leave.pod.app, leave.app.pods)
        });
    }

    fn delete(&self, leave: Leave<'_>, facts: &Facts<'_>, verdict: &mut Verdict) {
        let Leave { by, uid, app, deadline, now, .. } = leave;
        // An eviction adds the condition for the pod's Job, also to an annotated pod.
        let was_evicted = self.evictions.contains(&(by, uid.to_owned()));
        verdict.check(Invariant::DeletedWhenDue, was_evicted, || format!("{by} deletes {uid} before any eviction"));
        let is_informed = facts.clusters.pod(uid).is_none_or(|pod| pod.is_disruption_target);
        let excuse = "a Job is not informed in an outage of the API server";
        let is_informed = verdict.excuse(excuse, is_informed, !facts.plan.is_well(Side::Api));
        verdict.check(Invariant::JobIsInformed, is_informed, || format!("{by} deletes {uid} without its condition"));
        let due = deadline.forced_from(app);
        let instance = facts.instance(by).unwrap_or_default();
        // A drain may miss the return of a kubelet in an outage of the API server.
        let is_back_unnoticed = facts.past.instance(instance).back.is_some_and(|back| back < facts.calm_since(by));
        let is_over = match deadline.termination {
            Termination::SoonAtUnknownTime { .. } => !facts.clusters.reports(instance) || is_back_unnoticed,
            // A hook does not wait for the blocked pods of a dead node.
            Termination::AtTheLatest(_) => facts.is_dead(instance) || is_back_unnoticed,
            Termination::At(_) | Termination::MayStay => false,
        };
        // The half of a window depends on the clock of the first attempt, its end on the clock of a later one.
        let is_due = due.is_some_and(|due| due <= now + facts.skew() * 3 / 2) || is_over;
        verdict.check(Invariant::DeletedWhenDue, is_due, || {
            format!("{by} deletes {uid} at {now}, due at {due:?} by {deadline:?}")
        });
    }
}

/// Before a known end, a last pod leaves after all others that are known and not requested to leave.
fn check_order(leave: Leave<'_>, facts: &Facts<'_>, verdict: &mut Verdict) {
    let Leave { by, uid, pod, app, deadline, now, .. } = leave;
    verdict.check(Invariant::OrderIsKept, app.annotation != Some(Annotation::Skip), || {
        format!("{by} requests the skipped pod {uid}")
    });
    let last = facts.plan.apps.iter().filter(|app| app.annotation == Some(Annotation::Last));
    let Some(from) = last.filter_map(|app| deadline.last_from(app)).min() else { return };
    let is_due = from <= now + facts.skew();
    // Blocked pods of a dead node are deleted at once.
    let is_dead = matches!(deadline.termination, Termination::AtTheLatest(_)) && facts.is_dead(&pod.instance);
    // A pod that returns to a node without a cordon may stay.
    let is_open = facts.past.instance(&pod.instance).uncordons > 0 || facts.plan.may_stay_open();
    if app.annotation != Some(Annotation::Last) || is_due || is_dead || is_open {
        return;
    }
    let goes_before = |other: &&Pod| {
        let app = &facts.plan.apps[other.app];
        // A new node of the same name has pods of its own.
        let known_before = now - SignedDuration::from_secs(10);
        let past = facts.past.pods.get(&other.uid);
        past.is_some_and(|past| past.instance == pod.instance && past.bound < known_before)
            && other.deletion.is_none()
            && !app.stays()
            && !app.tolerates
            && app.annotation != Some(Annotation::Last)
    };
    let Some(node) = facts.clusters.place_of(uid) else { return };
    let others: Vec<&str> = facts.clusters.pods_on(&node).filter(goes_before).map(|other| other.uid.as_str()).collect();
    verdict.check(Invariant::OrderIsKept, others.is_empty(), || format!("{by} requests {uid} before {others:?}"));
}

/// Before a known end, a pod that was on the node in time was evicted early enough for its budget.
fn check_evicted(leave: Leave<'_>, facts: &Facts<'_>, verdict: &mut Verdict) {
    let Leave { by, uid, pod, app, deadline, now, .. } = leave;
    let began = facts.lambda.attempt(by).began.max(pod.bound).max(deadline.sent);
    let Some(due) = deadline.known().and_then(|_| deadline.forced_from(app)) else { return };
    if !facts.plan.is_all_well() || due < began + BEGINS_WITHIN + EVICTED_BEFORE {
        return;
    }
    // A drain that begins late forces at half of its own time.
    let is_early = pod.first_eviction.is_some_and(|evicted| evicted + EVICTED_BEFORE <= due.max(now));
    verdict.check(Invariant::EvictedBeforeForced, is_early, || {
        format!("{by} deletes {uid} at {now}, due at {due}, first evicted at {:?}", pod.first_eviction)
    });
}

/// `first`: first request of the attempt.
fn check_grace(leave: Leave<'_>, first: Timestamp, facts: &Facts<'_>, verdict: &mut Verdict) {
    let Leave { by, uid, app, now, .. } = leave;
    let time_left = leave.deadline.time_left(now);
    let left = time_left.map(|left| left.as_secs());
    let late = (facts.lambda.attempt(by).began + LATE).max(first + LATE_AT_FIRST);
    let is_late = time_left.is_some_and(|left| now + left < late);
    let skew = facts.skew().as_secs() + 1;
    let own = i64::try_from(app.grace_s).unwrap_or(i64::MAX);
    let given = leave.request.grace_s.and_then(|given| i64::try_from(given).ok());
    let is_right = match (given, left) {
        // A late notice has its least window from the claim of its node, before this request.
        (Some(given), Some(left)) if is_late => {
            let most = left.max(LEAST_WINDOW_S);
            (1..=own.max(1)).contains(&given) && (left - skew - 1..=most + skew + 1).contains(&given)
        }
        // A window that is over shortens no grace.
        (None, Some(left)) if is_late && left <= skew => true,
        (None, Some(left)) if is_late => own <= left.max(LEAST_WINDOW_S) + skew + 1,
        // Never zero, which removes the pod's object while it runs, and never more than its own.
        (Some(given), Some(left)) => (1..=own.max(1)).contains(&given) && (given - left.max(1)).abs() <= skew + 1,
        (Some(_), None) => false,
        (None, Some(left)) => own <= left.max(1) + skew + 1,
        (None, None) => true,
    };
    verdict.check(Invariant::GraceIsRight, is_right, || {
        format!("{by} gives {uid} {given:?} of {own} s, {left:?} are left")
    });
}
