//! Where a drain stands, step by step, with the clock handed in.

use serde_json::json;

use super::*;
use crate::drain::deadline::Grace;
use crate::drain::pod::blocker::{Blocker, BudgetName};

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

fn uid(name: &str) -> PodUid {
    PodUid(format!("uid-of-{name}"))
}

/// The default of the setting.
const MARGIN: Duration = Duration::from_secs(2);

/// What the wall clock says when a drain begins.
const BEGIN: &str = "2026-11-21T03:12:00Z";

fn clock() -> Clock {
    Clock::starting_at(BEGIN.parse().unwrap())
}

fn drain(pods: &[Pod], window: Window, now: Instant) -> Progress {
    Progress::new(pods, Returns::since(clock().at(now)), window, clock(), now)
}

fn gone(name: &str) -> Change<Pod> {
    Change::Gone(Box::new(pod(name, None)))
}

fn held_by_hook(now: Instant) -> Window {
    let end = now + Duration::from_secs(600);
    Window {
        start: now,
        end,
        instance_goes: Termination::AtTheLatest(end),
        margin: MARGIN,
        detaching: Duration::ZERO,
        dead_since: None,
    }
}

fn names(requests: &[LeaveRequest]) -> Vec<&str> {
    requests.iter().map(|request| request.name.name.as_str()).collect()
}

#[test]
fn a_drain_is_over_when_the_watch_says_so_not_when_the_eviction_was_granted() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    assert_eq!(progress.end(), None);
    progress.changed(gone("web-0"), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
    assert_eq!(progress.take_transitions().len(), 2);
}

