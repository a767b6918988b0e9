//! Each answer of the API server has its own consequence.

use super::*;

/// How the only pod is requested to leave next, and after how long, when an answer was given at once.
fn then(answer: Answer, window: Window, now: Instant) -> (Duration, Method) {
    let mut progress = drain(&[pod("web-0", None)], window, now);
    progress.requests(now);
    progress.answered(&uid("web-0"), answer, now);
    let again = progress.next_due(now).unwrap();
    let requests = progress.requests(again);
    assert_eq!(names(&requests), ["web-0"]);
    (again - now, requests[0].method)
}

fn forbidden(pod: &str, namespace: &str) -> Answer {
    let message = format!(
        "pods \"{pod}\" is forbidden: User \"spillway\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"{namespace}\""
    );
    Answer::Forbidden { message }
}

#[test]
fn a_busy_or_broken_api_server_is_given_the_time_it_asks_for_and_up_to_half_as_much_again() {
    let now = Instant::now();
    let throttled = |retry_after| Answer::Throttled { retry_after };
    let broken = |retry_after| Answer::ServerError { message: "boom".to_owned(), retry_after };
    for (retry_after, least_ms) in [(Some(Duration::from_secs(3)), 3_000), (None, 500)] {
        for answer in [throttled(retry_after), broken(retry_after)] {
            let after = then(answer, held_by_hook(now), now).0.as_millis();
            assert!((least_ms..least_ms * 3 / 2).contains(&after), "{after}");
        }
    }
}

#[test]
fn evictions_that_are_not_answered_are_requested_again_within_a_few_seconds_however_often() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    let mut at = now;
    for least_ms in [500, 1000, 2000, 2000, 2000] {
        progress.requests(at);
        progress.answered(&uid("web-0"), Answer::Unanswered { message: "refused".to_owned() }, at);
        let again = progress.next_due(at).unwrap();
        let after = (again - at).as_millis();
        assert!((least_ms..least_ms * 3 / 2).contains(&after), "{after} in place of {least_ms}");
        at = again;
    }
}

#[test]
fn evictions_that_fail_again_and_again_are_requested_less_and_less_often_until_one_is_answered() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    let at = fails_again_and_again(&mut progress, &broken(), &[500, 1000, 2000, 4000, 5000, 5000], now);
    progress.requests(at);
    progress.answered(&uid("web-0"), blocked(), at);
    let probed = progress.next_due(at).unwrap();
    progress.requests(probed);
    progress.answered(&uid("web-0"), broken(), probed);
    assert!(progress.next_due(probed).unwrap() < probed + Duration::from_millis(750));
}

#[test]
fn an_api_server_that_is_busy_again_and_again_is_asked_later_than_the_second_that_it_asks_for() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    let busy = Answer::Throttled { retry_after: Some(Duration::from_secs(1)) };
    fails_again_and_again(&mut progress, &busy, &[1000, 1000, 2000, 4000, 5000, 5000], now);
}

fn broken() -> Answer {
    Answer::ServerError { message: "boom".to_owned(), retry_after: None }
}

/// Each request is answered like that, and the next one follows after as long at least; returns when the last is due.
fn fails_again_and_again(progress: &mut Progress, answer: &Answer, least_ms: &[u128], mut at: Instant) -> Instant {
    for least_ms in least_ms {
        progress.requests(at);
        progress.answered(&uid("web-0"), answer.clone(), at);
        let again = progress.next_due(at).unwrap();
        let after = (again - at).as_millis();
        assert!((*least_ms..least_ms * 3 / 2).contains(&after), "{after} in place of {least_ms}");
        at = again;
    }
    at
}

#[test]
fn an_api_servers_connection_has_room_for_all_evictions_that_are_under_way() {
    let now = Instant::now();
    let all: Vec<_> = (0..500).map(|index| pod(&format!("web-{index}"), None)).collect();
    let mut progress = drain(&all, held_by_hook(now), now);
    // What answers a connection takes 100 streams at least (RFC 9113, 6.5.2), and a watch, a patch and a list have theirs.
    let at_once = progress.requests(now).len();
    assert!((20..95).contains(&at_once), "{at_once}");
}

