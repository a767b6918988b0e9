//! What is waited for, and what is not.

use jiff::SignedDuration;

use super::*;

pub(super) const GRACE: Duration = Duration::from_secs(30);

pub(super) fn leaving(name: &str, by: Duration, grace_s: i64) -> Pod {
    let by = BEGIN.parse::<Timestamp>().unwrap() + SignedDuration::try_from(by).unwrap();
    leaving_by(pod(name, None), by, grace_s)
}

/// The pod, if somebody deleted it so long before the drain begins.
pub(super) fn deleted(pod: Pod, ago: Duration, grace_s: i64) -> Pod {
    let since = BEGIN.parse::<Timestamp>().unwrap() - SignedDuration::try_from(ago).unwrap();
    leaving_by(pod, since + SignedDuration::from_secs(grace_s), grace_s)
}

pub(super) fn leaving_by(mut pod: Pod, by: Timestamp, grace_s: i64) -> Pod {
    pod.metadata.deletion_timestamp = serde_json::from_value(json!(by.to_string())).unwrap();
    pod.metadata.deletion_grace_period_seconds = Some(grace_s);
    pod
}

/// A drain whose pods have all accepted to leave.
pub(super) fn leaving_all(names: &[&str], window: Window, now: Instant) -> Progress {
    let pods: Vec<Pod> = names.iter().map(|name| pod(name, None)).collect();
    let mut progress = drain(&pods, window, now);
    for request in progress.requests(now) {
        progress.answered(&request.uid, Answer::Leaving, now);
    }
    progress
}

#[test]
fn a_pod_that_only_its_finalizers_keep_has_gone() {
    let now = Instant::now();
    let mut progress = leaving_all(&["web-0"], held_by_hook(now), now);
    progress.changed(Change::Seen(Box::new(leaving("web-0", GRACE, 30))), now);
    assert_eq!(progress.end(), None, "it is still shutting down");
    progress.changed(Change::Seen(Box::new(leaving("web-0", GRACE, 0))), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
    progress.changed(gone("web-0"), now);
    assert_eq!(progress.take_transitions().len(), 2, "evicted and gone, once");
}

#[test]
fn a_pod_that_only_its_finalizers_kept_before_is_not_waited_for_either() {
    let now = Instant::now();
    let progress = drain(&[leaving("web-0", GRACE, 0)], held_by_hook(now), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn a_grace_period_of_centuries_is_no_panic() {
    let now = Instant::now();
    let mut forever = pod("web-0", None);
    forever.spec.termination_grace_period_seconds = Some(i64::MAX);
    let mut progress = drain(&[forever], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    assert!(progress.next_due(now).unwrap() > now + Duration::from_hours(24));
}

#[test]
fn a_pod_that_took_the_name_of_one_that_left_is_another_pod() {
    let now = Instant::now();
    let mut progress = leaving_all(&["db-0"], held_by_hook(now), now);
    // A list says what is on this node: the new pod of that name is on another one.
    progress.changed(Change::OnlyThese(vec![]), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_given_longer_than_its_instance_has_is_requested_again_once() {
    const TEN_MINUTES: Duration = Duration::from_secs(600);
    let now = Instant::now();
    let mut longer = leaving("given-longer", TEN_MINUTES, 600);
    longer.spec.termination_grace_period_seconds = Some(600);
    let mut progress = drain(&[longer.clone(), leaving("in-time", GRACE, 30)], hard(now, 120), now);
    let requests = progress.requests(now);
    assert_eq!(names(&requests), ["given-longer"]);
    assert_eq!((requests[0].method, requests[0].grace), (Method::Evict, Grace::Clamped(Duration::from_secs(118))));
    progress.answered(&uid("given-longer"), Answer::Leaving, now);
    progress.changed(Change::Seen(Box::new(longer)), now);
    assert!(progress.requests(now).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_had_longer_than_is_left_goes_on_and_is_not_requested_again() {
    let now = Instant::now();
    let mut progress = drain(&[leaving("web-0", Duration::from_secs(300), 600)], hard(now, 120), now);
    assert!(progress.requests(now).is_empty(), "it has had 300 s: the API server would kill it at once");
    assert_eq!(progress.next_due(now), Some(now + Duration::from_secs(300 + 10)), "when it is overdue");
    assert_eq!(progress.end(), None, "it is waited for");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_a_person_gave_longer_than_it_asks_for_is_given_what_is_left() {
    let now = Instant::now();
    let hour = Duration::from_secs(3600);
    let mut progress = drain(&[leaving("web-0", hour, 3600)], hard(now, 120), now);
    let graces: Vec<Grace> = progress.requests(now).into_iter().map(|request| request.grace).collect();
    assert_eq!(graces, [Grace::Clamped(Duration::from_secs(118))], "without a number the API server does nothing");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_could_not_be_requested_again_in_time_goes_on() {
    let now = Instant::now();
    let mut progress = drain(&[leaving("web-0", Duration::from_secs(560), 600)], hard(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"], "it has had 40 s of the 118 s that are left");
    let lost = now + Duration::from_secs(40);
    progress.answered(&uid("web-0"), Answer::Unanswered { message: "lost".to_owned() }, lost);
    let again = progress.next_due(lost).unwrap();
    assert!(progress.requests(again).is_empty(), "by now it has had 80 s, and fewer are left");
    assert_eq!(progress.into_pods()[&uid("web-0")].state, PodState::Leaving { by: now + Duration::from_secs(560) });
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_seen_to_leave_is_not_requested_again_when_its_answer_is_lost() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
    progress.requests(now);
    progress.changed(Change::Seen(Box::new(leaving("web-0", GRACE, 30))), now);
    progress.answered(&uid("web-0"), Answer::Unanswered { message: "lost".to_owned() }, now);
    let again = progress.next_due(now).unwrap();
    assert!(progress.requests(again).is_empty());
    assert_eq!(progress.into_pods()[&uid("web-0")].state, PodState::Leaving { by: now + GRACE });
}

#[tokio::test(start_paused = true)]
async fn while_a_hook_holds_the_instance_no_pod_has_been_given_too_long() {
    let now = Instant::now();
    let mut progress = drain(&[leaving("web-0", Duration::from_secs(6000), 6000)], held_by_hook(now), now);
    assert!(progress.requests(now).is_empty());
}
