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

/// Its annotation ends where a critical pod would be asked.
#[test]
fn annotated_pod_is_evicted_like_any_other_once_its_annotation_ends() {
    let now = Instant::now();
    for (window, ends_s) in [(hard(now, 120), 60), (held_by_hook(now), 300)] {
        let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], window, now);
        let ends = now + Duration::from_secs(ends_s);
        assert_eq!((progress.end(), progress.next_due(now)), (None, Some(ends)));
        assert!(progress.requests(ends - Duration::from_millis(1)).is_empty());
        let requests = progress.requests(ends);
        assert_eq!((names(&requests), requests[0].method), (vec!["web-0"], Method::Evict));
        progress.answered(&uid("web-0"), Answer::Leaving, ends);
        let transitions = progress.take_transitions();
        let [Transition::Blocked(_, by), Transition::Evicted(_)] = transitions.as_slice() else {
            panic!("{transitions:?}")
        };
        assert_eq!(by.to_string(), "its annotation karpenter.sh/do-not-disrupt=true");
    }
}

#[test]
fn annotated_pod_with_a_long_grace_is_evicted_at_its_last_safe_moment() {
    let now = Instant::now();
    let mut pod = not_to_be_disrupted("job-0", "true", None);
    pod.spec.termination_grace_period_seconds = Some(110);
    let mut progress = drain(&[pod], hard(now, 120), now);
    let last_safe_moment = now + Duration::from_secs(8);
    assert_eq!(progress.next_due(now), Some(last_safe_moment), "before half of the window");
    let requests = progress.requests(last_safe_moment);
    assert_eq!((requests[0].method, requests[0].grace), (Method::Evict, Grace::Own));
}

#[test]
fn annotated_pod_behind_a_budget_is_deleted_at_its_last_safe_moment() {
    let now = Instant::now();
    let annotated = || not_to_be_disrupted("web-0", "true", None);
    let mut progress = drain(&[annotated()], hard(now, 120), now);
    let ends = progress.next_due(now).unwrap();
    progress.requests(ends);
    progress.answered(&uid("web-0"), blocked(), ends);
    progress.changed(Change::Seen(Box::new(annotated())), ends);
    assert!(progress.requests(ends).is_empty(), "its annotation has ended");
    let forced = now + Duration::from_secs(88);
    assert!(forced >= ends + Duration::from_secs(20), "its budget has time");
    assert_eq!(progress.requests(forced)[0].method, Method::Delete);
}

#[test]
fn annotated_pod_with_a_failing_eviction_is_deleted_in_time() {
    let now = Instant::now();
    let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], hard(now, 120), now);
    let mut at = now;
    loop {
        at = progress.next_due(at).unwrap();
        if progress.requests(at)[0].method == Method::Delete {
            break;
        }
        progress.answered(&uid("web-0"), Answer::Refused { message: "a webhook's no".to_owned() }, at);
    }
    assert_eq!(at, now + Duration::from_secs(88));
}

#[test]
fn instance_that_is_going_now_ends_each_annotation() {
    let now = Instant::now();
    let mut progress = drain(&[not_to_be_disrupted("web-0", "true", None)], soon(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
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
    assert_eq!(progress.next_due(now), Some(now + Duration::from_secs(300)), "until it ends");
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
    for (window, ends_s) in [(hard(now, 120), 60), (held_by_hook(now), 300)] {
        let mut progress = drain(&pods, window, now);
        assert_eq!(names(&progress.requests(now)), ["dns"]);
        progress.answered(&uid("dns"), Answer::Leaving, now);
        let ends = now + Duration::from_secs(ends_s);
        assert!(progress.requests(ends - Duration::from_millis(1)).is_empty());
        assert_eq!(names(&progress.requests(ends)), ["web-0"]);
    }
}

#[test]
fn annotated_critical_pod_is_evicted_once_its_annotation_ends() {
    let now = Instant::now();
    let pods = [pod("web-0", None), not_to_be_disrupted("dns", "true", Some("system-cluster-critical"))];
    let mut progress = drain(&pods, hard(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    let requests = progress.requests(now + Duration::from_secs(60));
    assert_eq!((names(&requests), requests[0].method), (vec!["dns"], Method::Evict));
}