#[test]
fn pods_that_a_busy_api_server_turned_away_together_do_not_come_back_together() {
    let now = Instant::now();
    let all: Vec<_> = (0..EVICTIONS_AT_ONCE).map(|index| pod(&format!("web-{index}"), None)).collect();
    let mut progress = drain(&all, held_by_hook(now), now);
    for request in progress.requests(now) {
        let retry_after = Some(Duration::from_secs(10));
        progress.answered(&request.uid, Answer::Throttled { retry_after }, now);
    }
    let mut seconds = Vec::new();
    while let Some(again) = progress.next_due(now).filter(|again| *again < now + Duration::from_secs(15)) {
        let requested = progress.requests(again).len();
        seconds.extend(std::iter::repeat_n((again - now).as_secs(), requested));
    }
    let most = (10..15).map(|second| seconds.iter().filter(|at| **at == second).count()).max();
    assert_eq!(seconds.len(), all.len());
    assert!(most.is_some_and(|most| most < all.len() / 3), "{seconds:?}");
}

#[test]
fn a_busy_api_server_is_asked_again_before_the_pod_could_be_lost() {
    let now = Instant::now();
    let busy = Answer::Throttled { retry_after: Some(Duration::from_secs(600)) };
    assert_eq!(then(busy.clone(), hard(now, 120), now), (Duration::from_secs(88), Method::Evict));
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), busy, now);
    assert_eq!(progress.next_due(now), Some(now + Duration::from_secs(600 - 32)), "its last safe moment");
}

#[test]
fn a_token_that_is_not_accepted_is_replaced_at_once_but_not_again_and_again() {
    let now = Instant::now();
    let unauthorized = || Answer::Unauthorized { message: "401".to_owned() };
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), unauthorized(), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"], "at once");
    progress.answered(&uid("web-0"), unauthorized(), now);
    assert!(progress.requests(now).is_empty());
    assert!(progress.next_due(now).unwrap() >= now + Duration::from_millis(500));
}

