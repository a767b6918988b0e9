//! Tests: pods with a do-not-disrupt annotation.

use super::*;

pub(super) fn annotated(name: &str, value: &str, class: Option<&str>) -> Pod {
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
fn annotated_pod_with_a_long_grace_is_evicted_in_time() {
    let now = Instant::now();
    let mut pod = annotated("job-0", "true", None);
    pod.spec.termination_grace_period_seconds = Some(110);
    let mut progress = drain(&[pod], hard(now, 120), now);
    let last_safe_moment = now + seconds(8);
    assert_eq!(progress.next_due(now), Some(last_safe_moment), "before half of the window");
    let requests = progress.requests(last_safe_moment);
    assert_eq!((requests[0].method, requests[0].grace), (Method::Evict, Grace::Own));
}

#[test]
fn annotated_pod_behind_a_budget_is_deleted_in_time() {
    let now = Instant::now();
    let annotated = || annotated("web-0", "true", None);
    let mut progress = drain(&[annotated()], hard(now, 120), now);
    let ends = progress.next_due(now).unwrap();
    answer_all(&mut progress, &blocked(), ends);
    progress.changed(applied(annotated()), ends);
    assert!(progress.requests(ends).is_empty(), "its annotation has ended");
    let forced = now + seconds(88);
    assert!(forced >= ends + seconds(20), "its budget has time");
    assert_eq!(progress.requests(forced)[0].method, Method::Delete);
}

#[test]
fn annotation_is_respected_to_the_end_if_the_instance_may_stay() {
    let now = Instant::now();
    let mut progress = drain(&[annotated("web-0", "true", None)], open(now), now);
    assert_eq!(progress.next_due(now), None);
    assert!(progress.requests(now + seconds(600)).is_empty());
}

#[tokio::test(start_paused = true)]
async fn annotation_with_a_duration_ends_after_it() {
    let now = Instant::now();
    for (started_min, ends_min) in [(9, 1), (11, 0)] {
        let pod = started(annotated("web-0", "10m", None), Duration::from_mins(started_min));
        let mut progress = drain(&[pod], held_by_hook(now), now);
        let ends = now + Duration::from_mins(ends_min);
        assert_eq!(progress.next_due(now), Some(ends));
        assert_eq!(progress.requests(ends)[0].method, Method::Evict);
    }
}

#[tokio::test(start_paused = true)]
async fn pod_is_evicted_once_its_annotation_is_removed_or_over() {
    let (now, hour) = (Instant::now(), Duration::from_hours(1));
    let mut finished = annotated("web-0", "true", None);
    finished.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
    let over = || started(annotated("web-0", "10m", None), hour);
    for (before, after) in [("true", pod("web-0", None)), ("true", finished), ("true", over()), ("4h", over())] {
        let mut progress = drain(&[started(annotated("web-0", before, None), hour)], held_by_hook(now), now);
        assert!(progress.requests(now).is_empty());
        progress.changed(applied(after), now);
        assert_eq!(names(&progress.requests(now)), ["web-0"]);
    }
}

#[test]
fn annotation_added_to_a_blocked_pod_is_respected() {
    let now = Instant::now();
    let mut progress = answered(&web(), &blocked(), held_by_hook(now), now);
    progress.changed(applied(annotated("web-0", "true", None)), now);
    assert_eq!(progress.next_due(now), Some(now + seconds(300)), "until it ends");
}