#[test]
fn a_pod_by_the_same_name_is_not_the_one_that_was_waited_for() {
    let now = Instant::now();
    let mut progress = drain(&[pod("db-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("db-0"), Answer::Leaving, now);
    progress.changed(gone("another-db-0"), now);
    assert_eq!(progress.end(), None);
}

#[test]
fn a_drain_knows_its_pods_and_what_volumes_they_claim() {
    let now = Instant::now();
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]);
    let db =
        json!({"metadata": {"name": "db-0", "namespace": "shop", "uid": "uid-of-db-0"}, "spec": {"volumes": volumes}});
    let db = serde_json::from_value(db).unwrap();
    let progress = drain(&[db], held_by_hook(now), now);
    assert_eq!([uid("db-0"), uid("db-1")].map(|uid| progress.knows(&uid)), [true, false]);
    assert_eq!(progress.into_pods()[&uid("db-0")].claims, ["data-db-0"]);
}

#[test]
fn critical_pods_wait_until_the_others_have_gone() {
    let now = Instant::now();
    let pods = [pod("dns", Some("system-cluster-critical")), pod("web-0", None)];
    let mut progress = drain(&pods, held_by_hook(now), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    assert!(progress.requests(now).is_empty());
    progress.changed(gone("web-0"), now);
    assert_eq!(names(&progress.requests(now)), ["dns"]);
}

#[test]
fn critical_pods_start_at_half_of_the_window_even_if_others_are_still_there() {
    let now = Instant::now();
    let mut pods = [pod("dns", Some("system-cluster-critical")), pod("web-0", None)];
    // What an ordinary pod asks for makes no critical one leave sooner.
    pods[1].spec.termination_grace_period_seconds = Some(600);
    let mut progress = drain(&pods, hard(now, 120), now);
    progress.requests(now);
    let must = progress.next_due(now).unwrap();
    assert_eq!(must, now + Duration::from_secs(60));
    assert!(progress.requests(must - Duration::from_millis(1)).is_empty());
    assert_eq!(names(&progress.requests(must)), ["dns"]);
}

#[test]
fn critical_pods_do_not_wait_for_what_is_merely_blocked() {
    let now = Instant::now();
    let pods = [pod("dns", Some("system-cluster-critical")), pod("slow", None), pod("web-0", None)];
    let mut progress = drain(&pods, held_by_hook(now), now);
    assert_eq!(names(&progress.requests(now)), ["slow", "web-0"]);
    progress.answered(&uid("web-0"), blocked(), now);
    progress.answered(&uid("slow"), Answer::Leaving, now);
    assert!(progress.requests(now).is_empty(), "one is shutting down");
    progress.changed(gone("slow"), now);
    assert_eq!(progress.next_due(now), Some(now));
    assert_eq!(names(&progress.requests(now)), ["dns"]);
}

#[test]
fn of_an_instance_that_is_going_now_critical_pods_wait_for_nobody() {
    let now = Instant::now();
    let pods = [pod("dns", Some("system-cluster-critical")), pod("web-0", None)];
    let mut progress = drain(&pods, soon(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["dns", "web-0"]);
}

#[test]
fn a_pod_that_comes_after_the_list_is_evicted_too() {
    let now = Instant::now();
    let mut progress = drain(&[], held_by_hook(now), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
    progress.changed(Change::Seen(Box::new(pod("late", None))), now);
    assert_eq!(names(&progress.requests(now)), ["late"]);
}

#[test]
fn a_new_list_tells_which_pods_went_while_nobody_watched() {
    let now = Instant::now();
    let mut progress = drain(&[pod("a", None), pod("b", None)], held_by_hook(now), now);
    progress.changed(Change::OnlyThese(vec![pod("b", None), pod("c", None)]), now);
    assert_eq!(names(&progress.requests(now)), ["b", "c"]);
}

#[test]
fn the_number_of_evictions_under_way_is_bounded() {
    let now = Instant::now();
    let pods: Vec<Pod> = (0..EVICTIONS_AT_ONCE + 10).map(|n| pod(&format!("p-{n:03}"), None)).collect();
    let mut progress = drain(&pods, held_by_hook(now), now);
    assert_eq!(progress.requests(now).len(), EVICTIONS_AT_ONCE);
    assert_eq!(progress.next_due(now), None, "the rest waits for an answer, not for a time");
    progress.answered(&uid("p-000"), Answer::Leaving, now);
    assert_eq!(progress.requests(now).len(), 1);
}

fn hard(now: Instant, seconds: u64) -> Window {
    let goes = now + Duration::from_secs(seconds);
    Window {
        start: now,
        end: goes,
        instance_goes: Termination::At(goes),
        margin: MARGIN,
        detaching: Duration::ZERO,
        dead_since: None,
    }
}

/// An instance that is going: what blocks a pod is respected so long.
fn soon(now: Instant, respected_s: u64) -> Window {
    let instance_goes = Termination::Soon { respected_until: now + Duration::from_secs(respected_s) };
    Window { instance_goes, ..held_by_hook(now) }
}

fn blocked() -> Answer {
    Answer::BlockedBy { budget: "web".to_owned() }
}

#[test]
fn a_blocked_pod_is_deleted_at_its_last_safe_moment_and_not_before() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
    let last_safe_moment = now + Duration::from_secs(88);
    let mut at = now;
    let forced = loop {
        let requests = progress.requests(at);
        if requests[0].method == Method::Delete {
            break requests;
        }
        assert!(at < last_safe_moment, "evicted after {:?}", at - now);
        progress.answered(&uid("web-0"), blocked(), at);
        at = progress.next_due(at).unwrap();
    };
    assert_eq!((at, forced[0].grace), (last_safe_moment, Grace::Own));
    progress.take_transitions();
    progress.answered(&uid("web-0"), Answer::Leaving, at);
    let name = forced[0].name.clone();
    let web = Blocker::Budget(BudgetName { namespace: "shop".to_owned(), name: "web".to_owned() });
    assert_eq!(progress.take_transitions(), [Transition::Forced(name, web)]);
}

#[test]
fn a_blocked_pod_is_deleted_in_time_for_its_own_grace_before_a_hooks_longest_wait_is_over() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    let last_safe_moment = now + Duration::from_secs(600 - 32);
    let mut at = now;
    while at < last_safe_moment {
        assert_eq!(progress.requests(at)[0].method, Method::Evict);
        progress.answered(&uid("web-0"), blocked(), at);
        at = progress.next_due(at).unwrap();
    }
    let forced = progress.requests(at);
    assert_eq!((at, forced[0].method, forced[0].grace), (last_safe_moment, Method::Delete, Grace::Own));
}

#[test]
fn a_blocked_pod_with_a_volume_is_deleted_early_enough_for_the_volume_too() {
    let now = Instant::now();
    let mut with_volume = pod("db-0", None);
    let volumes =
        json!({"containers": [], "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]});
    with_volume.spec = serde_json::from_value(volumes).unwrap();
    let window = Window { detaching: Duration::from_secs(60), ..held_by_hook(now) };
    let mut progress = drain(&[with_volume, pod("web-0", None)], window, now);
    for request in progress.requests(now) {
        progress.answered(&request.uid, Answer::BlockedBySeveral, now);
    }
    for (forced_s, name) in [(600 - 32 - 60, "db-0"), (600 - 32, "web-0")] {
        let forced = now + Duration::from_secs(forced_s);
        let deleted = |requests: &[LeaveRequest]| requests.iter().any(|one| one.method == Method::Delete);
        let early = progress.requests(forced - Duration::from_millis(1));
        assert!(!deleted(&early), "{early:?}");
        for request in early {
            progress.answered(&request.uid, Answer::BlockedBySeveral, forced - Duration::from_millis(1));
        }
        let requests = progress.requests(forced);
        assert_eq!((names(&requests), requests[0].method), (vec![name], Method::Delete));
        progress.answered(&requests[0].uid, Answer::Leaving, forced);
    }
}

#[test]
fn a_blocked_pod_is_never_deleted_while_nobody_says_that_the_instance_goes() {
    let now = Instant::now();
    let window = Window { instance_goes: Termination::Unknown, ..held_by_hook(now) };
    let mut progress = drain(&[pod("web-0", None)], window, now);
    let mut at = now;
    while at < now + Duration::from_secs(600) {
        assert_eq!(progress.requests(at)[0].method, Method::Evict);
        progress.answered(&uid("web-0"), blocked(), at);
        at = progress.next_due(at).unwrap();
    }
}

#[test]
fn a_critical_pods_budget_has_time_before_the_pod_is_deleted() {
    let now = Instant::now();
    let pods = [pod("dns", Some("system-cluster-critical")), pod("web-0", None)];
    let mut progress = drain(&pods, hard(now, 120), now);
    progress.requests(now);
    let must = progress.next_due(now).unwrap();
    progress.requests(must);
    progress.answered(&uid("dns"), blocked(), must);
    let last_safe_moment = now + Duration::from_secs(88);
    assert_eq!(must + Duration::from_secs(28), last_safe_moment);
    assert_eq!(progress.next_due(must), Some(must + Duration::from_secs(5)), "it is asked again");
    assert_eq!(progress.requests(last_safe_moment)[0].method, Method::Delete);
}

#[test]
fn a_deletion_that_fails_is_not_repeated_without_a_pause_nor_an_eviction() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
    let late = now + Duration::from_secs(100);
    progress.requests(late);
    progress.answered(&uid("web-0"), blocked(), late);
    assert_eq!(progress.requests(late)[0].method, Method::Delete);
    progress.answered(&uid("web-0"), Answer::Forbidden { message: "no right".to_owned() }, late);
    let again = progress.next_due(late).unwrap();
    assert!(again > late);
    assert_eq!(progress.requests(again)[0].method, Method::Evict);
}

/// Of a pod that a budget blocks, at its last safe moment; the API server answers its deletion so.
fn after_deletion(answer: Answer) -> (LeaveRequest, Instant) {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
    let late = now + Duration::from_secs(88);
    progress.requests(late);
    progress.answered(&uid("web-0"), blocked(), late);
    assert_eq!(progress.requests(late)[0].method, Method::Delete);
    progress.answered(&uid("web-0"), answer, late);
    let again = progress.next_due(late).unwrap();
    assert!(again > late && again <= late + Duration::from_secs(1), "{:?}", again - late);
    (progress.requests(again).remove(0), again)
}

#[test]
fn lost_deletion_is_repeated_within_a_second() {
    let lost = Answer::Unanswered { message: "connection reset".to_owned() };
    let unauthorized = Answer::Unauthorized { message: "401".to_owned() };
    let busy = Answer::Throttled { retry_after: Some(Duration::from_secs(60)) };
    for answer in [lost, unauthorized, busy] {
        let (request, _) = after_deletion(answer.clone());
        assert_eq!(request.method, Method::Delete, "{answer:?}");
    }
}

#[test]
fn eviction_after_a_refused_deletion_has_two_seconds() {
    let broken = Answer::ServerError { message: "500".to_owned(), retry_after: None };
    for answer in [Answer::Refused { message: "a webhook says no".to_owned() }, broken] {
        let (request, _) = after_deletion(answer);
        assert_eq!((request.method, request.patience), (Method::Evict, Some(Duration::from_secs(2))));
    }
}

#[test]
fn published_end_of_a_blockage_is_when_the_pod_is_forced() {
    let now = Instant::now();
    let mut with_volume = pod("db-0", None);
    let volumes = json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]});
    with_volume.spec = serde_json::from_value(volumes).unwrap();
    let window = Window { detaching: Duration::from_secs(60), ..held_by_hook(now) };
    let mut progress = drain(&[with_volume], window, now);
    progress.requests(now);
    progress.answered(&uid("db-0"), blocked(), now);
    progress.news(now);
    let Some(BlockageNews::Begun(published)) = progress.news(now + Duration::from_secs(60)) else { panic!() };
    let forced = now + Duration::from_secs(600 - 32 - 60);
    assert_eq!(published[0].until, Some(forced));
    assert_eq!(progress.requests(forced)[0].method, Method::Delete);
}

