//! Tests: a node that has stopped answering.

use super::waiting::{GRACE, deleted, leaving, leaving_all};
use super::*;

/// Drain with a watch that has observed the kubelet.
fn watched(mut progress: Progress, kubelet: Kubelet, at: Instant) -> Progress {
    progress.node_watch_started();
    progress.kubelet_observed(kubelet, at);
    progress
}

fn states(progress: Progress) -> Vec<PodState> {
    progress.into_pods().into_values().map(|pod| pod.state).collect()
}

const SILENT: PodState = PodState::Unconfirmed(Unconfirmed::Silent);

#[test]
fn node_is_watched_once_if_a_pod_is_overdue() {
    let now = Instant::now();
    let progress = leaving_all(&["web-0"], held_by_hook(now), now);
    let overdue = now + GRACE + seconds(10);
    assert_eq!(progress.next_due(now), Some(overdue));
    assert!(!progress.is_node_watch_due(overdue - Duration::from_millis(1)));
    assert!(progress.is_node_watch_due(overdue));
    let progress = watched(progress, Kubelet::Answers, overdue);
    assert!(!progress.is_node_watch_due(overdue), "watched already");
    assert_eq!(progress.end(), None, "an answering kubelet is waited for");
    assert_eq!(progress.next_due(overdue), Some(now + GRACE + Duration::from_mins(5)));
}

#[test]
fn stuck_pod_on_an_answering_node_is_given_up_after_minutes() {
    let now = Instant::now();
    for window in [held_by_hook(now), hard(now, 900)] {
        let mut progress = watched(leaving_all(&["a", "b"], window, now), Kubelet::Answers, now);
        progress.changed(gone("a"), now);
        let stuck = now + GRACE + Duration::from_mins(5);
        progress.requests(stuck - seconds(1));
        assert_eq!(progress.end(), None);
        progress.requests(stuck);
        assert_eq!(progress.end(), Some(DrainEnd::Stuck));
    }
}

#[test]
fn pod_stuck_for_days_is_given_up_once_its_node_answers() {
    let now = Instant::now();
    let mut progress = drain(&[deleted(pod("web-0", None), Duration::from_hours(72), 30)], hard(now, 120), now);
    assert!(progress.is_node_watch_due(now));
    progress.node_watch_started();
    progress.requests(now);
    assert_eq!((progress.end(), progress.next_due(now)), (None, None), "the kubelet's state is unknown");
    progress.kubelet_observed(Kubelet::Answers, now);
    assert_eq!(progress.end(), Some(DrainEnd::Stuck));
}

#[test]
fn node_is_not_watched_for_a_pod_that_is_gone_in_time() {
    let now = Instant::now();
    let mut progress = leaving_all(&["web-0"], held_by_hook(now), now);
    progress.changed(gone("web-0"), now);
    assert!(!progress.is_node_watch_due(now + seconds(600)));
}

#[test]
fn pods_of_a_silent_node_keep_their_grace() {
    let now = Instant::now();
    let mut long = pod("long", None);
    long.spec.termination_grace_period_seconds = Some(300);
    let progress = answered(&[pod("short", None), long], &Answer::Leaving, held_by_hook(now), now);
    let overdue = now + GRACE + seconds(10);
    let mut progress = watched(progress, Kubelet::Silent, overdue);
    assert_eq!(progress.end(), None, "a kubelet that is only cut off gives each pod its grace");
    let over = now + seconds(300);
    assert_eq!(progress.next_due(overdue), Some(over));
    progress.requests(over);
    assert_eq!(progress.end(), Some(DrainEnd::Silent));
    assert_eq!(states(progress), [SILENT, SILENT]);
}

#[test]
fn remaining_pods_of_a_silent_node_are_evicted() {
    let now = Instant::now();
    let pods = [pod("dns", Some("system-cluster-critical")), pod("web-0", None)];
    let mut progress = answered(&pods, &Answer::Leaving, held_by_hook(now), now);
    let overdue = now + GRACE;
    progress.kubelet_observed(Kubelet::Silent, overdue);
    assert_eq!(names(&progress.requests(overdue)), ["dns"], "the tier of critical pods");
    progress.answered(&uid("dns"), Answer::Leaving, overdue);
    assert_eq!(progress.next_due(overdue), Some(overdue + GRACE));
}

