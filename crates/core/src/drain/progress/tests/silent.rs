//! What a node that has stopped answering changes.

use super::waiting::{GRACE, deleted, leaving, leaving_all};
use super::*;

#[test]
fn the_node_is_watched_when_a_pod_is_overdue_and_nothing_asks_again() {
    let now = Instant::now();
    let mut progress = leaving_all(&["web-0"], held_by_hook(now), now);
    let overdue = now + GRACE + Duration::from_secs(10);
    assert_eq!(progress.next_due(now), Some(overdue));
    assert!(!progress.is_node_watch_due(overdue - Duration::from_millis(1)));
    assert!(progress.is_node_watch_due(overdue));
    progress.node_watch_begins();
    assert!(!progress.is_node_watch_due(overdue), "it is watched once");
    progress.kubelet_seen(Kubelet::Answers, overdue);
    assert_eq!(progress.end(), None, "a kubelet that answers is waited for");
    assert_eq!(progress.next_due(overdue), Some(now + GRACE + Duration::from_mins(5)));
}

#[test]
fn a_pod_that_is_stuck_on_a_node_that_answers_is_waited_for_for_some_minutes() {
    let now = Instant::now();
    for window in [held_by_hook(now), hard(now, 900)] {
        let mut progress = leaving_all(&["a", "b"], window, now);
        progress.changed(gone("a"), now);
        progress.node_watch_begins();
        progress.kubelet_seen(Kubelet::Answers, now);
        let stuck = now + GRACE + Duration::from_mins(5);
        progress.requests(stuck - Duration::from_secs(1));
        assert_eq!(progress.end(), None);
        progress.requests(stuck);
        assert_eq!(progress.end(), Some(DrainEnd::Stuck));
    }
}

#[test]
fn a_pod_that_has_been_stuck_for_days_is_not_waited_for_once_its_node_has_answered() {
    let now = Instant::now();
    let mut progress = drain(&[deleted(pod("web-0", None), Duration::from_hours(72), 30)], hard(now, 120), now);
    assert!(progress.is_node_watch_due(now));
    progress.node_watch_begins();
    progress.requests(now);
    assert_eq!((progress.end(), progress.next_due(now)), (None, None), "nobody knows yet whether its node answers");
    progress.kubelet_seen(Kubelet::Answers, now);
    assert_eq!(progress.end(), Some(DrainEnd::Stuck));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_leaving_already_is_overdue_by_its_own_time() {
    let now = Instant::now();
    let progress = drain(&[leaving("web-0", Duration::from_secs(5), 30)], held_by_hook(now), now);
    let overdue = now + Duration::from_secs(5 + 10);
    assert_eq!(progress.next_due(now), Some(overdue));
    assert!(progress.is_node_watch_due(overdue));
}

#[test]
fn a_pod_that_goes_in_time_costs_no_watch_of_its_node() {
    let now = Instant::now();
    let mut progress = leaving_all(&["web-0"], held_by_hook(now), now);
    progress.changed(gone("web-0"), now);
    assert!(!progress.is_node_watch_due(now + Duration::from_secs(600)));
}

#[test]
fn on_a_silent_node_a_pod_is_waited_for_until_its_grace_is_over_and_no_longer() {
    let now = Instant::now();
    let mut long = pod("long", None);
    long.spec.termination_grace_period_seconds = Some(300);
    let mut progress = drain(&[pod("short", None), long], held_by_hook(now), now);
    for request in progress.requests(now) {
        progress.answered(&request.uid, Answer::Leaving, now);
    }
    let overdue = now + GRACE + Duration::from_secs(10);
    progress.node_watch_begins();
    progress.kubelet_seen(Kubelet::Silent, overdue);
    assert_eq!(progress.end(), None, "its kubelet may only be cut off, and gives it all of its grace");
    let over = now + Duration::from_secs(300);
    assert_eq!(progress.next_due(overdue), Some(over));
    progress.requests(over);
    assert_eq!(progress.end(), Some(DrainEnd::Silent));
    let states = progress.into_pods().into_values().map(|pod| pod.state).collect::<Vec<_>>();
    assert_eq!(states, [PodState::Unconfirmed(Unconfirmed::Silent), PodState::Unconfirmed(Unconfirmed::Silent)]);
}

#[test]
fn what_has_not_left_a_silent_node_is_still_evicted() {
    let now = Instant::now();
    let pods = [pod("dns", Some("system-cluster-critical")), pod("web-0", None)];
    let mut progress = drain(&pods, held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    let overdue = now + GRACE;
    progress.kubelet_seen(Kubelet::Silent, overdue);
    assert_eq!(names(&progress.requests(overdue)), ["dns"], "its turn has come");
    progress.answered(&uid("dns"), Answer::Leaving, overdue);
    assert_eq!(progress.next_due(overdue), Some(overdue + GRACE));
}

#[test]
fn a_pod_whose_end_is_reported_after_all_has_gone() {
    let now = Instant::now();
    let mut progress = leaving_all(&["a", "b"], held_by_hook(now), now);
    progress.kubelet_seen(Kubelet::Silent, now + GRACE);
    progress.changed(gone("a"), now + GRACE);
    progress.changed(gone("b"), now + GRACE);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn while_the_kubelet_of_an_instance_that_is_going_answers_what_blocks_a_pod_is_respected_for_a_time() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], soon(now, 120), now);
    let mut at = now;
    let forced = loop {
        let request = progress.requests(at).remove(0);
        if request.method == Method::Delete {
            break request;
        }
        progress.answered(&uid("web-0"), blocked(), at);
        assert!(progress.is_node_watch_due(at) || at > now, "whether the instance has gone decides");
        progress.node_watch_begins();
        at = progress.next_due(at).unwrap();
    };
    assert_eq!((at, forced.grace), (now + Duration::from_secs(120), Grace::Own));
}

