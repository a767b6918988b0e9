//! Pods that PodDisruptionBudgets block: when each is evicted again.

use super::*;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn pods(count: usize) -> Vec<Pod> {
    (0..count).map(|n| pod(&format!("web-{n:02}"), None)).collect()
}

fn budget(name: &str, allowed: i32) -> DisruptionBudget {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "generation": 2},
        "status": {"observedGeneration": 2, "disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    }))
    .unwrap()
}

fn allows(progress: &mut Progress, disruptions: i32, now: Instant) {
    progress.budgets_changed("shop", Change::Seen(Box::new(budget("web", disruptions))), now);
}

/// All are requested to leave, and the budget blocks them.
fn all_blocked(progress: &mut Progress, now: Instant) {
    for request in progress.requests(now) {
        progress.answered(&request.uid, blocked(), now);
    }
}

fn take(progress: &mut Progress, requests: Vec<LeaveRequest>, now: Instant) {
    for request in requests {
        progress.answered(&request.uid, Answer::Leaving, now);
    }
}

/// That generation of it; its controller has looked at the other.
fn edited(generation: i64, observed: i64) -> Change<DisruptionBudget> {
    let mut budget = budget("web", 0);
    budget.metadata.generation = Some(generation);
    budget.status.as_mut().unwrap().observed_generation = Some(observed);
    Change::Seen(Box::new(budget))
}

#[test]
fn a_budget_that_was_edited_lets_all_of_its_pods_be_tried_once() {
    let now = Instant::now();
    let mut progress = drain(&pods(20), held_by_hook(now), now);
    all_blocked(&mut progress, now);
    for (generation, observed, tried) in [(2, 2, 0), (3, 2, 0), (3, 3, 20), (3, 3, 0), (4, 4, 20)] {
        progress.budgets_changed("shop", edited(generation, observed), now);
        let requests = progress.requests(now);
        assert_eq!(requests.len(), tried, "generation {generation}, observed {observed}");
        for request in requests {
            progress.answered(&request.uid, blocked(), now);
        }
    }
    let listed = Change::OnlyThese(vec![match edited(5, 5) {
        Change::Seen(budget) => *budget,
        other => panic!("{other:?}"),
    }]);
    progress.budgets_changed("shop", listed, now);
    assert_eq!(progress.requests(now).len(), 20, "after a watch that broke too");
}

#[test]
fn nothing_is_watched_before_a_budget_blocks_a_pod() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held_by_hook(now), now);
    assert!(progress.namespaces_to_watch().is_empty());
    all_blocked(&mut progress, now);
    assert_eq!(progress.namespaces_to_watch(), ["shop"].into());
}

#[test]
fn a_budget_that_blocks_a_pod_is_logged_once_and_counted_each_time() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held_by_hook(now), now);
    all_blocked(&mut progress, now);
    let again = progress.next_due(now).unwrap();
    all_blocked(&mut progress, again);
    assert_eq!(progress.take_transitions().len(), 1);
    assert_eq!(progress.into_pods()[&uid("web-00")].history.answers, [("blocked-by-budget", 2)].into());
}

#[test]
fn as_many_pods_are_evicted_as_the_budget_allows_longest_waiting_first() {
    let now = Instant::now();
    let mut progress = drain(&pods(5), held_by_hook(now), now);
    all_blocked(&mut progress, now);
    // A probe, refused: the first pod goes to the end of the queue.
    let later = now + seconds(5);
    assert_eq!(names(&progress.requests(later)), ["web-00"]);
    progress.answered(&uid("web-00"), blocked(), later);

    allows(&mut progress, 2, later);
    let requested = progress.requests(later);
    assert_eq!(names(&requested), ["web-01", "web-02"]);
    assert!(progress.requests(later).is_empty(), "no more than it allows");
    take(&mut progress, requested, later);
    assert!(progress.requests(later).is_empty(), "what it allowed is used up");
    allows(&mut progress, 3, later);
    assert_eq!(names(&progress.requests(later)), ["web-00", "web-03", "web-04"]);
}

