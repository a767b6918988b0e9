//! Tests: requests of another drain or a person to the node's pods.

use super::waiting::leaving;
use super::*;
use crate::drain::pod::RequestedBy;

const MINUTE: Duration = Duration::from_secs(60);

/// The pod's shortened grace, if any, and the origin of the request that it followed.
fn at_the_end(mut progress: Progress, graces_s: &[i64]) -> (Option<Duration>, Option<RequestedBy>) {
    let now = progress.window().start;
    // The kubelet deletes the pod with a grace of zero at last.
    for grace_s in graces_s.iter().chain(&[0]) {
        progress.changed(applied(leaving("web-0", MINUTE, *grace_s)), now);
    }
    progress.changed(gone("web-0"), now);
    let pod = &progress.into_pods()[&uid("web-0")];
    assert_eq!(pod.state, PodState::Gone { at: now });
    (pod.shortened_grace(), pod.history.left_by)
}

#[test]
fn origin_of_a_pods_request_and_grace_is_known() {
    let now = Instant::now();
    let (ours, others, eight) = (Some(RequestedBy::ThisDrain), Some(RequestedBy::Another), Some(seconds(8)));
    for (answer, graces_s, expected) in [
        (Answer::Leaving, &[30][..], (None, ours)),
        (Answer::Leaving, &[30, 8], (eight, others)),
        (blocked(), &[30], (None, others)),
        (blocked(), &[8], (eight, others)),
    ] {
        let progress = answered(&web(), &answer, held_by_hook(now), now);
        assert_eq!(at_the_end(progress, graces_s), expected, "{answer:?} {graces_s:?}");
    }
    let left_before = drain(&[leaving("web-0", MINUTE, 8)], held_by_hook(now), now);
    assert_eq!(at_the_end(left_before, &[]), (eight, None));
}

#[test]
fn unanswered_grace_counts_as_given_but_not_a_refused_one() {
    let now = Instant::now();
    let clamped = Some(seconds(18));
    for (answer, shortened) in
        [(blocked(), None), (Answer::Gone, None), (unanswered(), clamped), (Answer::Leaving, clamped)]
    {
        let mut progress = drain(&web(), hard(now, 20), now);
        assert_eq!(progress.requests(now)[0].grace, Grace::Clamped(seconds(18)));
        progress.answered(&uid("web-0"), answer.clone(), now);
        progress.changed(gone("web-0"), now);
        assert_eq!(progress.into_pods()[&uid("web-0")].shortened_grace(), shortened, "{answer:?}");
    }
}

#[test]
fn eviction_answered_after_the_pods_end_was_ours() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None), pod("web-1", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.changed(gone("web-0"), now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    let pod = &progress.into_pods()[&uid("web-0")];
    assert_eq!(pod.state, PodState::Gone { at: now });
    assert_eq!((pod.history.left_by, pod.history.accepted_at), (Some(RequestedBy::ThisDrain), Some(now)));
}
