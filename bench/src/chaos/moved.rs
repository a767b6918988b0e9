//! Whether pods were moved, and rightly: what receipts say beside what the API server wrote down. Pure.
//!
//! The API server itself keeps evictions within budgets. What is left to look at are deletions, which it lets pass.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use spillway_bed::audit::Request;

use super::notice::Kind;
use super::verdict::{Attempt, Ended, Seen, Verdict, Violation, notices};

/// What a pod's grace ends before its instance goes, for the kubelet's report.
const MARGIN: Duration = Duration::from_secs(2);
/// After which a blocked pod is forced when nobody knows when its instance goes.
const UNKNOWN: Duration = Duration::from_secs(120);
/// AWS tells times in whole seconds, and a grace is one: both are rounded.
const ROUNDED: Duration = Duration::from_secs(2);
/// How long what was sent may be on its way: a fault makes it 3 s late, and a partition lasts up to 2 s.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

/// The pods of a node, and what was told of its instance.
#[derive(Debug, Clone, Default)]
pub(super) struct Workload {
    pub(super) pods: Vec<String>,
    pub(super) grace: Duration,
    /// How many of them their budget lets go, if they have one.
    pub(super) budget: Option<u32>,
    /// Whether they are to leave.
    pub(super) drains: bool,
    pub(super) told: Vec<Told>,
}

/// A notice, as far as it bounds what may be done to pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) at: Timestamp,
    /// When the instance goes, if it says so.
    pub(super) goes: Option<Timestamp>,
}

/// What a receipt says of a pod.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    pub(super) pod: String,
    pub(super) evicted: usize,
    pub(super) deleted: usize,
    /// Requests whose answers it does not know.
    pub(super) unanswered: usize,
}

/// How much moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Figures {
    /// The pods that were to leave.
    pub(super) pods: usize,
    /// Evictions with the answer 201.
    pub(super) evictions: usize,
    /// Those with the answer 429.
    pub(super) refused: usize,
    /// Deletions of pods that no eviction had moved.
    pub(super) forced: usize,
    /// Pods of receipts that were compared with the audit log.
    pub(super) compared: usize,
    /// Of the pods that were to leave, those with a budget.
    pub(super) with_budget: usize,
}

/// What the API server and the receipts say of one pod.
#[derive(Debug, Default)]
struct Pod<'a> {
    /// Accepted, in the order in which they came.
    evictions: Vec<&'a Request>,
    deletions: Vec<&'a Request>,
    /// By which invocations.
    said: Vec<(&'a Attempt, &'a Said)>,
}

/// Judges what was done to pods.
pub(super) fn judge(seen: &Seen, verdict: &mut Verdict) {
    let pods = pods(seen, verdict);
    let untouched = Pod::default();
    let asked = pods.iter().filter(|(_, pod)| !pod.evictions.is_empty() || !pod.deletions.is_empty());
    let mut unknown: BTreeSet<&str> = asked.map(|(name, _)| *name).collect();
    for node in &seen.nodes {
        for name in &node.workload.pods {
            unknown.remove(name.as_str());
            let pod = pods.get(name.as_str()).unwrap_or(&untouched);
            let broken = |what: String| Violation::Pod {
                pod: name.clone(),
                node: node.node.clone(),
                what,
                notices: notices(seen, &node.instance),
            };
            compare(seen, node, pod, verdict, &broken);
            within(&node.workload, pod, verdict, &broken);
            if node.workload.drains {
                verdict.figures.pods += 1;
                verdict.figures.with_budget += usize::from(node.workload.budget.is_some());
                if pod.evictions.is_empty() && pod.deletions.is_empty() {
                    verdict.note(broken("never requested to leave".to_owned()), excuse_of_staying(seen, node));
                }
            }
        }
    }
    // Of lives that did not come to their end, which is a violation already.
    for name in unknown.into_iter().filter(|_| seen.restless.is_empty()) {
        let (pod, node) = (name.to_owned(), "no node of ours".to_owned());
        let what = "requested to leave".to_owned();
        verdict.violations.push(Violation::Pod { pod, node, what, notices: String::new() });
    }
    if verdict.figures.evictions == 0 {
        verdict.violations.push(Violation::NothingEvicted);
    }
}