#[test]
fn twenty_pods_behind_a_budget_of_one_leave_as_fast_as_it_allows() {
    let mut now = Instant::now();
    let mut progress = drain(&pods(20), held_by_hook(now), now);
    let mut requests = 20;
    for (n, request) in progress.requests(now).into_iter().enumerate() {
        progress.answered(&request.uid, if n == 0 { Answer::Leaving } else { blocked() }, now);
    }
    allows(&mut progress, 0, now);
    for _ in 1..20 {
        now += Duration::from_millis(300);
        assert!(progress.requests(now).is_empty(), "it allows none");
        allows(&mut progress, 1, now);
        let requested = progress.requests(now);
        assert_eq!(requested.len(), 1);
        requests += requested.len();
        allows(&mut progress, 0, now);
        take(&mut progress, requested, now);
    }
    let left = progress.into_pods().into_values().filter(|pod| matches!(pod.state, PodState::Leaving { .. })).count();
    assert_eq!((left, requests), (20, 39), "each pod once in vain, but for the first, and once more");
}

#[test]
fn a_disruption_that_the_budget_allows_while_it_refuses_a_pod_is_not_lost() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held_by_hook(now), now);
    progress.requests(now);
    let later = now + Duration::from_millis(5);
    allows(&mut progress, 1, later);
    progress.answered(&uid("web-00"), blocked(), later);
    assert_eq!(names(&progress.requests(later)), ["web-00"]);
    progress.answered(&uid("web-00"), blocked(), later);
    assert!(progress.requests(later).is_empty(), "somebody else was faster");
}

#[test]
fn a_pod_that_went_by_itself_leaves_its_disruption_to_the_next() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held_by_hook(now), now);
    all_blocked(&mut progress, now);
    allows(&mut progress, 1, now);
    assert_eq!(names(&progress.requests(now)), ["web-00"]);
    progress.answered(&uid("web-00"), Answer::Gone, now);
    assert_eq!(names(&progress.requests(now)), ["web-01"]);
}

#[test]
fn one_pod_of_a_budget_that_says_nothing_is_tried_every_five_seconds_each_in_turn() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held_by_hook(now), now);
    all_blocked(&mut progress, now);
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
fn unwatched_budget_that_lets_a_pod_go_is_tried_again_at_once() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held_by_hook(now), now);
    all_blocked(&mut progress, now);
    let probe = now + seconds(5);
    for name in ["web-00", "web-01"] {
        let requests = progress.requests(probe);
        assert_eq!(names(&requests), [name]);
        take(&mut progress, requests, probe);
    }
    all_blocked(&mut progress, probe);
    assert_eq!(progress.next_due(probe), Some(probe + seconds(5)));
}

#[test]
fn a_budget_that_is_no_more_blocks_nothing() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held_by_hook(now), now);
    all_blocked(&mut progress, now);
    progress.budgets_changed("shop", Change::Gone(Box::new(budget("other", 0))), now);
    assert!(progress.requests(now).is_empty());
    progress.budgets_changed("shop", Change::Gone(Box::new(budget("web", 0))), now);
    assert_eq!(progress.requests(now).len(), 3);
}

#[test]
fn a_budget_that_went_while_nobody_watched_blocks_nothing() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held_by_hook(now), now);
    all_blocked(&mut progress, now);
    progress.budgets_changed("elsewhere", Change::OnlyThese(vec![]), now);
    assert!(progress.requests(now).is_empty());
    progress.budgets_changed("shop", Change::OnlyThese(vec![budget("other", 1)]), now);
    assert_eq!(progress.requests(now).len(), 3);
}

#[test]
fn a_pod_whose_budget_is_no_more_is_not_deleted_when_its_next_eviction_fails() {
    let now = Instant::now();
    let late = now + seconds(87);
    let mut progress = drain(&pods(1), hard(now, 120), now);
    all_blocked(&mut progress, now);
    progress.budgets_changed("shop", Change::Gone(Box::new(budget("web", 0))), late);
    progress.requests(late);
    progress.answered(&uid("web-00"), Answer::Throttled { retry_after: Some(seconds(60)) }, late);
    let again = progress.next_due(late).unwrap();
    assert_eq!(again, now + seconds(88), "its last safe moment");
    assert_eq!(progress.requests(again)[0].method, Method::Evict);
}

