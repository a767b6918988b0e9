//! What another drain of the node, or a person, does to its pods meanwhile.

use super::waiting::leaving;
use super::*;
use crate::drain::pod::RequestedBy;

const MINUTE: Duration = Duration::from_secs(60);

fn seen(progress: &mut Progress, grace_s: i64, now: Instant) {
    progress.changed(Change::Seen(Box::new(leaving("web-0", MINUTE, grace_s))), now);
}

/// What is known of the pod at the end: the grace that it was given, if less, and whose request it followed.
fn at_the_end(mut progress: Progress, now: Instant) -> (Option<Duration>, Option<RequestedBy>) {
    // Its kubelet deletes it with a grace of zero.
    seen(&mut progress, 0, now);
    progress.changed(gone("web-0"), now);
    let pod = &progress.into_pods()[&uid("web-0")];
    assert_eq!(pod.state, PodState::Gone { at: now });
    (pod.given_less(), pod.history.followed)
}

#[test]
fn a_pod_that_gets_the_grace_of_our_request_followed_us() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    seen(&mut progress, 30, now);
    assert_eq!(at_the_end(progress, now), (None, Some(RequestedBy::ThisDrain)));
}

#[test]
fn a_grace_that_another_cut_short_is_known_and_whose_doing_it_was() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    seen(&mut progress, 30, now);
    seen(&mut progress, 8, now);
    assert_eq!(at_the_end(progress, now), (Some(Duration::from_secs(8)), Some(RequestedBy::Another)));
}

#[test]
fn a_blocked_pod_that_leaves_followed_another() {
    let now = Instant::now();
    for (grace_s, given_less) in [(30, None), (8, Some(Duration::from_secs(8)))] {
        let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
        progress.requests(now);
        progress.answered(&uid("web-0"), blocked(), now);
        seen(&mut progress, grace_s, now);
        assert_eq!(at_the_end(progress, now), (given_less, Some(RequestedBy::Another)));
    }
}

#[test]
fn a_grace_that_was_refused_was_not_given_and_one_that_nobody_answered_may_have_been() {
    let now = Instant::now();
    let unanswered = || Answer::Unanswered { message: "the connection broke".to_owned() };
    let clamped = Some(Duration::from_secs(18));
    for (answer, given_less) in
        [(blocked(), None), (Answer::Gone, None), (unanswered(), clamped), (Answer::Leaving, clamped)]
    {
        let mut progress = drain(&[pod("web-0", None)], hard(now, 20), now);
        assert_eq!(progress.requests(now)[0].grace, Grace::Clamped(Duration::from_secs(18)));
        progress.answered(&uid("web-0"), answer.clone(), now);
        progress.changed(gone("web-0"), now);
        assert_eq!(progress.into_pods()[&uid("web-0")].given_less(), given_less, "{answer:?}");
    }
}

#[test]
fn a_pod_that_was_leaving_already_followed_nobody_that_is_known() {
    let now = Instant::now();
    let progress = drain(&[leaving("web-0", MINUTE, 8)], held_by_hook(now), now);
    assert_eq!(at_the_end(progress, now), (Some(Duration::from_secs(8)), None));
}

#[test]
fn an_eviction_that_is_answered_after_its_pods_end_was_ours() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None), pod("web-1", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.changed(gone("web-0"), now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    let pod = &progress.into_pods()[&uid("web-0")];
    assert_eq!(pod.state, PodState::Gone { at: now });
    assert_eq!((pod.history.followed, pod.history.accepted_at), (Some(RequestedBy::ThisDrain), Some(now)));
}
