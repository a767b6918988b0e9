//! Tests: the wait for terminating pods.

use jiff::SignedDuration;

use super::*;

pub(super) const GRACE: Duration = Duration::from_secs(30);

/// Pod that should stop at that time after the begin of the drain, and was given that grace.
pub(super) fn leaving(name: &str, by: Duration, grace_s: i64) -> Pod {
    let by = BEGIN.parse::<Timestamp>().unwrap() + SignedDuration::try_from(by).unwrap();
    leaving_by(pod(name, None), by, grace_s)
}

/// The pod, deleted at that time before the begin of the drain.
pub(super) fn deleted(pod: Pod, ago: Duration, grace_s: i64) -> Pod {
    let since = BEGIN.parse::<Timestamp>().unwrap() - SignedDuration::try_from(ago).unwrap();
    leaving_by(pod, since + SignedDuration::from_secs(grace_s), grace_s)
}

fn leaving_by(mut pod: Pod, by: Timestamp, grace_s: i64) -> Pod {
    pod.metadata.deletion_timestamp = serde_json::from_value(json!(by.to_string())).unwrap();
    pod.metadata.deletion_grace_period_seconds = Some(grace_s);
    pod
}

/// Drain whose pods have all accepted to leave.
pub(super) fn leaving_all(names: &[&str], window: Window, now: Instant) -> Progress {
    let pods: Vec<Pod> = names.iter().map(|name| pod(name, None)).collect();
    answered(&pods, &Answer::Leaving, window, now)
}

#[test]
fn pod_with_only_finalizers_left_is_gone() {
    let now = Instant::now();
    let mut progress = leaving_all(&["web-0"], held_by_hook(now), now);
    progress.changed(applied(leaving("web-0", GRACE, 30)), now);
    assert_eq!(progress.end(), None, "still terminating");
    progress.changed(applied(leaving("web-0", GRACE, 0)), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
    progress.changed(gone("web-0"), now);
    assert_eq!(progress.take_transitions().len(), 2, "evicted and gone, once");
    let from_the_begin = drain(&[leaving("web-0", GRACE, 0)], held_by_hook(now), now);
    assert_eq!(from_the_begin.end(), Some(DrainEnd::Empty));
}

#[test]
fn grace_period_of_centuries_does_not_panic() {
    let now = Instant::now();
    let mut forever = pod("web-0", None);
    forever.spec.termination_grace_period_seconds = Some(i64::MAX);
    let progress = answered(&[forever], &Answer::Leaving, held_by_hook(now), now);
    assert!(progress.next_due(now).unwrap() > now + Duration::from_hours(24));
}

/// Without a number the API server would keep the longer grace.
#[tokio::test(start_paused = true)]
async fn pod_with_too_long_a_grace_is_requested_again_once() {
    let now = Instant::now();
    for (own_s, given_s) in [(600, 600), (30, 3600)] {
        let mut longer = leaving("longer", seconds(given_s), i64::try_from(given_s).unwrap());
        longer.spec.termination_grace_period_seconds = Some(own_s);
        let mut progress = drain(&[longer.clone(), leaving("in-time", GRACE, 30)], hard(now, 120), now);
        let requests = progress.requests(now);
        assert_eq!(names(&requests), ["longer"]);
        assert_eq!((requests[0].method, requests[0].grace), (Method::Evict, Grace::Clamped(seconds(118))));
        progress.answered(&uid("longer"), Answer::Leaving, now);
        progress.changed(applied(longer), now);
        assert!(progress.requests(now).is_empty());
    }
}

/// After 300 s of its grace the API server would kill the pod at once; while a hook holds the instance no grace is too long.
#[tokio::test(start_paused = true)]
async fn terminating_pod_is_waited_for_without_another_request() {
    let now = Instant::now();
    for (by, grace_s, window) in [(seconds(300), 600, hard(now, 120)), (seconds(6000), 6000, held_by_hook(now))] {
        let mut progress = drain(&[leaving("web-0", by, grace_s)], window, now);
        assert!(progress.requests(now).is_empty());
        assert_eq!((progress.end(), progress.next_due(now)), (None, Some(now + by + seconds(10))), "until overdue");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_request_is_not_repeated_if_the_grace_would_be_over() {
    let now = Instant::now();
    let mut progress = drain(&[leaving("web-0", seconds(560), 600)], hard(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"], "40 s are over of the 118 s that are left");
    let lost = now + seconds(40);
    progress.answered(&uid("web-0"), unanswered(), lost);
    let again = progress.next_due(lost).unwrap();
    assert!(progress.requests(again).is_empty(), "80 s are over, and fewer are left");
    assert_eq!(progress.into_pods()[&uid("web-0")].state, PodState::Leaving { by: now + seconds(560) });
}

#[tokio::test(start_paused = true)]
async fn terminating_pod_is_not_requested_again_after_a_lost_answer() {
    let now = Instant::now();
    let mut progress = drain(&web(), hard(now, 120), now);
    progress.requests(now);
    progress.changed(applied(leaving("web-0", GRACE, 30)), now);
    progress.answered(&uid("web-0"), unanswered(), now);
    let again = progress.next_due(now).unwrap();
    assert!(progress.requests(again).is_empty());
    assert_eq!(progress.into_pods()[&uid("web-0")].state, PodState::Leaving { by: now + GRACE });
}
