//! Tests: a drain step by step, with the clock handed in.

use serde_json::json;

use super::*;
use crate::drain::deadline::tests::{hard, soon};
use crate::drain::deadline::{Grace, MARGIN};

mod answers;
mod budgets;
mod do_not_disrupt;
mod model;
mod order;
mod others;
mod returns;
mod silent;
mod waiting;

fn pod(name: &str, class: Option<&str>) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-of-{name}"), "resourceVersion": "1"},
        "spec": {"containers": [], "priorityClassName": class},
    }))
    .unwrap()
}

fn web() -> [Pod; 1] {
    [pod("web-0", None)]
}

fn uid(name: &str) -> PodUid {
    PodUid(format!("uid-of-{name}"))
}

/// Wall-clock time at the start of a drain.
const BEGIN: &str = "2026-11-21T03:12:00Z";

fn clock() -> Clock {
    Clock::starting_at(BEGIN.parse().unwrap())
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn drain(pods: &[Pod], window: Window, now: Instant) -> Progress {
    Progress::new(pods, Returns::since(clock().at(now)), window, clock(), now)
}

/// Drain whose first requests all get the answer.
fn answered(pods: &[Pod], answer: &Answer, window: Window, now: Instant) -> Progress {
    let mut progress = drain(pods, window, now);
    answer_all(&mut progress, answer, now);
    progress
}

fn answer_all(progress: &mut Progress, answer: &Answer, now: Instant) {
    for request in progress.requests(now) {
        progress.answered(&request.uid, answer.clone(), now);
    }
}

/// Answers each eviction until a pod is deleted.
fn until_deleted(progress: &mut Progress, answer: &Answer, mut at: Instant) -> (Instant, LeaveRequest) {
    loop {
        for request in progress.requests(at) {
            if request.method == Method::Delete {
                return (at, request);
            }
            progress.answered(&request.uid, answer.clone(), at);
        }
        at = progress.next_due(at).unwrap();
    }
}

fn applied(pod: Pod) -> Change<Pod> {
    Change::Applied(Box::new(pod))
}

fn gone(name: &str) -> Change<Pod> {
    Change::Deleted(Box::new(pod(name, None)))
}

fn held_by_hook(now: Instant) -> Window {
    let window = hard(now, 600);
    Window { instance_goes: Termination::AtTheLatest(window.end), ..window }
}

/// An instance that may stay.
fn open(now: Instant) -> Window {
    Window { instance_goes: Termination::MayStay, ..hard(now, 600) }
}

fn names(requests: &[LeaveRequest]) -> Vec<&str> {
    requests.iter().map(|request| request.name.name.as_str()).collect()
}

fn blocked() -> Answer {
    Answer::BlockedBy { budget: "web".to_owned() }
}

fn refused() -> Answer {
    Answer::Refused { message: "the API server answered 403: a webhook says no".to_owned() }
}

fn broken() -> Answer {
    Answer::ServerError { message: "the API server answered 500: boom".to_owned(), retry_after: None }
}

fn unanswered() -> Answer {
    Answer::Unanswered { message: "lost".to_owned() }
}

fn unauthorized() -> Answer {
    Answer::Unauthorized { message: "401".to_owned() }
}

fn throttled(retry_after_s: Option<u64>) -> Answer {
    Answer::Throttled { retry_after: retry_after_s.map(Duration::from_secs) }
}

#[test]
fn drain_ends_with_the_pods_end_not_with_its_eviction() {
    let now = Instant::now();
    let mut progress = drain(&web(), held_by_hook(now), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.changed(gone("another-web-0"), now);
    assert_eq!(progress.end(), None);
    progress.changed(gone("web-0"), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
    assert_eq!(progress.take_transitions().len(), 2);
}

#[test]
fn critical_pods_wait_until_the_others_are_gone_or_blocked() {
    let now = Instant::now();
    let pods = [pod("dns", Some("system-cluster-critical")), pod("slow", None), pod("web-0", None)];
    let mut progress = drain(&pods, held_by_hook(now), now);
    assert_eq!(names(&progress.requests(now)), ["slow", "web-0"]);
    progress.answered(&uid("web-0"), blocked(), now);
    progress.answered(&uid("slow"), Answer::Leaving, now);
    assert!(progress.requests(now).is_empty(), "one is terminating");
    progress.changed(gone("slow"), now);
    assert_eq!(progress.next_due(now), Some(now));
    assert_eq!(names(&progress.requests(now)), ["dns"]);
}

#[test]
fn new_list_shows_the_pods_that_went_in_the_meantime() {
    let now = Instant::now();
    let mut progress = drain(&[pod("a", None), pod("b", None)], held_by_hook(now), now);
    progress.changed(Change::Listed(vec![pod("b", None), pod("c", None)]), now);
    assert_eq!(names(&progress.requests(now)), ["b", "c"]);
}

#[test]
fn blocked_pod_is_deleted_at_its_last_safe_moment() {
    let now = Instant::now();
    let annotated = || do_not_disrupt::annotated("web-0", "true", None);
    let several = "more than one PodDisruptionBudget (only one may select the pod)";
    let failing = "its failing eviction (the API server answered 403: a webhook says no)";
    for (pod, answer, window, forced_s, blocker) in [
        (pod("web-0", None), blocked(), hard(now, 120), 88, "PodDisruptionBudget web"),
        (pod("web-0", None), blocked(), held_by_hook(now), 568, "PodDisruptionBudget web"),
        (pod("web-0", None), blocked(), soon(now, 120), 120, "PodDisruptionBudget web"),
        (pod("web-0", None), Answer::BlockedBySeveral, hard(now, 120), 88, several),
        (pod("web-0", None), Answer::NamespaceTerminating, hard(now, 120), 88, "the deletion of its namespace"),
        (pod("web-0", None), refused(), hard(now, 120), 88, failing),
        (annotated(), refused(), hard(now, 120), 88, failing),
        (pod("web-0", None), broken(), hard(now, 120), 88, "its failing eviction (the API server answered 500: boom)"),
    ] {
        let mut progress = drain(&[pod], window, now);
        let (at, forced) = until_deleted(&mut progress, &answer, now);
        assert_eq!((at, forced.grace), (now + seconds(forced_s), Grace::Own), "{answer:?}");
        progress.take_transitions();
        progress.answered(&uid("web-0"), Answer::Leaving, at);
        let transitions = progress.take_transitions();
        let [Transition::Forced(_, by)] = transitions.as_slice() else { panic!("{transitions:?}") };
        assert_eq!(by.to_string(), blocker);
    }
}

#[test]
fn unblocked_finished_or_possibly_staying_pod_is_not_deleted() {
    let now = Instant::now();
    let forbidden = Answer::Forbidden { message: "403".to_owned() };
    for (pod, answer, window) in [
        (pod("web-0", None), throttled(None), hard(now, 120)),
        (pod("web-0", None), unanswered(), hard(now, 120)),
        (pod("web-0", None), forbidden, hard(now, 120)),
        (pod("web-0", None), unauthorized(), hard(now, 120)),
        (pod("web-0", None), blocked(), open(now)),
        (answers::finished("Failed"), refused(), hard(now, 120)),
    ] {
        let mut progress = drain(&[pod], window, now);
        let mut at = now;
        while at < window.end {
            for request in progress.requests(at) {
                assert_eq!(request.method, Method::Evict, "{answer:?}");
                progress.answered(&request.uid, answer.clone(), at);
            }
            at = progress.next_due(at).unwrap();
        }
    }
}

/// Next request of a blocked pod whose deletion at its last safe moment got the answer.
fn after_deletion(answer: Answer, within: Duration) -> LeaveRequest {
    let now = Instant::now();
    let mut progress = answered(&web(), &blocked(), hard(now, 120), now);
    let (late, _) = until_deleted(&mut progress, &blocked(), now + seconds(5));
    progress.answered(&uid("web-0"), answer, late);
    let again = progress.next_due(late).unwrap();
    assert!(again > late && again <= late + within, "{:?}", again - late);
    progress.requests(again).remove(0)
}

#[test]
fn lost_deletion_is_repeated_but_not_a_refused_one() {
    for answer in [unanswered(), unauthorized(), throttled(Some(60))] {
        assert_eq!(after_deletion(answer.clone(), seconds(1)).method, Method::Delete, "{answer:?}");
    }
    for (answer, within_s) in [(Answer::Forbidden { message: "403".to_owned() }, 5), (refused(), 1), (broken(), 1)] {
        let request = after_deletion(answer.clone(), seconds(within_s));
        assert_eq!((request.method, request.timeout), (Method::Evict, Some(seconds(2))), "{answer:?}");
    }
}

#[test]
fn budget_that_blocks_an_unready_pod_comes_with_advice() {
    let advice = |ready: &str| {
        let now = Instant::now();
        let mut web = pod("web-0", None);
        let conditions = json!([{"type": "Ready", "status": ready}]);
        web.status = serde_json::from_value(json!({"phase": "Running", "conditions": conditions})).unwrap();
        let mut progress = answered(&[web], &blocked(), held_by_hook(now), now);
        progress.news(now);
        let Some(BlockageNews::Begun(mut blocked)) = progress.news(now + seconds(60)) else { panic!() };
        blocked.remove(0).advice
    };
    assert_eq!(
        advice("False").unwrap(),
        "budget web protects pods that are not Ready; set unhealthyPodEvictionPolicy: AlwaysAllow (kubectl --namespace shop patch \
         poddisruptionbudget web --type merge --patch '{\"spec\":{\"unhealthyPodEvictionPolicy\":\"AlwaysAllow\"}}')"
    );
    assert_eq!(advice("True"), None);
}

#[test]
fn deletion_does_not_wait_behind_evictions() {
    let now = Instant::now();
    let others = (0..2 * EVICTIONS_AT_ONCE).map(|n| pod(&format!("p-{n:03}"), None));
    let mut progress = answered(&[pod("held", None)], &blocked(), hard(now, 120), now);
    others.for_each(|other| progress.changed(applied(other), now));
    assert_eq!(progress.requests(now).len(), EVICTIONS_AT_ONCE, "none of them is answered");
    let last_safe_moment = now + seconds(88);
    assert_eq!(progress.next_due(now), Some(last_safe_moment));
    let requests = progress.requests(last_safe_moment);
    assert_eq!((names(&requests), requests[0].method), (vec!["held"], Method::Delete));
}

#[test]
fn eviction_without_an_answer_is_followed_by_the_deletion() {
    let now = Instant::now();
    let mut progress = drain(&web(), hard(now, 120), now);
    assert_eq!(progress.requests(now + seconds(80))[0].timeout, Some(seconds(8)));
    let late = now + seconds(88);
    progress.answered(&uid("web-0"), Answer::GivenUp { message: "no answer within 8 s".to_owned() }, late);
    let requests = progress.requests(late);
    assert_eq!((requests[0].method, requests[0].timeout), (Method::Delete, None));
}