#[test]
fn when_the_kubelet_of_an_instance_that_is_going_is_silent_what_is_blocked_is_deleted_and_nothing_waited_for() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None), pod("web-1", None)], soon(now, 120), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), blocked(), now);
    progress.answered(&uid("web-1"), Answer::Leaving, now);
    let silent = now + Duration::from_secs(1);
    progress.kubelet_seen(Kubelet::Silent, silent);
    let requests = progress.requests(silent);
    assert_eq!(names(&requests), ["web-0"]);
    assert_eq!((requests[0].method, requests[0].grace), (Method::Delete, Grace::Own));
    progress.answered(&uid("web-0"), Answer::Leaving, silent);
    progress.requests(silent);
    assert_eq!(progress.end(), Some(DrainEnd::Silent));
}

#[test]
fn of_a_dead_node_what_is_blocked_is_deleted_with_its_own_grace_and_its_hook_ends() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    assert!(!progress.is_node_watch_due(now));
    progress.requests(now);
    progress.answered(&uid("web-0"), blocked(), now);
    assert!(progress.is_node_watch_due(now), "whether the pod still runs decides");
    progress.node_watch_begins();
    progress.kubelet_seen(Kubelet::Silent, now);
    assert!(progress.requests(now).is_empty(), "its kubelet may only be cut off");
    let dead = now + Duration::from_secs(60);
    progress.kubelet_seen(Kubelet::Dead, dead);
    let requests = progress.requests(dead);
    assert_eq!((requests[0].method, requests[0].grace), (Method::Delete, Grace::Own));
    progress.answered(&uid("web-0"), Answer::Leaving, dead);
    progress.requests(dead);
    assert_eq!(progress.end(), None, "it gets all of its grace");
    progress.requests(dead + GRACE);
    assert_eq!(progress.end(), Some(DrainEnd::Silent));
}

/// The garbage collector removes a pod: a watch sees what it sets, that it takes the grace away, and that the object goes.
fn collect(progress: &mut Progress, name: &str, now: Instant) {
    let orphan = |mut pod: Pod| {
        (pod.status.phase, pod.status.conditions.is_collected) = (Some("Failed".to_owned()), true);
        Box::new(pod)
    };
    progress.changed(Change::Seen(orphan(pod(name, None))), now);
    progress.changed(Change::Seen(orphan(leaving(name, Duration::ZERO, 0))), now);
    progress.changed(Change::Gone(orphan(leaving(name, Duration::ZERO, 0))), now);
}

