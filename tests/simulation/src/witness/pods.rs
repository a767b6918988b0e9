//! How pods are requested to leave: which, when, how often, and with which grace.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::deadline::{Deadline, Termination};
use super::{Facts, Invariant, Verdict, Witness};
use crate::cluster::Pod;
use crate::fact::{Fact, LeaveRequest, Method};
use crate::lambda::AttemptId;
use crate::plan::{Annotation, App, Command, Side};

/// The least window of a notice that comes late.
const LEAST_WINDOW_S: i64 = 10;
/// A notice comes late whose deadline is so soon after its attempt begins: it takes a while to the claim.
const LATE: SignedDuration = SignedDuration::from_secs(45);
/// So is one whose deadline is so soon after its first request: its claim had no answer for long.
const LATE_AT_FIRST: SignedDuration = SignedDuration::from_secs(LEAST_WINDOW_S + 5);

/// How long before it is forced a pod is asked to leave at least.
const ASKED_BEFORE: SignedDuration = SignedDuration::from_secs(15);
/// How long a node is missed before it is taken for dead.
const DEAD_AFTER: SignedDuration = SignedDuration::from_mins(1);
/// Most rounds in which an attempt evicts the pods of an app: at once, then after pauses of 5 s that double, for 15 minutes.
const MOST_ROUNDS: usize = 8;
/// How long it takes at most from a notice to the first evictions, when nothing is out of order.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_secs(25);

/// The pods that were requested to leave.
#[derive(Debug, Default)]
pub(super) struct LeavingPods {
    /// On the node of which instance each pod is, or was, and of which app.
    places: BTreeMap<String, Place>,
    requests: BTreeMap<(AttemptId, String), u32>,
    /// When each attempt first requested a pod to leave.
    first: BTreeMap<AttemptId, Timestamp>,
    evictions: BTreeSet<(AttemptId, String)>,
    /// When the eviction of each pod was first requested, by whichever attempt.
    asked: BTreeMap<String, Timestamp>,
    /// The pods that were evicted for each notice, by its event's id, its instance and their app.
    evicted: BTreeMap<(String, Option<String>, usize), BTreeSet<String>>,
    /// How often people have uncordoned the node of each instance: pods that come then do not return.
    uncordoned: BTreeMap<String, usize>,
    /// When the node of each instance was opted out.
    opted_out: BTreeMap<String, Timestamp>,
    /// Since when the node of each instance is missed, if it is there.
    missed: BTreeMap<String, Timestamp>,
    /// When each node that was missed came back.
    back: BTreeMap<String, Timestamp>,
}

#[derive(Debug, Clone)]
struct Place {
    instance: String,
    app: usize,
    since: Timestamp,
}

impl Witness for LeavingPods {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::PodBound { uid, node, app } => {
                let instance = facts.clusters.instance_at(node).unwrap_or_default().to_owned();
                self.places.entry(uid.clone()).or_insert(Place { instance, app: *app, since: facts.clock.now() });
            }
            Fact::Person { command: Command::Uncordon | Command::Recordon, instance, .. } => {
                *self.uncordoned.entry(instance.clone()).or_default() += 1;
            }
            Fact::Person { command: Command::OptOut, instance, .. } => {
                self.opted_out.entry(instance.clone()).or_insert(facts.clock.now());
            }
            Fact::NodeMissed { node } => {
                let instance = facts.clusters.instance_at(node).unwrap_or_default().to_owned();
                self.missed.entry(instance).or_insert(facts.clock.now());
            }
            Fact::KubeletReports { node } => {
                let instance = facts.clusters.instance_at(node).unwrap_or_default().to_owned();
                self.missed.remove(&instance);
                self.back.insert(instance, facts.clock.now());
            }
            Fact::LeaveRequested { by, request } => match &request.uid {
                Some(uid) => self.leave(&Leave { by: *by, uid, request }, facts, verdict),
                None => verdict.broken(Invariant::OwnPods, &format!("{by} names {} by no UID", request.name)),
            },
            _ => {}
        }
    }
}