#[test]
fn a_missing_right_is_logged_once_for_all_pods_of_a_namespace() {
    let now = Instant::now();
    let mut progress = drain(&[pod("a", None), pod("b", None), pod("c", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("a"), forbidden("a", "shop"), now);
    progress.answered(&uid("b"), forbidden("b", "shop"), now);
    progress.answered(&uid("c"), forbidden("c", "bank"), now);
    let transitions = progress.take_transitions();
    let [Transition::Forbidden(first), Transition::Forbidden(second)] = transitions.as_slice() else {
        panic!("{transitions:?}")
    };
    assert!(first.contains("cannot create resource \"pods/eviction\"") && first.contains("\"shop\""), "{first}");
    assert!(second.contains("\"bank\""), "{second}");
    assert_eq!(progress.next_due(now), Some(now + Duration::from_secs(5)));
    for pod in progress.into_pods().values() {
        assert!(pod.failures.as_ref().unwrap().message.contains(&pod.name.name), "the receipt names it all the same");
    }
}

#[test]
fn a_pod_that_went_or_was_replaced_is_not_waited_for() {
    for (answer, name) in [(Answer::Gone, "gone"), (Answer::Replaced, "replaced")] {
        let now = Instant::now();
        let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
        progress.requests(now);
        progress.answered(&uid("web-0"), answer, now);
        assert_eq!(progress.end(), Some(DrainEnd::Empty));
        assert_eq!(progress.into_pods()[&uid("web-0")].history.answers, [(name, 1)].into());
    }
}

#[test]
fn a_pod_of_a_namespace_that_is_being_deleted_is_deleted_in_time_too() {
    let now = Instant::now();
    assert_eq!(then(Answer::NamespaceTerminating, hard(now, 120), now), (Duration::from_secs(5), Method::Evict));
    let late = now + Duration::from_secs(86);
    let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
    progress.requests(late);
    progress.answered(&uid("web-0"), Answer::NamespaceTerminating, late);
    let forced = now + Duration::from_secs(88);
    assert_eq!(progress.next_due(late), Some(forced));
    assert_eq!(progress.requests(forced)[0].method, Method::Delete);
}

#[test]
fn a_blocked_pod_whose_next_eviction_fails_is_deleted_in_time_all_the_same() {
    let failures = [
        Answer::ServerError { message: "boom".to_owned(), retry_after: None },
        Answer::Throttled { retry_after: Some(Duration::from_secs(60)) },
        Answer::Unanswered { message: "lost".to_owned() },
    ];
    for failure in failures {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut progress = drain(&[pod("web-0", None)], hard(now, 120), now);
        progress.requests(at(80));
        progress.answered(&uid("web-0"), blocked(), at(80));
        progress.requests(at(87));
        progress.answered(&uid("web-0"), failure, at(88));
        assert_eq!(progress.next_due(at(88)), Some(at(88)));
        assert_eq!(progress.requests(at(88))[0].method, Method::Delete);
    }
}

#[test]
fn what_failed_is_logged_when_it_changes_and_not_each_time() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    let mut at = now;
    for message in ["a", "a", "b", "b", "a"] {
        progress.requests(at);
        progress.answered(&uid("web-0"), Answer::Unanswered { message: message.to_owned() }, at);
        at = progress.next_due(at).unwrap();
    }
    assert_eq!(progress.take_transitions().len(), 3);
    assert_eq!(progress.into_pods()[&uid("web-0")].history.answers, [("no-answer", 5)].into());
}

#[test]
fn an_answer_that_comes_after_the_pod_has_gone_changes_nothing_but_the_count() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.changed(gone("web-0"), now);
    progress.answered(&uid("web-0"), blocked(), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
    assert_eq!(progress.into_pods()[&uid("web-0")].history.answers, [("blocked-by-budget", 1)].into());
}

/// The pod, when its containers have ended.
fn finished(phase: &str) -> Pod {
    let mut pod = pod("job", None);
    pod.status.phase = Some(phase.to_owned());
    pod
}

#[test]
fn a_finished_pod_whose_eviction_is_refused_is_asked_as_long_as_others_leave_and_holds_no_drain() {
    let refused = || Answer::Refused { message: "the API server answered 403: a webhook says no".to_owned() };
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
        assert_eq!(progress.end(), None, "web-0 shuts down");
        progress.changed(gone("web-0"), again);
        assert_eq!(progress.end(), Some(DrainEnd::Empty));
    }
}

#[test]
fn a_pod_that_finishes_while_something_blocks_it_is_asked_once_more_and_holds_no_drain() {
    let now = Instant::now();
    let mut progress = drain(&[pod("job", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("job"), blocked(), now);
    assert_eq!(progress.end(), None);
    progress.changed(Change::Seen(Box::new(finished("Succeeded"))), now);
    assert_eq!(names(&progress.requests(now)), ["job"], "no budget is asked any more");
    assert_eq!(progress.end(), None);
    progress.answered(&uid("job"), Answer::BlockedBySeveral, now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn a_finished_pod_is_never_forced() {
    let now = Instant::now();
    let mut progress = drain(&[finished("Failed")], hard(now, 120), now);
    let mut at = now;
    while at < now + Duration::from_secs(120) {
        for request in progress.requests(at) {
            assert_eq!(request.method, Method::Evict);
            progress.answered(&request.uid, Answer::Refused { message: "no".to_owned() }, at);
        }
        at = progress.next_due(at).unwrap();
    }
}

#[test]
fn a_finished_pod_is_waited_for_while_the_api_server_is_busy() {
    let now = Instant::now();
    let mut progress = drain(&[finished("Failed")], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("job"), Answer::Throttled { retry_after: None }, now);
    assert_eq!(progress.end(), None);
}