#[test]
fn a_pod_that_the_garbage_collector_removes_has_its_grace_and_is_not_called_gone() {
    let now = Instant::now();
    let mut progress = leaving_all(&["a", "b"], held_by_hook(now), now);
    let removed = now + Duration::from_secs(20);
    progress.changed(gone("b"), removed);
    collect(&mut progress, "a", removed);
    assert!(progress.is_node_watch_due(removed), "whether the node is no more");
    progress.node_watch_begins();
    progress.kubelet_seen(Kubelet::Silent, removed);
    progress.requests(removed);
    assert_eq!(progress.end(), None, "its containers may use their grace");
    let over = now + GRACE;
    assert_eq!(progress.next_due(removed), Some(over));
    progress.requests(over);
    assert_eq!(progress.end(), Some(DrainEnd::Silent));
    let states: Vec<PodState> = progress.into_pods().into_values().map(|pod| pod.state).collect();
    assert_eq!(states, [PodState::Unconfirmed(Unconfirmed::Silent), PodState::Gone { at: removed }]);
}

/// Whoever may patch the status of pods in a namespace can set the condition.
#[test]
fn condition_of_one_pod_does_not_speak_for_a_node_that_answers() {
    let now = Instant::now();
    let mut progress = drain(&[pod("a", None), pod("b", None)], held_by_hook(now), now);
    let mut forged = pod("a", None);
    forged.status.conditions.is_collected = true;
    progress.changed(Change::Seen(Box::new(forged.clone())), now);
    let request = progress.requests(now).remove(0);
    progress.answered(&request.uid, Answer::Leaving, now);
    progress.node_watch_begins();
    progress.kubelet_seen(Kubelet::Answers, now);
    assert_eq!(names(&progress.requests(now)), ["a"], "it has yet to leave");
    progress.answered(&uid("a"), Answer::Leaving, now);
    progress.changed(Change::Gone(Box::new(forged)), now);
    let states: Vec<PodState> = progress.into_pods().into_values().map(|pod| pod.state).collect();
    assert_eq!(states, [PodState::Gone { at: now }, PodState::Leaving { by: now + GRACE }]);
}

#[test]
fn a_pod_that_the_garbage_collector_removes_is_not_called_lost_if_the_drain_stops_before_its_grace_is_over() {
    let now = Instant::now();
    let mut progress = leaving_all(&["a"], held_by_hook(now), now);
    collect(&mut progress, "a", now);
    progress.kubelet_seen(Kubelet::Silent, now);
    let states: Vec<PodState> = progress.into_pods().into_values().map(|pod| pod.state).collect();
    assert_eq!(states, [PodState::Unconfirmed(Unconfirmed::Silent)]);
}

#[test]
fn a_blocked_pod_that_the_garbage_collector_removes_begins_its_grace_then() {
    let now = Instant::now();
    let mut progress = drain(&[pod("a", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("a"), blocked(), now);
    let removed = now + Duration::from_secs(70);
    collect(&mut progress, "a", removed);
    progress.kubelet_seen(Kubelet::Silent, removed);
    assert!(progress.requests(removed).is_empty(), "there is nothing to ask for any more");
    assert_eq!((progress.end(), progress.next_due(removed)), (None, Some(removed + GRACE)));
}

#[test]
fn a_pod_that_the_garbage_collector_removes_is_not_called_lost_if_its_grace_outlasts_the_window() {
    let now = Instant::now();
    let mut progress = drain(&[deleted(pod("a", None), GRACE, 3600)], held_by_hook(now), now);
    collect(&mut progress, "a", now + GRACE);
    progress.kubelet_seen(Kubelet::Silent, now + GRACE);
    let due = progress.next_due(now + GRACE).unwrap();
    assert_eq!(due, now + Duration::from_secs(600) - MARGIN);
    progress.requests(due);
    assert_eq!(progress.end(), Some(DrainEnd::Silent));
}

#[test]
fn what_blocks_a_pod_is_respected_again_when_its_node_comes_back() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), blocked(), now);
    progress.kubelet_seen(Kubelet::Dead, now);
    progress.kubelet_seen(Kubelet::Answers, now);
    assert!(progress.requests(now).is_empty());
}

#[test]
fn what_leaves_an_instance_that_is_going_is_waited_for_while_its_node_answers() {
    let now = Instant::now();
    let mut progress = leaving_all(&["a"], soon(now, 120), now);
    progress.node_watch_begins();
    progress.kubelet_seen(Kubelet::Answers, now);
    assert_eq!(progress.end(), None);
}