/// By their names: no two pods of a run have the same.
fn pods<'a>(seen: &'a Seen, verdict: &mut Verdict) -> BTreeMap<&'a str, Pod<'a>> {
    let figures = &mut verdict.figures;
    let mut pods = BTreeMap::<&str, Pod<'_>>::new();
    for request in seen.requests.iter().filter(|request| request.resource == "pods" && !request.name.is_empty()) {
        let pod = pods.entry(&request.name);
        match (request.verb.as_str(), request.subresource.as_str(), request.code) {
            ("create", "eviction", Some(201)) => {
                figures.evictions += 1;
                pod.or_default().evictions.push(request);
            }
            ("create", "eviction", Some(429)) => figures.refused += 1,
            ("delete", "", Some(200 | 202)) => {
                let pod = pod.or_default();
                figures.forced += usize::from(pod.evictions.is_empty() && pod.deletions.is_empty());
                pod.deletions.push(request);
            }
            _ => {}
        }
    }
    for attempt in seen.handed.iter().flat_map(|one| &one.attempts) {
        for said in &attempt.pods {
            figures.compared += 1;
            pods.entry(&said.pod).or_default().said.push((attempt, said));
        }
    }
    pods
}

/// Receipts say what the API server wrote down, and no more. What an execution did that was killed, they cannot say.
fn compare(seen: &Seen, node: &Ended, pod: &Pod<'_>, verdict: &mut Verdict, broken: &dyn Fn(String) -> Violation) {
    let sum = |of: fn(&Said) -> usize| pod.said.iter().map(|(_, said)| of(said)).sum::<usize>();
    let unanswered = |at| pod.said.iter().any(|(attempt, said)| said.unanswered > 0 && covers(attempt, at));
    let was_killed = |at| {
        let mut attempts = seen.about(&node.instance).flat_map(|one| &one.attempts);
        attempts.any(|attempt| attempt.is_killed() && covers(attempt, at))
    };
    let all = [
        ("eviction", sum(|said| said.evicted), &pod.evictions),
        ("deletion", sum(|said| said.deleted), &pod.deletions),
    ];
    for (what, said, done) in all {
        let count = |is_so: &dyn Fn(Timestamp) -> bool| done.iter().filter(|request| is_so(request.received)).count();
        let untold = done.len().saturating_sub(said);
        let unheard = untold.min(count(&unanswered));
        let killed = (untold - unheard).min(count(&was_killed));
        verdict.excuse(&format!("{what} whose answer did not arrive"), unheard);
        verdict.excuse(&format!("{what} by an execution that was killed then"), killed);
        if untold > unheard + killed {
            verdict.note(broken(format!("{what} that no receipt tells of")), None);
        }
        if said > done.len() {
            let text = format!("receipts say of its {what} {said} times, the audit log {} times", done.len());
            verdict.note(broken(text), None);
        }
    }
}

/// Whether a request that came then may be this invocation's.
fn covers(attempt: &Attempt, at: Timestamp) -> bool {
    (attempt.from..=attempt.to + ON_ITS_WAY).contains(&at)
}

