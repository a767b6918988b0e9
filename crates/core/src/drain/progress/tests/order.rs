//! Tests: the order of tiers, and pods that stay.

use std::iter;

use super::*;

fn annotated(name: &str, drain: &str) -> Pod {
    let mut pod = pod(name, None);
    pod.metadata.annotations = Some([("spillway/drain".to_owned(), drain.to_owned())].into());
    pod
}

/// Critical pods do not wait for blocked ones: they serve other nodes' pods too.
#[test]
fn last_pod_waits_for_blocked_pods_until_it_must_leave() {
    let now = Instant::now();
    for (window, requested_s) in [(hard(now, 120), 68), (held_by_hook(now), 548)] {
        let mut progress = drain(&[annotated("proxy", "last"), pod("db-0", None)], window, now);
        let requested = now + seconds(requested_s);
        for at in [now, requested - Duration::from_millis(1)] {
            assert_eq!(names(&progress.requests(at)), ["db-0"]);
            progress.answered(&uid("db-0"), blocked(), at);
        }
        assert_eq!(names(&progress.requests(requested)), ["proxy"]);
        progress.answered(&uid("proxy"), blocked(), requested);
        let forced = progress.requests(requested + seconds(20));
        assert_eq!(names(&forced), ["db-0", "proxy"]);
        assert!(forced.iter().all(|request| request.method == Method::Delete));
    }
}

/// Pods with a volume of Mountpoint for S3 had a grace of 600 s.
#[test]
fn long_grace_of_one_pod_opens_its_tier_for_no_other() {
    let now = Instant::now();
    for (class, drains, requested_s) in [(None, "last", 68), (Some("system-cluster-critical"), "", 60)] {
        let (mut long, mut short) = (annotated("long", drains), annotated("short", drains));
        long.spec.termination_grace_period_seconds = Some(600);
        for pod in [&mut long, &mut short] {
            pod.spec.priority_class_name = class.map(str::to_owned);
        }
        let mut progress = drain(&[long, short, pod("app", None)], hard(now, 120), now);
        assert_eq!(names(&progress.requests(now)), ["app", "long"]);
        for name in ["app", "long"] {
            progress.answered(&uid(name), Answer::Leaving, now);
        }
        let requested = now + seconds(requested_s);
        assert_eq!(progress.next_due(now), Some(now + seconds(40)), "app is overdue");
        progress.node_watch_started();
        assert_eq!(progress.next_due(now), Some(requested));
        assert!(progress.requests(requested - Duration::from_millis(1)).is_empty());
        assert_eq!(names(&progress.requests(requested)), ["short"]);
    }
}

#[test]
fn pod_skipped_while_it_leaves_is_waited_for() {
    let now = Instant::now();
    let skipped = || applied(annotated("agent", "skip"));
    let mut progress = drain(&[pod("agent", None)], hard(now, 120), now);
    progress.requests(now);
    progress.changed(skipped(), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty), "the eviction is not answered yet");
    progress.answered(&uid("agent"), Answer::Leaving, now);
    assert_eq!(progress.end(), None);
    progress.changed(skipped(), now);
    assert_eq!(progress.end(), None);
    progress.changed(gone("agent"), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn going_instance_has_no_tiers_and_no_annotations() {
    let now = Instant::now();
    let pods = [
        do_not_disrupt::annotated("batch-0", "true", None),
        pod("dns", Some("system-cluster-critical")),
        annotated("proxy", "last"),
        pod("web-0", None),
    ];
    assert_eq!(names(&drain(&pods, soon(now, 120), now).requests(now)), ["batch-0", "dns", "proxy", "web-0"]);
}

#[test]
fn skipped_pod_is_left_alone_while_it_is_annotated() {
    let now = Instant::now();
    let mut progress = drain(&[annotated("agent", "skip"), pod("web-0", None)], hard(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Gone, now);
    assert_eq!((progress.end(), progress.next_due(now)), (Some(DrainEnd::Empty), None));

    progress.changed(applied(pod("agent", None)), now);
    assert_eq!(names(&progress.requests(now)), ["agent"]);
    progress.answered(&uid("agent"), blocked(), now);
    progress.changed(applied(annotated("agent", "skip")), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

/// A connection has 100 streams at least (RFC 9113, 6.5.2); a watch, a patch and a list have theirs.
#[test]
fn room_is_for_72_evictions_and_82_requests() {
    let room = |evictions, forced| {
        let requests = |method, count| iter::repeat_n((uid("web-0"), method), count);
        let in_flight = InFlight(requests(Method::Evict, evictions).chain(requests(Method::Delete, forced)).collect());
        (in_flight.has_room_for(Method::Evict), in_flight.has_room_for(Method::Delete))
    };
    assert_eq!(room(71, 10), (true, true));
    assert_eq!(room(72, 9), (false, true));
    assert_eq!(room(72, 10), (false, false));
    assert_eq!(room(0, 82), (false, false));
}

#[test]
fn eviction_beside_an_unanswered_deletion_is_counted_apart() {
    let now = Instant::now();
    let mut progress = drain(&web(), hard(now, 120), now);
    let (at, _) = until_deleted(&mut progress, &blocked(), now);
    for pod in [annotated("web-0", "skip"), pod("web-0", None)] {
        progress.changed(applied(pod), at);
    }
    assert_eq!(progress.requests(at)[0].method, Method::Evict);
    for left in [1, 0] {
        progress.answered(&uid("web-0"), Answer::Leaving, at);
        assert_eq!(progress.in_flight.0.len(), left);
    }
}
