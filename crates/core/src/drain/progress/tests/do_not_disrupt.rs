//! Pods that say that they are not to be disrupted: left alone as long as that can be.

use super::*;

fn not_to_be_disrupted(name: &str, value: &str, class: Option<&str>) -> Pod {
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
fn a_pod_that_says_so_is_not_requested_to_leave_before_its_last_safe_moment() {
    let now = Instant::now();
    let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], hard(now, 120), now);
    assert!(progress.requests(now).is_empty());
    assert_eq!(progress.end(), None);
    let last_safe_moment = now + Duration::from_secs(88);
    assert_eq!(progress.next_due(now), Some(last_safe_moment));
    let requests = progress.requests(last_safe_moment);
    assert_eq!((names(&requests), requests[0].method), (vec!["web-0"], Method::EvictAnyway));
    progress.answered(&uid("web-0"), Answer::Leaving, last_safe_moment);
    let transitions = progress.take_transitions();
    let [Transition::Blocked(_, by), Transition::Forced(_, forced)] = transitions.as_slice() else {
        panic!("{transitions:?}")
    };
    assert_eq!(by, forced);
    assert_eq!(by.to_string(), "its annotation karpenter.sh/do-not-disrupt=true");
}

/// What a budget says of it nobody has asked before.
#[test]
fn its_last_eviction_is_followed_by_a_deletion_if_that_is_refused_or_not_answered_soon() {
    let failed = |message: &str| message.to_owned();
    for answer in [
        blocked(),
        Answer::BlockedBySeveral,
        Answer::Throttled { retry_after: Some(Duration::from_secs(30)) },
        Answer::ServerError { message: failed("500"), retry_after: None },
        Answer::Refused { message: failed("a webhook's no") },
        Answer::GivenUp { message: failed("nothing came") },
    ] {
        let now = Instant::now();
        let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], hard(now, 120), now);
        let last_safe_moment = now + Duration::from_secs(88);
        let requests = progress.requests(last_safe_moment);
        assert_eq!(requests[0].patience, Some(Duration::from_secs(2)));
        progress.answered(&uid("web-0"), answer.clone(), last_safe_moment);
        let requests = progress.requests(last_safe_moment);
        assert_eq!((names(&requests), requests[0].method), (vec!["web-0"], Method::Delete), "{answer:?}");
    }
}

#[test]
fn while_a_hook_holds_the_instance_the_annotation_is_respected_until_the_pod_has_to_leave() {
    let now = Instant::now();
    let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], held_by_hook(now), now);
    let last_safe_moment = now + Duration::from_secs(600 - 32);
    assert_eq!(progress.next_due(now), Some(last_safe_moment));
    assert!(progress.requests(last_safe_moment - Duration::from_millis(1)).is_empty());
    assert_eq!(progress.requests(last_safe_moment)[0].method, Method::EvictAnyway);
}

#[test]
fn while_nobody_says_that_the_instance_goes_the_annotation_is_respected_to_the_end() {
    let now = Instant::now();
    let window = Window { instance_goes: Termination::Unknown, ..held_by_hook(now) };
    let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], window, now);
    assert_eq!(progress.next_due(now), None);
    assert!(progress.requests(now + Duration::from_secs(600)).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_annotation_with_a_time_ends_with_it_and_the_pod_is_evicted() {
    let now = Instant::now();
    let pod = started(not_to_be_disrupted("web-0", "10m", None), Duration::from_mins(9));
    let mut progress = drain(&[pod], held_by_hook(now), now);
    assert!(progress.requests(now).is_empty());
    let ends = now + Duration::from_mins(1);
    assert_eq!(progress.next_due(now), Some(ends));
    assert_eq!(progress.requests(ends)[0].method, Method::Evict);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_with_a_time_that_is_over_blocks_nothing() {
    let now = Instant::now();
    let pod = started(not_to_be_disrupted("web-0", "10m", None), Duration::from_mins(11));
    let mut progress = drain(&[pod], held_by_hook(now), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
}

#[test]
fn an_annotation_that_is_taken_off_blocks_nothing_any_more() {
    let now = Instant::now();
    let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], held_by_hook(now), now);
    progress.changed(Change::Seen(Box::new(pod("web-0", None))), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_that_is_changed_to_one_that_is_over_blocks_nothing_any_more() {
    let now = Instant::now();
    let hour = Duration::from_hours(1);
    for before in ["true", "4h"] {
        let mut progress = drain(&[started(not_to_be_disrupted("web-0", before, None), hour)], held_by_hook(now), now);
        assert!(progress.requests(now).is_empty());
        progress.changed(Change::Seen(Box::new(started(not_to_be_disrupted("web-0", "10m", None), hour))), now);
        assert_eq!(names(&progress.requests(now)), ["web-0"]);
    }
}

#[test]
fn a_pod_that_has_finished_may_be_disrupted() {
    let now = Instant::now();
    let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], held_by_hook(now), now);
    let mut finished = not_to_be_disrupted("web-0", "true", None);
    finished.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
    progress.changed(Change::Seen(Box::new(finished)), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
}

#[test]
fn an_annotation_that_is_put_on_while_a_budget_blocks_the_pod_is_respected() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), blocked(), now);
    progress.changed(Change::Seen(Box::new(not_to_be_disrupted("web-0", "true", None))), now);
    assert_eq!(progress.next_due(now), Some(now + Duration::from_secs(600 - 32)), "its last safe moment");
}

#[test]
fn an_annotation_that_is_put_on_when_the_pod_is_leaving_comes_too_late() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.changed(Change::Seen(Box::new(not_to_be_disrupted("web-0", "true", None))), now);
    progress.changed(gone("web-0"), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn an_ordinary_pods_annotation_does_not_keep_the_critical_ones() {
    let now = Instant::now();
    let pods = [not_to_be_disrupted("web-0", "true", None), pod("dns", Some("system-cluster-critical"))];
    for (window, forced_s) in [(hard(now, 120), 88), (held_by_hook(now), 568)] {
        let mut progress = drain(&pods, window, now);
        assert_eq!(names(&progress.requests(now)), ["dns"]);
        progress.answered(&uid("dns"), Answer::Leaving, now);
        let forced = now + Duration::from_secs(forced_s);
        assert!(progress.requests(forced - Duration::from_millis(1)).is_empty());
        let requests = progress.requests(forced);
        assert_eq!((names(&requests), requests[0].method), (vec!["web-0"], Method::EvictAnyway));
    }
}

#[test]
fn a_critical_pod_is_deleted_in_time_too_whatever_its_annotation_says() {
    let now = Instant::now();
    let pods = [pod("web-0", None), not_to_be_disrupted("dns", "true", Some("system-cluster-critical"))];
    let mut progress = drain(&pods, hard(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    let requests = progress.requests(now + Duration::from_secs(88));
    assert_eq!((names(&requests), requests[0].method), (vec!["dns"], Method::EvictAnyway));
}
