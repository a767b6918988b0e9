//! Tests: pods that are placed on the cordoned node.

use super::*;

/// Pod created at that number of seconds after the claim.
fn created(name: &str, after_s: i64) -> Pod {
    let mut pod = pod(name, None);
    let created = BEGIN.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(after_s);
    pod.metadata.creation_timestamp = serde_json::from_value(json!(created.to_string())).unwrap();
    pod
}

fn tolerant(name: &str, after_s: i64) -> Pod {
    let mut pod = created(name, after_s);
    pod.spec.tolerates_cordon = true;
    pod
}

#[test]
fn returned_pod_behind_a_budget_is_never_forced() {
    let now = Instant::now();
    let mut progress = drain(&[], hard(now, 120), now);
    progress.changed(applied(tolerant("web-1", 1)), now);
    let due = now + seconds(5);
    assert_eq!(names(&progress.requests(due)), ["web-1"]);
    progress.answered(&uid("web-1"), blocked(), due);
    assert!(progress.requests(now + seconds(119)).is_empty());
    assert_eq!(progress.news(now + seconds(119)), None, "blocks no drain");
}

#[test]
fn critical_pods_do_not_wait_for_a_returned_pod() {
    let now = Instant::now();
    let mut progress =
        drain(&[pod("dns", Some("system-cluster-critical")), pod("web-0", None)], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.changed(applied(tolerant("web-1", 1)), now);
    progress.changed(gone("web-0"), now);
    assert_eq!(names(&progress.requests(now)), ["dns"]);
}

#[test]
fn pod_bound_by_node_name_is_evicted_after_a_pause_and_awaited() {
    let now = Instant::now();
    let mut progress = drain(&[], hard(now, 120), now);
    progress.changed(applied(created("web-1", 11)), now);
    assert!(progress.requests(now).is_empty());
    assert_eq!(progress.next_due(now), Some(now + seconds(5)));
    assert_eq!(progress.end(), None);
}

#[test]
fn pod_from_before_the_second_cordon_leaves_at_once() {
    let now = Instant::now();
    let mut progress = drain(&[], hard(now, 120), now);
    let later = now + seconds(60);
    progress.cordoned_again(later);
    progress.changed(applied(created("web-1", 50)), later);
    assert_eq!(names(&progress.requests(later)), ["web-1"]);
}

#[test]
fn endlessly_recreated_pods_are_tracked_up_to_a_bound() {
    let now = Instant::now();
    let mut progress = drain(&[], hard(now, 120), now);
    for n in 0..1_000 {
        progress.changed(applied(tolerant(&format!("web-{n}"), 1)), now);
    }
    assert_eq!(progress.end(), Some(DrainEnd::Empty));
    assert_eq!(progress.into_pods().len(), 50);
}
