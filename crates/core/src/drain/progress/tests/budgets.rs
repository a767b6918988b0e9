//! Tests: the next eviction of pods that PodDisruptionBudgets block.

use super::*;

fn pods(count: usize) -> Vec<Pod> {
    (0..count).map(|n| pod(&format!("web-{n:02}"), None)).collect()
}

fn all_blocked(count: usize, now: Instant) -> Progress {
    answered(&pods(count), &blocked(), held_by_hook(now), now)
}

fn budget(name: &str, allowed: i32) -> DisruptionBudget {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "generation": 2},
        "status": {"observedGeneration": 2, "disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    }))
    .unwrap()
}

fn allows(progress: &mut Progress, disruptions: i32, now: Instant) {
    progress.budgets_changed("shop", Change::Applied(Box::new(budget("web", disruptions))), now);
}

fn take(progress: &mut Progress, requests: Vec<LeaveRequest>, now: Instant) {
    for request in requests {
        progress.answered(&request.uid, Answer::Leaving, now);
    }
}

/// Budget of that generation and observed generation.
fn edited(generation: i64, observed: i64) -> DisruptionBudget {
    let mut budget = budget("web", 0);
    budget.metadata.generation = Some(generation);
    budget.status.as_mut().unwrap().observed_generation = Some(observed);
    budget
}

#[test]
fn edited_budget_lets_all_of_its_pods_be_tried_once() {
    let now = Instant::now();
    let mut progress = all_blocked(20, now);
    for (generation, observed, tried) in [(2, 2, 0), (3, 2, 0), (3, 3, 20), (3, 3, 0), (4, 4, 20)] {
        progress.budgets_changed("shop", Change::Applied(Box::new(edited(generation, observed))), now);
        let requests = progress.requests(now);
        assert_eq!(requests.len(), tried, "generation {generation}, observed {observed}");
        for request in requests {
            progress.answered(&request.uid, blocked(), now);
        }
    }
    progress.budgets_changed("shop", Change::Listed(vec![edited(5, 5)]), now);
    assert_eq!(progress.requests(now).len(), 20, "after an interrupted watch too");
}

#[test]
fn allowed_evictions_go_to_the_longest_waiting_pods() {
    let now = Instant::now();
    let mut progress = all_blocked(5, now);
    // A refused probe: the first pod moves to the end of the queue.
    let later = now + seconds(5);
    assert_eq!(names(&progress.requests(later)), ["web-00"]);
    progress.answered(&uid("web-00"), blocked(), later);

    allows(&mut progress, 2, later);
    let requested = progress.requests(later);
    assert_eq!(names(&requested), ["web-01", "web-02"]);
    assert!(progress.requests(later).is_empty(), "no more than allowed");
    take(&mut progress, requested, later);
    assert!(progress.requests(later).is_empty(), "used up");
    allows(&mut progress, 3, later);
    assert_eq!(names(&progress.requests(later)), ["web-00", "web-03", "web-04"]);
}

#[test]
fn disruption_allowed_during_a_refusal_is_not_lost() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held_by_hook(now), now);
    progress.requests(now);
    let later = now + Duration::from_millis(5);
    allows(&mut progress, 1, later);
    progress.answered(&uid("web-00"), blocked(), later);
    assert_eq!(names(&progress.requests(later)), ["web-00"]);
    progress.answered(&uid("web-00"), blocked(), later);
    assert!(progress.requests(later).is_empty(), "another drain was faster");
}

#[test]
fn pod_that_is_gone_leaves_its_disruption_to_the_next() {
    let now = Instant::now();
    let mut progress = all_blocked(3, now);
    allows(&mut progress, 1, now);
    assert_eq!(names(&progress.requests(now)), ["web-00"]);
    progress.answered(&uid("web-00"), Answer::Gone, now);
    assert_eq!(names(&progress.requests(now)), ["web-01"]);
}

