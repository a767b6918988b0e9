//! Pods that their controllers put back.

use super::*;

/// A pod of the one owner, created so long after the drain began.
fn owned(name: &str, after_s: i64) -> Pod {
    let mut pod = pod(name, None);
    let created = BEGIN.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(after_s);
    pod.metadata.creation_timestamp = serde_json::from_value(json!(created.to_string())).unwrap();
    pod.metadata.owner_references = serde_json::from_value(json!([
        {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "web", "uid": "o-1", "controller": true}]))
    .unwrap();
    pod
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_back_is_evicted_once_more_after_a_pause_and_then_stays() {
    let now = Instant::now();
    let mut progress = drain(&[owned("web-0", -60)], hard(now, 120), now);
    let mut evictions = 0;
    let mut at = now;
    for n in 1..50 {
        for request in progress.requests(at) {
            progress.answered(&request.uid, Answer::Leaving, at);
            evictions += 1;
            progress.changed(gone(&request.name.name), at);
            progress.changed(Change::Seen(Box::new(owned(&format!("web-{n}"), n))), at);
            assert!(progress.requests(at).is_empty(), "not without a pause");
        }
        if progress.end().is_some() {
            break;
        }
        at = progress.next_due(at).unwrap();
    }
    assert_eq!((progress.end(), evictions), (Some(DrainEnd::Empty), 2));
    assert_eq!(at, now + Duration::from_secs(5), "the second eviction");
    progress.changed(Change::Seen(Box::new(owned("web-2", 2))), at);
    assert_eq!(progress.end(), Some(DrainEnd::Empty), "whatever is seen of it");
    let by = BEGIN.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(60);
    progress.changed(Change::Seen(Box::new(super::waiting::leaving_by(owned("web-2", 2), by, 30))), at);
    assert_eq!(progress.end(), Some(DrainEnd::Empty), "though somebody deletes it");
    let stays = |pod: &&Tracked| pod.state == PodState::Stays(Stays::PutBack);
    assert_eq!(progress.into_pods().values().filter(stays).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_bound_late_has_not_come_back() {
    let now = Instant::now();
    let mut progress = drain(&[owned("web-0", -60)], hard(now, 120), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.changed(Change::Seen(Box::new(owned("web-1", -60))), now);
    assert_eq!(names(&progress.requests(now)), ["web-1"], "at once");
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_made_for_ever_are_not_all_remembered_and_keep_no_drain_waiting() {
    let now = Instant::now();
    let mut progress = drain(&[owned("web-0", -60)], hard(now, 120), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.changed(gone("web-0"), now);
    progress.changed(Change::Seen(Box::new(owned("web-1", 1))), now);
    let later = progress.next_due(now).expect("it is back, and evicted once more");
    progress.requests(later);
    progress.answered(&uid("web-1"), Answer::Leaving, later);
    progress.changed(gone("web-1"), later);
    progress.take_transitions();

    for n in 2..1_000 {
        progress.changed(Change::Seen(Box::new(owned(&format!("web-{n}"), 10))), later);
    }

    assert_eq!(progress.end(), Some(DrainEnd::Empty));
    let continued = progress.put_back().expect("some came back").owners["o-1"].again.len();
    let (told, remembered) = (progress.take_transitions().len(), progress.into_pods().len());
    assert!(told < 20 && remembered < 20 && continued < 20, "{told} {remembered} {continued}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_came_while_the_node_was_uncordoned_has_not_come_back_and_leaves_at_once() {
    let now = Instant::now();
    let mut progress = drain(&[owned("web-0", -60)], hard(now, 120), now);
    progress.requests(now);
    progress.answered(&uid("web-0"), Answer::Leaving, now);
    progress.came_to_uncordoned(&owned("web-1", 1), now);
    assert_eq!(names(&progress.requests(now)), ["web-1"]);
}