#[test]
fn late_report_confirms_the_end_of_a_pod() {
    let now = Instant::now();
    let mut progress = leaving_all(&["a", "b"], held_by_hook(now), now);
    progress.kubelet_observed(Kubelet::Silent, now + GRACE);
    progress.changed(gone("a"), now + GRACE);
    progress.changed(gone("b"), now + GRACE);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn dead_node_forces_blocked_pods_with_their_own_grace() {
    let now = Instant::now();
    assert!(!drain(&web(), held_by_hook(now), now).is_node_watch_due(now));
    let progress = answered(&web(), &blocked(), held_by_hook(now), now);
    assert!(progress.is_node_watch_due(now), "the pod may no longer run");
    let mut progress = watched(progress, Kubelet::Silent, now);
    assert!(progress.requests(now).is_empty(), "the kubelet may only be cut off");
    let dead = now + seconds(60);
    progress.kubelet_observed(Kubelet::Dead, dead);
    let requests = progress.requests(dead);
    assert_eq!((requests[0].method, requests[0].grace), (Method::Delete, Grace::Own));
    progress.answered(&uid("web-0"), Answer::Leaving, dead);
    progress.requests(dead);
    assert_eq!(progress.end(), None, "the pod gets its grace");
    progress.requests(dead + GRACE);
    assert_eq!(progress.end(), Some(DrainEnd::Silent));
}

#[test]
fn blocker_is_respected_again_once_its_node_answers() {
    let now = Instant::now();
    let mut progress = answered(&web(), &blocked(), held_by_hook(now), now);
    progress.kubelet_observed(Kubelet::Dead, now);
    progress.kubelet_observed(Kubelet::Answers, now);
    assert!(progress.requests(now).is_empty());
}

fn orphan(mut pod: Pod) -> Box<Pod> {
    (pod.status.phase, pod.status.conditions.is_collected) = (Some("Failed".to_owned()), true);
    Box::new(pod)
}

/// The garbage collector removes the pod: it sets the condition, deletes with a grace of zero, and the object goes.
fn collect(progress: &mut Progress, name: &str, now: Instant) {
    progress.changed(Change::Applied(orphan(pod(name, None))), now);
    progress.changed(Change::Applied(orphan(leaving(name, Duration::ZERO, 0))), now);
    progress.changed(Change::Deleted(orphan(leaving(name, Duration::ZERO, 0))), now);
}

#[test]
fn collected_pod_keeps_its_grace_and_is_unconfirmed() {
    let now = Instant::now();
    let mut progress = leaving_all(&["a", "b"], held_by_hook(now), now);
    let removed = now + seconds(20);
    progress.changed(gone("b"), removed);
    collect(&mut progress, "a", removed);
    assert!(progress.is_node_watch_due(removed), "the node may be deleted");
    let mut progress = watched(progress, Kubelet::Silent, removed);
    progress.requests(removed);
    assert_eq!(progress.end(), None, "its containers may use their grace");
    let over = now + GRACE;
    assert_eq!(progress.next_due(removed), Some(over));
    progress.requests(over);
    assert_eq!(progress.end(), Some(DrainEnd::Silent));
    assert_eq!(states(progress), [SILENT, PodState::Gone { at: removed }]);
}

/// A tenant that may patch the status of a pod can set the condition.
#[test]
fn forged_condition_does_not_count_on_an_answering_node() {
    let now = Instant::now();
    let mut progress = drain(&[pod("a", None), pod("b", None)], held_by_hook(now), now);
    let mut forged = pod("a", None);
    forged.status.conditions.is_collected = true;
    progress.changed(applied(forged.clone()), now);
    let request = progress.requests(now).remove(0);
    progress.answered(&request.uid, Answer::Leaving, now);
    let mut progress = watched(progress, Kubelet::Answers, now);
    assert_eq!(names(&progress.requests(now)), ["a"], "still has to leave");
    progress.answered(&uid("a"), Answer::Leaving, now);
    progress.changed(Change::Deleted(Box::new(forged)), now);
    assert_eq!(states(progress), [PodState::Gone { at: now }, PodState::Leaving { by: now + GRACE }]);
}

#[test]
fn collected_blocked_pod_begins_its_grace() {
    let now = Instant::now();
    let mut progress = answered(&[pod("a", None)], &blocked(), held_by_hook(now), now);
    let removed = now + seconds(70);
    collect(&mut progress, "a", removed);
    progress.kubelet_observed(Kubelet::Silent, removed);
    assert!(progress.requests(removed).is_empty(), "nothing left to request");
    assert_eq!((progress.end(), progress.next_due(removed)), (None, Some(removed + GRACE)));
}