/// A pod is requested to leave.
#[derive(Debug)]
struct Leave<'a> {
    by: AttemptId,
    uid: &'a str,
    request: &'a LeaveRequest,
}

impl LeavingPods {
    fn leave(&mut self, leave: &Leave<'_>, facts: &Facts<'_>, verdict: &mut Verdict) {
        let Leave { by, uid, request } = *leave;
        let (place, instance) = (self.places.get(uid).cloned(), facts.instance(by));
        let is_own = place.as_ref().is_some_and(|place| Some(&*place.instance) == instance);
        // Nobody can see whose pods those are that came to a node which has gone by now.
        let has_gone = facts.clusters.place_of(uid).is_some_and(|node| facts.clusters.node(&node).is_none());
        let is_own = verdict.excuses("a successor's pod whose node has gone too", is_own, has_gone);
        verdict.holds(Invariant::OwnPods, is_own, || {
            format!("{by} is about {instance:?}, and touches {uid} of {place:?}")
        });
        let (Some(place), Some(deadline)) = (place, facts.deadline(by)) else { return };
        let app = place.app;
        let opted_out = self.opted_out.get(&place.instance);
        let is_opted_out = opted_out.is_some_and(|at| *at + facts.skew() < facts.lambda.attempt(by).began);
        let is_left = is_opted_out || facts.plan.is_karpenters(&place.instance) || facts.is_left_to_eks(by);
        verdict.holds(Invariant::OptedOutUntouched, !is_left, || format!("{by} requests {uid} to leave"));
        let is_real = !facts.plan.is_dry_run();
        verdict.holds(Invariant::DryRunTouchesNothing, is_real, || format!("{by} requests {uid} to leave"));

        // Past its last safe moment it is evicted and deleted in turn, each once a second, while no answer comes.
        let requests = self.requests.entry((by, uid.to_owned())).or_default();
        *requests += 1;
        let most = 40 + 2 * u32::try_from(facts.plan.invocation.as_secs()).unwrap_or(0);
        verdict.holds(Invariant::RequestsAreBounded, *requests <= most, || {
            format!("{by} requests {uid} for the {requests}th time")
        });

        self.check_order(leave, &place, deadline, facts, verdict);
        let first = *self.first.entry(by).or_insert(facts.clock.now());
        check_grace(leave, &facts.plan.apps[app], (first, deadline), facts, verdict);
        match request.method {
            Method::Evict => self.evict(leave, app, facts, verdict),
            Method::Delete => {
                self.delete(leave, &facts.plan.apps[app], deadline, facts, verdict);
                self.check_asked(leave, &place, deadline, facts, verdict);
            }
        }
    }

    /// Where the instance goes at a known time, the others go first that have been there for a while, and that nobody has told
    /// to leave.
    fn check_order(
        &self,
        leave: &Leave<'_>,
        place: &Place,
        deadline: Deadline,
        facts: &Facts<'_>,
        verdict: &mut Verdict,
    ) {
        let Leave { by, uid, .. } = *leave;
        let annotation = facts.plan.apps[place.app].annotation;
        verdict.holds(Invariant::OrderIsKept, annotation != Some(Annotation::Skip), || {
            format!("{by} requests {uid} to leave")
        });
        let last = facts.plan.apps.iter().filter(|app| app.annotation == Some(Annotation::Last));
        let Some(from) = last.filter_map(|app| deadline.last_from(app)).min() else { return };
        let now = facts.clock.now();
        let is_due = from <= now + facts.skew();
        // What blocks the pods of a dead node holds nobody up, so that all of them are deleted at once.
        let is_dead =
            matches!(deadline.termination, Termination::AtTheLatest(_)) && self.is_dead(&place.instance, facts);
        // What comes back to a node that is not cordoned may stay.
        let is_open = self.uncordoned.contains_key(&place.instance) || facts.plan.may_stay_open();
        if annotation != Some(Annotation::Last) || is_due || is_dead || is_open {
            return;
        }
        let goes_before = |other: &&Pod| {
            let app = &facts.plan.apps[other.app];
            // A node that has joined by the name since has pods of its own.
            let is_old = self.places.get(&other.uid).is_some_and(|there| {
                there.instance == place.instance && there.since < now - SignedDuration::from_secs(10)
            });
            is_old
                && other.deletion.is_none()
                && !app.stays()
                && !app.tolerates
                && app.annotation != Some(Annotation::Last)
        };
        let Some(node) = facts.clusters.place_of(uid) else { return };
        let others: Vec<&str> =
            facts.clusters.pods_on(&node).filter(goes_before).map(|other| other.uid.as_str()).collect();
        verdict.holds(Invariant::OrderIsKept, others.is_empty(), || format!("{by} requests {uid} before {others:?}"));
    }

