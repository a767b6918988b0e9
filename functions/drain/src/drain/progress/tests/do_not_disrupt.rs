//! Pods that wish not to be disturbed: left alone as long as that can be.

use super::*;

fn wishing(name: &str, value: &str, class: Option<&str>) -> Pod {
    let mut pod = pod(name, class);
    pod.metadata.annotations = Some([("karpenter.sh/do-not-disrupt".to_owned(), value.to_owned())].into());
    pod
}

fn started(mut pod: Pod, ago: Duration) -> Pod {
    let at = BEGIN.parse::<jiff::Timestamp>().unwrap() - jiff::SignedDuration::try_from(ago).unwrap();
    pod.status = serde_json::from_value(json!({"startTime": at.to_string()})).unwrap();
    pod
}

#[test]
fn a_pod_that_wishes_it_is_not_asked_to_leave_before_its_last_safe_moment() {
    let now = Instant::now();
    let mut progress = drain(&[wishing("web-0", "true", None)], hard(now, 120), now);
    assert!(progress.requests(now).is_empty());
    assert_eq!(progress.end(), None);
    let last_safe_moment = now + Duration::from_secs(88);
    assert_eq!(progress.next_due(now), Some(last_safe_moment));
    let requests = progress.requests(last_safe_moment);
    assert_eq!((names(&requests), requests[0].way), (vec!["web-0"], Method::Delete));
    progress.answered(&uid("web-0"), Answer::Leaving, last_safe_moment);
    let news = progress.take_news();
    let [Transition::Held(_, held), Transition::Forced(_, forced)] = news.as_slice() else { panic!("{news:?}") };
    assert_eq!(held, forced);
    assert_eq!(held.to_string(), "its annotation karpenter.sh/do-not-disrupt=true");
}

#[test]
fn while_a_hook_holds_the_instance_the_wish_is_respected_to_the_end() {
    let now = Instant::now();
    let mut progress = drain(&[wishing("web-0", "true", None)], held(now), now);
    assert_eq!(progress.next_due(now), None);
    assert!(progress.requests(now + Duration::from_secs(600)).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wish_for_a_time_ends_with_it_and_the_pod_is_evicted() {
    let now = Instant::now();
    let pod = started(wishing("web-0", "10m", None), Duration::from_mins(9));
    let mut progress = drain(&[pod], held(now), now);
    assert!(progress.requests(now).is_empty());
    let ends = now + Duration::from_mins(1);
    assert_eq!(progress.next_due(now), Some(ends));
    assert_eq!(progress.requests(ends)[0].way, Method::Evict);
}

#[tokio::test(start_paused = true)]
async fn a_wish_for_a_time_that_is_over_holds_nothing() {
    let now = Instant::now();
    let pod = started(wishing("web-0", "10m", None), Duration::from_mins(11));
    let mut progress = drain(&[pod], held(now), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
}

#[test]
fn a_wish_that_is_taken_back_holds_nothing_any_more() {
    let now = Instant::now();
    let mut progress = drain(&[wishing("web-0", "true", None)], held(now), now);
    progress.changed(Change::Seen(Box::new(pod("web-0", None))), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_is_changed_to_one_that_is_over_holds_nothing_any_more() {
    let now = Instant::now();
    let hour = Duration::from_hours(1);
    for before in ["true", "4h"] {
        let mut progress = drain(&[started(wishing("web-0", before, None), hour)], held(now), now);
        assert!(progress.requests(now).is_empty());
        progress.changed(Change::Seen(Box::new(started(wishing("web-0", "10m", None), hour))), now);
        assert_eq!(names(&progress.requests(now)), ["web-0"]);
    }
}

#[test]
fn a_pod_that_has_finished_wishes_nothing_any_more() {
    let now = Instant::now();
    let mut progress = drain(&[wishing("web-0", "true", None)], held(now), now);
    let mut finished = wishing("web-0", "true", None);
    finished.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
    progress.changed(Change::Seen(Box::new(finished)), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
}

#[test]
fn a_wish_that_is_made_while_a_budget_holds_the_pod_is_respected() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), hold(), now);
    progress.changed(Change::Seen(Box::new(wishing("web-0", "true", None))), now);
    assert_eq!(progress.next_due(now), None);
}

#[test]
fn a_wish_that_is_made_when_the_pod_is_leaving_comes_too_late() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.changed(Change::Seen(Box::new(wishing("web-0", "true", None))), now);
    progress.changed(gone("web-0"), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn an_ordinary_pods_wish_does_not_keep_the_critical_ones_too_long() {
    let now = Instant::now();
    let pods = [wishing("web-0", "true", None), pod("dns", Some("system-cluster-critical"))];
    let mut progress = drain(&pods, hard(now, 120), now);
    assert!(progress.requests(now).is_empty());
    let must = now + Duration::from_secs(88);
    assert_eq!(progress.next_due(now), Some(must));
    let ways: Vec<_> = progress.requests(must).into_iter().map(|request| (request.name.name, request.way)).collect();
    assert_eq!(ways, [("dns".to_owned(), Method::Evict), ("web-0".to_owned(), Method::Delete)]);
}

#[test]
fn critical_pods_start_in_time_under_a_hook_too_and_an_ordinary_ones_wish_is_still_respected() {
    let now = Instant::now();
    let pods = [wishing("web-0", "true", None), pod("dns", Some("system-cluster-critical"))];
    let mut progress = drain(&pods, held(now), now);
    let must = now + Duration::from_secs(600 - 32);
    assert_eq!(progress.next_due(now), Some(must));
    assert!(progress.requests(must - Duration::from_millis(1)).is_empty());
    let requests = progress.requests(must);
    assert_eq!((names(&requests), requests[0].way, requests[0].grace), (vec!["dns"], Method::Evict, Grace::Own));
}

#[test]
fn a_critical_pods_wish_is_passed_in_time_too() {
    let now = Instant::now();
    let pods = [pod("web-0", None), wishing("dns", "true", Some("system-cluster-critical"))];
    let mut progress = drain(&pods, hard(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    let requests = progress.requests(now + Duration::from_secs(88));
    assert_eq!((names(&requests), requests[0].way), (vec!["dns"], Method::Delete));
}