#[test]
fn budget_that_blocks_an_unready_pod_comes_with_advice() {
    let advice = |phase: &str, ready: &str| {
        let now = Instant::now();
        let mut web = pod("web-0", None);
        let conditions = json!([{"type": "Ready", "status": ready}]);
        web.status = serde_json::from_value(json!({"phase": phase, "conditions": conditions})).unwrap();
        let mut progress = drain(&[web], held_by_hook(now), now);
        progress.requests(now);
        progress.answered(&uid("web-0"), blocked(), now);
        progress.news(now);
        let Some(BlockageNews::Begun(mut blocked)) = progress.news(now + Duration::from_secs(60)) else { panic!() };
        blocked.remove(0).advice
    };
    assert_eq!(
        advice("Running", "False").unwrap(),
        "budget web protects pods that are not Ready; set unhealthyPodEvictionPolicy: AlwaysAllow (kubectl --namespace shop patch \
         poddisruptionbudget web --type merge --patch '{\"spec\":{\"unhealthyPodEvictionPolicy\":\"AlwaysAllow\"}}')"
    );
    assert_eq!(advice("Running", "True"), None);
}

#[test]
fn a_pod_that_nothing_blocks_is_never_deleted() {
    let (busy, lost) = (Answer::Throttled { retry_after: None }, Answer::Unanswered { message: "lost".to_owned() });
    let no_right = Answer::Forbidden { message: "403".to_owned() };
    let unauthorized = Answer::Unauthorized { message: "401".to_owned() };
    for failed in [busy, lost, no_right, unauthorized] {
        let now = Instant::now();
        let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
        let late = now + Duration::from_secs(119);
        assert_eq!(progress.requests(late)[0].method, Method::Evict);
        progress.answered(&uid("web-0"), failed, late);
        let again = progress.next_due(late).unwrap();
        assert_eq!(progress.requests(again)[0].method, Method::Evict);
    }
}