#[test]
fn silent_budget_is_probed_every_five_seconds() {
    let now = Instant::now();
    let mut progress = all_blocked(3, now);
    let mut at = now;
    for name in ["web-00", "web-01", "web-02", "web-00"] {
        assert_eq!(progress.next_due(at), Some(at + seconds(5)));
        at += seconds(5);
        assert_eq!(names(&progress.requests(at)), [name]);
        progress.answered(&uid(name), blocked(), at);
    }
}

/// Budgets of a fourth namespace, or without the right to watch them.
#[test]
fn unwatched_budget_that_releases_a_pod_is_probed_again_at_once() {
    let now = Instant::now();
    let mut progress = all_blocked(3, now);
    let probe = now + seconds(5);
    for name in ["web-00", "web-01"] {
        let requests = progress.requests(probe);
        assert_eq!(names(&requests), [name]);
        take(&mut progress, requests, probe);
    }
    answer_all(&mut progress, &blocked(), probe);
    assert_eq!(progress.next_due(probe), Some(probe + seconds(5)));
}

#[test]
fn deleted_budget_blocks_no_pod() {
    let now = Instant::now();
    let deleted = |name| Change::Deleted(Box::new(budget(name, 0)));
    for (namespace, unrelated, change) in [
        ("shop", deleted("other"), deleted("web")),
        ("elsewhere", Change::Listed(vec![]), Change::Listed(vec![budget("other", 1)])),
    ] {
        let mut progress = all_blocked(3, now);
        progress.budgets_changed(namespace, unrelated, now);
        assert!(progress.requests(now).is_empty());
        progress.budgets_changed("shop", change, now);
        assert_eq!(progress.requests(now).len(), 3);
    }
}

#[test]
fn pod_without_its_deleted_budget_is_not_forced() {
    let now = Instant::now();
    let late = now + seconds(87);
    let mut progress = answered(&pods(1), &blocked(), hard(now, 120), now);
    progress.budgets_changed("shop", Change::Deleted(Box::new(budget("web", 0))), late);
    answer_all(&mut progress, &throttled(Some(60)), late);
    let again = progress.next_due(late).unwrap();
    assert_eq!(again, now + seconds(88), "its last safe moment");
    assert_eq!(progress.requests(again)[0].method, Method::Evict);
}

#[test]
fn disruptions_of_an_older_generation_do_not_count() {
    let now = Instant::now();
    let mut progress = all_blocked(1, now);
    let mut changed = budget("web", 1);
    changed.metadata.generation = Some(3);
    progress.budgets_changed("shop", Change::Applied(Box::new(changed)), now);
    assert!(progress.requests(now).is_empty());
}

/// Two budgets of the pod, and one of another app.
fn two_budgets() -> Vec<DisruptionBudget> {
    let covering = |name: &str, app: &str| {
        let mut budget = budget(name, 1);
        budget.spec.selector = serde_json::from_value(json!({"matchLabels": {"app": app}})).unwrap();
        budget
    };
    vec![covering("all", "web"), covering("other", "db"), covering("web", "web")]
}

fn blocked_by_several(now: Instant) -> Progress {
    let mut pod = pod("web-00", None);
    pod.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    answered(&[pod], &Answer::BlockedBySeveral, held_by_hook(now), now)
}

#[test]
fn two_budgets_of_a_pod_are_named_and_logged_once() {
    let now = Instant::now();
    let mut progress = blocked_by_several(now);
    assert_eq!(progress.namespaces_to_watch(), ["shop"].into());
    progress.take_transitions();
    progress.budgets_changed("shop", Change::Listed(two_budgets()), now);
    let transitions = progress.take_transitions();
    let [Transition::Blocked(_, by)] = transitions.as_slice() else { panic!("{transitions:?}") };
    assert_eq!(by.to_string(), "PodDisruptionBudgets all and web (only one may select the pod)");

    let again = now + seconds(5);
    assert_eq!(progress.next_due(now), Some(again));
    answer_all(&mut progress, &Answer::BlockedBySeveral, again);
    progress.budgets_changed("shop", Change::Listed(two_budgets()), again);
    assert!(progress.take_transitions().is_empty());
}
