//! A drain that merely waits may be parked.

use super::*;
use crate::drain::report::Parked;

/// Two pods: one is leaving, and a budget blocks the other.
fn waiting(now: Instant) -> Progress {
    let mut progress = drain(&[pod("web-0", None), pod("db-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.answered(&uid("db-0"), blocked(), now);
    progress
}

#[test]
fn a_drain_whose_pods_are_leaving_or_blocked_is_parked_until_one_is_forced() {
    let now = Instant::now();
    let mut progress = waiting(now);
    progress.news(now);
    progress.node_watch_begins();
    assert_eq!(progress.parked(now), None, "nobody has said that the node answers");
    progress.kubelet_seen(Kubelet::Answers, now);
    let forced_from = held_by_hook(now).forced_from(Duration::from_secs(30));
    assert_eq!(progress.parked(now), Some(Parked { blocked_since: Some(now), forced_from }));
    progress.kubelet_seen(Kubelet::Silent, now);
    assert_eq!(progress.parked(now), None, "whether it is dead is seen by watching");
}

#[test]
fn a_drain_that_has_something_to_do_or_is_over_is_not_parked() {
    let now = Instant::now();
    let mut progress = drain(&[pod("web-0", None)], held_by_hook(now), now);
    assert_eq!(progress.parked(now), None, "nobody has asked the pod");
    progress.requests(now);
    assert_eq!(progress.parked(now), None, "the request is not answered");
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    assert!(progress.parked(now).is_some());
    progress.changed(gone("web-0"), now);
    assert_eq!(progress.parked(now), None);
}

#[test]
fn what_was_blocked_when_it_was_parked_is_published_by_that_time() {
    let now = Instant::now();
    let before = now.checked_sub(Duration::from_secs(55)).unwrap();
    let mut progress = drain(&[pod("db-0", None)], held_by_hook(now), now).with_blockage(None, Some(before));
    progress.requests(now);
    progress.answered(&uid("db-0"), blocked(), now);
    assert_eq!(progress.news(now), None);
    assert!(progress.news(now + Duration::from_secs(5)).is_some(), "a minute is over");
}