/// No pod is deleted before it may be forced, nor given less grace than what was told leaves it.
fn within(workload: &Workload, pod: &Pod<'_>, verdict: &mut Verdict, broken: &dyn Fn(String) -> Violation) {
    let told_at = |at: Timestamp| workload.told.iter().filter(move |told| told.at <= at);
    let asked =
        |request: &Request| pod.evictions.iter().chain(&pod.deletions).any(|one| one.received < request.received);
    for request in &pod.deletions {
        let at = request.received;
        // One that leaves already may be told to be quicker.
        let early = told_at(at).all(|told| at + ROUNDED < forced_from(*told, workload.grace));
        if early && !asked(request) {
            verdict.note(broken(format!("deleted before it may be forced, at {at}")), None);
        }
    }
    for request in pod.evictions.iter().chain(&pod.deletions) {
        let (at, own) = (request.received, workload.grace.as_secs());
        let left = told_at(at).filter_map(|told| told.goes).map(|goes| left(at, goes)).min();
        let least = left.map_or(own, |left| left.clamp(1, own));
        let given = request.grace_s.unwrap_or(own);
        if given < least {
            verdict.note(broken(format!("given {given} s of grace where {least} s were left, at {at}")), None);
        }
    }
}

/// A pod's last safe moment, but not before half of the time is over.
fn forced_from(told: Told, grace: Duration) -> Timestamp {
    let Some(goes) = told.goes else { return told.at + UNKNOWN };
    let half = told.at + goes.duration_since(told.at) / 2;
    half.max(goes - grace - MARGIN)
}

/// The whole seconds that are surely left for a pod.
fn left(at: Timestamp, goes: Timestamp) -> u64 {
    let margin = SignedDuration::try_from(MARGIN + ROUNDED).unwrap_or_default();
    u64::try_from((goes.duration_since(at) - margin).as_secs()).unwrap_or_default()
}

/// Why pods need not have been requested to leave: each notice that had time for it is in the failure queue.
fn excuse_of_staying(seen: &Seen, node: &Ended) -> Option<&'static str> {
    let of = |has_time: bool| {
        let own = seen.about(&node.instance).filter(move |one| one.kind.has_pods_leave());
        own.filter(move |one| (one.kind != Kind::ShuttingDown) == has_time).map(|one| one.event_id.as_str())
    };
    let mut ids: BTreeSet<&str> = of(true).collect();
    if ids.is_empty() {
        ids = of(false).collect();
    }
    let is_excused = !ids.is_empty() && ids.iter().all(|id| seen.is_given_up_at_last(id));
    is_excused.then_some("pods of a notice in the failure queue")
}

#[cfg(test)]
mod tests {
    use super::super::verdict::of;
    use super::super::verdict::tests::{ended, handed, seen, told};
    use super::*;
    use crate::test_support::request;

    const POD: &str = "web-1-0-0";

    /// What the API server wrote down is put in place of the one eviction.
    fn with(requests: Vec<Request>) -> Seen {
        Seen { requests, ..seen(handed(), ended()) }
    }

    fn eviction(second: i64) -> Request {
        request("create", "pods/eviction", POD, 201, second * 1_000..second * 1_000)
    }

    fn deletion(second: i64) -> Request {
        request("delete", "pods", POD, 200, second * 1_000..second * 1_000)
    }

    /// A receipt with this of the pod, and what the API server wrote down.
    fn saying(said: &Said, requests: Vec<Request>) -> Seen {
        let mut seen = with(requests);
        seen.handed[0].attempts[0].pods = vec![Said { pod: POD.to_owned(), ..said.clone() }];
        seen
    }

    fn text(what: &str) -> String {
        format!("{what}: pod {POD} on node-1; notices: spot interruption n-1")
    }

    #[test]
    fn what_moved_is_counted() {
        let refused = request("create", "pods/eviction", POD, 429, 1_500..1_500);
        let figures = of(&with(vec![refused, eviction(2)])).figures;
        let expected = Figures { pods: 1, evictions: 1, refused: 1, compared: 1, ..Figures::default() };
        assert_eq!(figures, expected);
    }

    #[test]
    fn a_receipt_that_tells_of_what_was_not_done_is_found() {
        let told = told(&saying(&Said { evicted: 2, ..Said::default() }, vec![eviction(2)]));
        assert_eq!(told, [text("receipts say of its eviction 2 times, the audit log 1 times")]);
    }