    fn evict(&mut self, leave: &Leave<'_>, app: usize, facts: &Facts<'_>, verdict: &mut Verdict) {
        let Leave { by, uid, .. } = *leave;
        self.evictions.insert((by, uid.to_owned()));
        self.asked.entry(uid.to_owned()).or_insert(facts.clock.now());
        // A pod that leaves already, by another drain's request, is given less time: no other takes its place for that.
        if facts.clusters.pod(uid).is_none_or(|pod| pod.deletion.is_some()) {
            return;
        }
        let notice = &facts.lambda.attempt(by).notice()["id"];
        // No attempt knows the rounds of another.
        let attempts = facts.lambda.attempts().iter().filter(|attempt| attempt.notice()["id"] == *notice).count();
        let uncordoned = facts.instance(by).and_then(|instance| self.uncordoned.get(instance)).copied();
        let beginnings = attempts + uncordoned.unwrap_or_default();
        let evicted = self.evicted.entry((notice.to_string(), facts.instance(by).map(str::to_owned), app)).or_default();
        evicted.insert(uid.to_owned());
        let (evicted, pods) = (evicted.len(), facts.plan.apps[app].pods);
        let most = MOST_ROUNDS * pods * beginnings;
        verdict.holds(Invariant::ReturnsAreBounded, evicted <= most, || {
            format!("{by} evicts a {evicted}th pod of app {app}, which has {pods}")
        });
    }

    /// Whether the node of an instance may be taken for dead: it is no more, or has been missed for long enough.
    fn is_dead(&self, instance: &str, facts: &Facts<'_>) -> bool {
        let missed = self.missed.get(instance);
        !facts.clusters.reports(instance) && missed.is_none_or(|since| *since + DEAD_AFTER <= facts.clock.now())
    }

    fn delete(&self, leave: &Leave<'_>, app: &App, deadline: Deadline, facts: &Facts<'_>, verdict: &mut Verdict) {
        let Leave { by, uid, .. } = *leave;
        // An eviction tells the pod's Job that it was disrupted, whatever its annotation says.
        let was_evicted = self.evictions.contains(&(by, uid.to_owned()));
        verdict
            .holds(Invariant::DeletedWhenDue, was_evicted, || format!("{by} deletes {uid} without evicting it first"));
        let is_told = facts.clusters.pod(uid).is_none_or(|pod| pod.is_disruption_target);
        let is_excused = !facts.plan.is_well(Side::Api);
        let is_told = verdict.excuses("a Job is not told in an outage of the API server", is_told, is_excused);
        verdict.holds(Invariant::JobIsTold, is_told, || format!("{by} deletes {uid}, and nobody tells its Job"));
        let (now, due) = (facts.clock.now(), deadline.forced_from(app));
        let instance = facts.instance(by).unwrap_or_default();
        // Where the API server is away, nobody hears that it has come back.
        let is_back_unheard = self.back.get(instance).is_some_and(|back| *back < facts.calm_since(by));
        let is_over = match deadline.termination {
            Termination::Soon { .. } => !facts.clusters.reports(instance) || is_back_unheard,
            // What blocks the pods of a dead node holds no hook.
            Termination::AtTheLatest(_) => self.is_dead(instance, facts) || is_back_unheard,
            Termination::At(_) | Termination::Unknown => false,
        };
        // The first attempt's clock says when the half of a window begins, and another's when it is over.
        let is_due = due.is_some_and(|due| due <= now + facts.skew() * 3 / 2) || is_over;
        verdict.holds(Invariant::DeletedWhenDue, is_due, || {
            format!("{by} deletes {uid} at {now}, and by {deadline:?} it is due at {due:?}")
        });
    }

