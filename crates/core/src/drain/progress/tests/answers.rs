//! Tests: the effect of each answer of the API server.

use super::*;

/// Gives each request the answer, and asserts the least pauses between the requests; returns the time of the next request.
fn assert_pauses(progress: &mut Progress, answer: &Answer, least_ms: &[u128], mut at: Instant) -> Instant {
    for least_ms in least_ms {
        answer_all(progress, answer, at);
        let again = progress.next_due(at).unwrap();
        let after = (again - at).as_millis();
        assert!((*least_ms..least_ms * 3 / 2).contains(&after), "{answer:?}: {after} instead of {least_ms}");
        at = again;
    }
    at
}

#[test]
fn pauses_grow_with_failures_in_a_row() {
    let now = Instant::now();
    let busy = Answer::ServerError { message: "boom".to_owned(), retry_after: Some(seconds(3)) };
    for (answer, least_ms) in [
        (unanswered(), [500, 1000, 2000, 2000, 2000, 2000]),
        (throttled(Some(1)), [1000, 1000, 2000, 4000, 5000, 5000]),
        (busy, [3000, 3000, 3000, 4000, 5000, 5000]),
        (broken(), [500, 1000, 2000, 4000, 5000, 5000]),
    ] {
        let mut progress = drain(&web(), held_by_hook(now), now);
        let at = assert_pauses(&mut progress, &answer, &least_ms, now);
        answer_all(&mut progress, &blocked(), at);
        let probed = progress.next_due(at).unwrap();
        assert_pauses(&mut progress, &answer, &least_ms[..1], probed);
    }
}

#[test]
fn throttled_pods_do_not_retry_together() {
    let now = Instant::now();
    let all: Vec<_> = (0..EVICTIONS_AT_ONCE).map(|index| pod(&format!("web-{index}"), None)).collect();
    let mut progress = answered(&all, &throttled(Some(10)), held_by_hook(now), now);
    let mut retries = Vec::new();
    while let Some(again) = progress.next_due(now).filter(|again| *again < now + seconds(15)) {
        let requested = progress.requests(again).len();
        retries.extend(std::iter::repeat_n((again - now).as_secs(), requested));
    }
    let most = (10..15).map(|second| retries.iter().filter(|at| **at == second).count()).max();
    assert_eq!(retries.len(), all.len());
    assert!(most.is_some_and(|most| most < all.len() / 3), "{retries:?}");
}

#[test]
fn rejected_token_is_replaced_at_once_but_not_repeatedly() {
    let now = Instant::now();
    let mut progress = answered(&web(), &unauthorized(), held_by_hook(now), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"], "at once");
    progress.answered(&uid("web-0"), unauthorized(), now);
    assert!(progress.requests(now).is_empty());
    assert!(progress.next_due(now).unwrap() >= now + Duration::from_millis(500));
}

#[test]
fn missing_right_is_logged_once_for_each_namespace() {
    let now = Instant::now();
    let mut progress = drain(&[pod("a", None), pod("b", None), pod("c", None)], held_by_hook(now), now);
    progress.requests(now);
    for (pod, namespace) in [("a", "shop"), ("b", "shop"), ("c", "bank")] {
        let message = format!(
            "pods \"{pod}\" is forbidden: User \"spillway\" cannot create resource \"pods/eviction\" in API group \"\" in the \
             namespace \"{namespace}\""
        );
        progress.answered(&uid(pod), Answer::Forbidden { message }, now);
    }
    let transitions = progress.take_transitions();
    assert!(matches!(&transitions[..], [Transition::Forbidden(_), Transition::Forbidden(_)]), "{transitions:?}");
    assert_eq!(progress.next_due(now), Some(now + seconds(5)));
}

#[test]
fn missing_or_replaced_pod_is_not_waited_for() {
    for (answer, name) in [(Answer::Gone, "gone"), (Answer::Replaced, "replaced")] {
        let now = Instant::now();
        let progress = answered(&web(), &answer, held_by_hook(now), now);
        assert_eq!(progress.end(), Some(DrainEnd::Empty));
        assert_eq!(progress.into_pods()[&uid("web-0")].history.answers, [(name, 1)].into());
    }
}

#[test]
fn failure_of_a_blocked_pods_next_eviction_delays_no_deletion() {
    for failure in [broken(), throttled(Some(60)), unanswered()] {
        let now = Instant::now();
        let at = |count| now + seconds(count);
        let mut progress = drain(&web(), hard(now, 120), now);
        progress.requests(at(80));
        progress.answered(&uid("web-0"), blocked(), at(80));
        progress.requests(at(87));
        progress.answered(&uid("web-0"), failure, at(88));
        assert_eq!(progress.next_due(at(88)), Some(at(88)));
        assert_eq!(progress.requests(at(88))[0].method, Method::Delete);
    }
}

/// Pod whose containers have ended.
pub(super) fn finished(phase: &str) -> Pod {
    let mut pod = pod("job", None);
    pod.status.phase = Some(phase.to_owned());
    pod
}

#[test]
fn refused_finished_pod_is_retried_but_not_waited_for() {
    for phase in ["Succeeded", "Failed"] {
        let now = Instant::now();
        let mut progress = drain(&[finished(phase), pod("web-0", None)], held_by_hook(now), now);
        assert_eq!(names(&progress.requests(now)), ["job", "web-0"]);
        assert_eq!(progress.end(), None);
        progress.answered(&uid("job"), refused(), now);
        progress.answered(&uid("web-0"), Answer::Leaving, now);
        let again = progress.next_due(now).unwrap();
        assert_eq!(names(&progress.requests(again)), ["job"]);
        progress.answered(&uid("job"), refused(), again);
        assert_eq!(progress.end(), None, "web-0 is terminating");
        progress.changed(gone("web-0"), again);
        assert_eq!(progress.end(), Some(DrainEnd::Empty));
    }
}

#[test]
fn blocked_pod_that_finishes_is_retried_but_not_waited_for() {
    let now = Instant::now();
    let mut progress = answered(&[pod("job", None)], &blocked(), held_by_hook(now), now);
    assert_eq!(progress.end(), None);
    progress.changed(applied(finished("Succeeded")), now);
    assert_eq!(names(&progress.requests(now)), ["job"], "without regard to the budget");
    assert_eq!(progress.end(), None);
    progress.answered(&uid("job"), Answer::BlockedBySeveral, now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn throttled_finished_pod_is_waited_for() {
    let now = Instant::now();
    assert_eq!(answered(&[finished("Failed")], &throttled(None), held_by_hook(now), now).end(), None);
}