    #[test]
    fn a_run_that_evicts_nothing_fails() {
        let told = told(&saying(&Said::default(), Vec::new()));
        assert_eq!(told, [text("never requested to leave"), "no pod was evicted at all".to_owned()]);
    }

    #[test]
    fn a_pod_may_stay_only_if_each_notice_that_had_time_was_given_up() {
        let other = || request("create", "pods/eviction", "web-2-0-0", 201, 0..0);
        let stayed = || {
            let mut stayed = saying(&Said::default(), vec![other()]);
            let second =
                Ended { workload: Workload { pods: vec!["web-2-0-0".to_owned()], ..ended().workload }, ..ended() };
            stayed.nodes.push(Ended { instance: "i-2".to_owned(), ..second });
            stayed.handed[0].attempts[0].pods =
                vec![Said { pod: "web-2-0-0".to_owned(), evicted: 1, ..Said::default() }];
            stayed.handed[0].attempts[0].error = Some("AwsDenied".to_owned());
            stayed
        };
        assert_eq!(told(&stayed()), [text("never requested to leave")]);
        let given_up = ["r-1".to_owned()].into();
        assert_eq!(told(&Seen { given_up, ..stayed() }), Vec::<String>::new());
    }

    #[test]
    fn an_eviction_that_no_receipt_tells_of_is_of_an_execution_that_was_killed_then() {
        let untold = |second, error: Option<&str>, receipts| {
            let mut seen = saying(&Said::default(), vec![eviction(second)]);
            seen.handed[0].attempts[0].error = error.map(str::to_owned);
            seen.handed[0].attempts[0].receipts = receipts;
            seen.handed[0].attempts.push(Attempt { receipts: 1, ..handed().attempts.remove(0) });
            seen.handed[0].attempts[1].pods.clear();
            seen
        };
        let verdict = of(&untold(2, Some("Runtime.ExitError"), 0));
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.excuses["eviction by an execution that was killed then"], 1);
        let bare = [text("eviction that no receipt tells of")];
        assert_eq!(told(&untold(11, Some("Runtime.ExitError"), 0)), bare, "it was killed before");
        assert_eq!(told(&untold(2, None, 1)), bare, "none was killed");
        let unheard = of(&saying(&Said { unanswered: 1, ..Said::default() }, vec![eviction(2)]));
        assert_eq!(unheard.violations, []);
        assert_eq!(unheard.excuses["eviction whose answer did not arrive"], 1);
    }

    #[test]
    fn a_pod_is_deleted_at_its_last_safe_moment_and_not_before() {
        // It has 5 s, and its instance goes after 30.
        let deleted = |second| {
            let said = Said { evicted: 1, deleted: 1, ..Said::default() };
            saying(&said, vec![deletion(second), eviction(29)])
        };
        assert_eq!(
            told(&deleted(20))[0],
            text(&format!("deleted before it may be forced, at {}", deletion(20).received))
        );
        assert_eq!(told(&deleted(22)), Vec::<String>::new());
        let said = Said { evicted: 1, deleted: 1, ..Said::default() };
        assert_eq!(told(&saying(&said, vec![eviction(2), deletion(3)])), Vec::<String>::new(), "it was leaving");
    }

    #[test]
    fn a_pod_has_its_own_grace_or_what_is_left() {
        let given = |second, grace_s| with(vec![Request { grace_s: Some(grace_s), ..eviction(second) }]);
        let less = |given, least, second| {
            [text(&format!("given {given} s of grace where {least} s were left, at {}", eviction(second).received))]
        };
        assert_eq!(told(&given(2, 4)), less(4, 5, 2), "its own");
        assert_eq!(told(&given(23, 2)), less(2, 3, 23), "7 s before its instance goes");
        assert_eq!(told(&given(23, 3)), Vec::<String>::new());
        assert_eq!(told(&given(40, 1)), Vec::<String>::new());
        assert_eq!(told(&given(40, 0)), less(0, 1, 40));
    }
}