#[test]
fn a_pod_whose_evictions_are_refused_or_fail_is_deleted_at_its_last_safe_moment_and_not_before() {
    let refused = Answer::Refused { message: "the API server answered 403: a webhook says no".to_owned() };
    let broken = Answer::ServerError { message: "the API server answered 500: boom".to_owned(), retry_after: None };
    for (failed, answered) in [(refused, "403: a webhook says no"), (broken, "500: boom")] {
        let now = Instant::now();
        let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
        let last_safe_moment = now + Duration::from_secs(88);
        let mut at = now;
        while at < last_safe_moment {
            assert_eq!(progress.requests(at)[0].method, Method::Evict);
            progress.answered(&uid("web-0"), failed.clone(), at);
            at = progress.next_due(at).unwrap();
        }
        assert_eq!((at, progress.requests(at)[0].method), (last_safe_moment, Method::Delete));
        progress.take_transitions();
        progress.answered(&uid("web-0"), Answer::Leaving, at);
        let transitions = progress.take_transitions();
        let [Transition::Forced(_, by)] = transitions.as_slice() else { panic!("{transitions:?}") };
        assert_eq!(by.to_string(), format!("its failing eviction (the API server answered {answered})"));
    }
}

#[test]
fn a_deletion_at_the_last_safe_moment_does_not_wait_behind_evictions() {
    let now = Instant::now();
    let held = pod("held", None);
    let others: Vec<Pod> = (0..2 * EVICTIONS_AT_ONCE).map(|n| pod(&format!("p-{n:03}"), None)).collect();
    let mut progress = drain(&[held], hard(now, 120), now);
    progress.requests(now);
    progress.answered(&uid("held"), blocked(), now);
    for other in others {
        progress.changed(Change::Seen(Box::new(other)), now);
    }
    assert_eq!(progress.requests(now).len(), EVICTIONS_AT_ONCE, "none of them is answered");
    let last_safe_moment = now + Duration::from_secs(88);
    assert_eq!(progress.next_due(now), Some(last_safe_moment));
    let requests = progress.requests(last_safe_moment);
    assert_eq!((names(&requests), requests[0].method), (vec!["held"], Method::Delete));
}

#[test]
fn an_eviction_that_is_not_answered_by_its_pods_last_safe_moment_is_given_up_for_the_deletion() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
    let at = now + Duration::from_secs(80);
    let requests = progress.requests(at);
    assert_eq!(requests[0].patience, Some(Duration::from_secs(8)));
    let late = now + Duration::from_secs(88);
    progress.answered(&uid("web-0"), Answer::GivenUp { message: "no answer within 8 s".to_owned() }, late);
    let requests = progress.requests(late);
    assert_eq!((requests[0].method, requests[0].patience), (Method::Delete, None));
}