    /// Where the instance goes at a known time, and the drain and the pod were there in time, its budget had time.
    fn check_asked(
        &self,
        leave: &Leave<'_>,
        place: &Place,
        deadline: Deadline,
        facts: &Facts<'_>,
        verdict: &mut Verdict,
    ) {
        let Leave { by, uid, .. } = *leave;
        let app = &facts.plan.apps[place.app];
        let is_well = [Side::Api, Side::Aws].iter().all(|side| facts.plan.is_well(*side));
        let began = facts.lambda.attempt(by).began.max(place.since).max(deadline.unbraked(facts.plan).sent);
        let deadline = deadline.unbraked(facts.plan);
        let due =
            deadline.forced_from(app).filter(|due| deadline.is_known() && began + BEGINS_WITHIN + ASKED_BEFORE <= *due);
        let (Some(due), true) = (due, is_well) else { return };
        // A drain that begins late forces later than by what is due: at half of its own time.
        let (now, asked) = (facts.clock.now(), self.asked.get(uid).copied());
        let is_early = asked.is_some_and(|asked| asked + ASKED_BEFORE <= due.max(now));
        verdict.holds(Invariant::AskedBeforeForced, is_early, || {
            format!("{by} deletes {uid} at {now}, due at {due}, which was asked at {asked:?}")
        });
    }
}

/// `first`: when the attempt first requested a pod to leave.
fn check_grace(
    leave: &Leave<'_>,
    app: &App,
    (first, deadline): (Timestamp, Deadline),
    facts: &Facts<'_>,
    verdict: &mut Verdict,
) {
    let Leave { by, uid, request } = leave;
    let time_left = deadline.time_left(facts.clock.now());
    let left = time_left.map(|left| left.as_secs());
    let late = (facts.lambda.attempt(*by).began + LATE).max(first + LATE_AT_FIRST);
    let is_late = time_left.is_some_and(|left| facts.clock.now() + left < late);
    let skew = facts.skew().as_secs() + 1;
    let own = i64::try_from(app.grace_s).unwrap_or(i64::MAX);
    let given = request.grace_s.and_then(|given| i64::try_from(given).ok());
    let is_right = match (given, left) {
        // A notice that comes late has its least window, from when its node was claimed: before this request.
        (Some(given), Some(left)) if is_late => {
            let most = left.max(LEAST_WINDOW_S);
            (1..=own.max(1)).contains(&given) && (left - skew - 1..=most + skew + 1).contains(&given)
        }
        // What is over takes no grace.
        (None, Some(left)) if is_late && left <= skew => true,
        (None, Some(left)) if is_late => own <= left.max(LEAST_WINDOW_S) + skew + 1,
        // Never zero, which ends the pod's object while it runs, and never more than it asks for.
        (Some(given), Some(left)) => (1..=own.max(1)).contains(&given) && (given - left.max(1)).abs() <= skew + 1,
        (Some(_), None) => false,
        (None, Some(left)) => own <= left.max(1) + skew + 1,
        (None, None) => true,
    };
    verdict.holds(Invariant::GraceIsRight, is_right, || {
        format!("{by} gives {uid} {given:?} of {own} s, and there are {left:?}")
    });
}
