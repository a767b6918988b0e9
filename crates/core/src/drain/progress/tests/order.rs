//! Pods that ask to leave last, and pods that stay.

use super::*;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn asking(name: &str, drain: &str) -> Pod {
    let mut pod = pod(name, None);
    pod.metadata.annotations = Some([("spillway/drain".to_owned(), drain.to_owned())].into());
    pod
}

/// A pod of Mountpoint for Amazon S3: pods with its volume get errors once it has gone.
fn mount_pod(name: &str) -> Pod {
    let mut pod = pod(name, Some("mount-s3-critical"));
    pod.metadata.labels = Some([("s3.csi.aws.com/mountpoint-version".to_owned(), "1.20.0".to_owned())].into());
    pod
}

#[test]
fn pod_that_asks_to_be_last_leaves_when_others_have_gone() {
    let now = Instant::now();
    let mut progress = drain(
        &[asking("proxy", "last"), pod("dns", Some("system-cluster-critical")), pod("web-0", None)],
        hard(now, 120),
        now,
    );
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.changed(gone("web-0"), now);
    assert_eq!(names(&progress.requests(now)), ["dns"]);
    progress.answered(&uid("dns"), Answer::Leaving, now);
    assert!(progress.requests(now).is_empty(), "one is shutting down");
    progress.changed(gone("dns"), now);
    assert_eq!(names(&progress.requests(now)), ["proxy"]);
}

/// Critical pods do not wait for such: they serve others, and not those alone.
#[test]
fn last_pod_waits_for_blocked_pods_until_it_must_leave() {
    let now = Instant::now();
    for (window, asked_s) in [(hard(now, 120), 68), (held_by_hook(now), 548)] {
        let mut progress = drain(&[asking("proxy", "last"), pod("db-0", None)], window, now);
        let asked = now + seconds(asked_s);
        for at in [now, asked - Duration::from_millis(1)] {
            assert_eq!(names(&progress.requests(at)), ["db-0"]);
            progress.answered(&uid("db-0"), blocked(), at);
        }
        assert_eq!(names(&progress.requests(asked)), ["proxy"]);
        progress.answered(&uid("proxy"), blocked(), asked);
        let forced = progress.requests(asked + seconds(20));
        assert_eq!(names(&forced), ["db-0", "proxy"]);
        assert!(forced.iter().all(|request| request.method == Method::Delete));
    }
}

/// As one with a volume of Mountpoint for S3 had: 600 s.
#[test]
fn long_grace_of_one_pod_opens_its_tier_for_no_other() {
    let now = Instant::now();
    for (class, drains, asked_s) in [(None, "last", 68), (Some("system-cluster-critical"), "", 60)] {
        let (mut long, mut short) = (asking("long", drains), asking("short", drains));
        long.spec.termination_grace_period_seconds = Some(600);
        for pod in [&mut long, &mut short] {
            pod.spec.priority_class_name = class.map(str::to_owned);
        }
        let mut progress = drain(&[long, short, pod("app", None)], hard(now, 120), now);
        assert_eq!(names(&progress.requests(now)), ["app", "long"]);
        for name in ["app", "long"] {
            progress.answered(&uid(name), Answer::Leaving, now);
        }
        let asked = now + seconds(asked_s);
        assert_eq!(progress.next_due(now), Some(now + seconds(40)), "app is overdue");
        progress.node_watch_begins();
        assert_eq!(progress.next_due(now), Some(asked));
        assert!(progress.requests(asked - Duration::from_millis(1)).is_empty());
        assert_eq!(names(&progress.requests(asked)), ["short"]);
    }
}

#[test]
fn pod_that_is_to_be_skipped_while_it_leaves_is_waited_for() {
    let now = Instant::now();
    let skipped = || Change::Seen(Box::new(asking("agent", "skip")));
    let mut progress = drain(&[pod("agent", None)], hard(now, 120), now);
    progress.requests(now);
    progress.changed(skipped(), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty), "nobody has decided yet");
    progress.answered(&uid("agent"), Answer::Leaving, now);
    assert_eq!(progress.end(), None);
    progress.changed(skipped(), now);
    assert_eq!(progress.end(), None);
    progress.changed(gone("agent"), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

#[test]
fn of_an_instance_that_is_going_now_nobody_is_the_last() {
    let now = Instant::now();
    let mut progress = drain(&[asking("proxy", "last"), pod("web-0", None)], soon(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["proxy", "web-0"]);
}

#[test]
fn a_pod_that_asks_to_be_waited_for_is_left_alone_until_it_is_done_or_has_to_leave() {
    let now = Instant::now();
    let mut progress = drain(&[asking("batch-0", "wait")], held_by_hook(now), now);
    assert_eq!(progress.next_due(now), Some(now + seconds(300)));
    let mut done = asking("batch-0", "wait");
    done.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
    progress.changed(Change::Seen(Box::new(done)), now);
    assert_eq!(names(&progress.requests(now)), ["batch-0"]);
}

#[test]
fn a_pod_that_asks_to_be_skipped_is_left_alone_and_not_waited_for_as_long_as_it_asks() {
    let now = Instant::now();
    let mut progress = drain(&[asking("agent", "skip"), pod("web-0", None)], hard(now, 120), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Gone, now);
    assert_eq!((progress.end(), progress.next_due(now)), (Some(DrainEnd::Empty), None));

    progress.changed(Change::Seen(Box::new(pod("agent", None))), now);
    assert_eq!(names(&progress.requests(now)), ["agent"]);
    progress.answered(&uid("agent"), blocked(), now);
    progress.changed(Change::Seen(Box::new(asking("agent", "skip"))), now);
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

/// `JuiceFS` makes the next mount pod before it lets the last one go.
#[test]
fn mount_pods_keep_no_drain_waiting() {
    let now = Instant::now();
    let mut progress = drain(&[mount_pod("mp-1"), pod("web-0", None)], held_by_hook(now), now);
    assert_eq!(names(&progress.requests(now)), ["web-0"]);
    progress.answered(&uid("web-0"), Answer::Gone, now);
    progress.changed(Change::Seen(Box::new(mount_pod("mp-2"))), now);
    assert!(progress.requests(now).is_empty());
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
}

/// Of the hundred streams that a connection has.
#[test]
fn there_is_room_for_72_evictions_and_for_82_requests_in_all() {
    let room = |evictions, forced| {
        let in_flight = InFlight { evictions, forced };
        (in_flight.has_room_for(Method::Evict), in_flight.has_room_for(Method::Delete))
    };
    assert_eq!(room(71, 10), (true, true));
    assert_eq!(room(72, 9), (false, true));
    assert_eq!(room(72, 10), (false, false));
    assert_eq!(room(0, 82), (false, false));
}