#[test]
fn disruptions_allowed_before_the_budget_was_changed_do_not_count() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held_by_hook(now), now);
    all_blocked(&mut progress, now);
    let mut changed = budget("web", 1);
    changed.metadata.generation = Some(3);
    progress.budgets_changed("shop", Change::Seen(Box::new(changed)), now);
    assert!(progress.requests(now).is_empty());
}

#[test]
fn two_budgets_for_one_pod_are_passed_in_time_and_only_then() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), hard(now, 120), now);
    let mut at = now;
    loop {
        let method = progress.requests(at)[0].method;
        if at == now + seconds(88) {
            assert_eq!(method, Method::Delete);
            break;
        }
        assert_eq!(method, Method::Evict);
        progress.answered(&uid("web-00"), Answer::BlockedBySeveral, at);
        let again = progress.next_due(at).unwrap();
        assert!(again == at + seconds(5) || again == now + seconds(88), "{:?}", again - at);
        at = again;
    }
}

/// Two budgets, and one of another namespace's app.
fn two_budgets() -> Vec<DisruptionBudget> {
    let covering = |name: &str, app: &str| {
        let mut budget = budget(name, 1);
        budget.spec.selector = serde_json::from_value(json!({"matchLabels": {"app": app}})).unwrap();
        budget
    };
    vec![covering("all", "web"), covering("other", "db"), covering("web", "web")]
}

fn of_app_web() -> Pod {
    let mut pod = pod("web-00", None);
    pod.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    pod
}

#[test]
fn two_budgets_for_one_pod_are_named_and_logged_once() {
    let now = Instant::now();
    let mut progress = drain(&[of_app_web()], held_by_hook(now), now);
    progress.requests(now);
    assert!(progress.namespaces_to_watch().is_empty());
    progress.answered(&uid("web-00"), Answer::BlockedBySeveral, now);
    assert_eq!(progress.namespaces_to_watch(), ["shop"].into());
    progress.take_transitions();
    progress.budgets_changed("shop", Change::OnlyThese(two_budgets()), now);
    let transitions = progress.take_transitions();
    let [Transition::Blocked(_, by)] = transitions.as_slice() else { panic!("{transitions:?}") };
    assert_eq!(by.to_string(), "PodDisruptionBudgets all and web (leave the pod one)");

    let again = now + seconds(5);
    assert_eq!(progress.next_due(now), Some(again));
    progress.requests(again);
    progress.answered(&uid("web-00"), Answer::BlockedBySeveral, again);
    progress.budgets_changed("shop", Change::OnlyThese(two_budgets()), again);
    assert!(progress.take_transitions().is_empty());
}

#[test]
fn pod_left_one_of_two_budgets_waits_for_the_slow_retry() {
    let now = Instant::now();
    let mut progress = drain(&[of_app_web()], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-00"), Answer::BlockedBySeveral, now);
    progress.budgets_changed("shop", Change::OnlyThese(two_budgets()), now);
    let [all, ..] = two_budgets().try_into().map(|budgets: [DisruptionBudget; 3]| budgets).unwrap();
    progress.budgets_changed("shop", Change::Gone(Box::new(all)), now);
    assert!(progress.requests(now).is_empty());
    let again = now + seconds(5);
    assert_eq!(progress.next_due(now), Some(again));
    assert_eq!(names(&progress.requests(again)), ["web-00"]);
}

#[test]
fn of_very_many_budgets_for_one_pod_the_first_few_are_named() {
    let now = Instant::now();
    let mut progress = drain(&[of_app_web()], held_by_hook(now), now);
    progress.requests(now);
    progress.answered(&uid("web-00"), Answer::BlockedBySeveral, now);
    let mut budgets = Vec::new();
    for n in 0..100 {
        budgets.extend(two_budgets().into_iter().map(|mut budget| {
            budget.metadata.name = budget.metadata.name.map(|name| format!("{name}-{n:02}"));
            budget
        }));
    }
    progress.budgets_changed("shop", Change::OnlyThese(budgets), now);
    let pods = progress.into_pods();
    let by = pods[&uid("web-00")].blocked.by().unwrap().to_string();
    assert_eq!(by, "PodDisruptionBudgets all-00 and all-01 and all-02 and all-03 (leave the pod one)");
}
