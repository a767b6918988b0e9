//! Pods that PodDisruptionBudgets hold: when each is asked for again.

use super::*;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn pods(count: usize) -> Vec<Pod> {
    (0..count).map(|n| pod(&format!("web-{n:02}"), None)).collect()
}

fn budget(name: &str, room: i32) -> PodDisruptionBudget {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "generation": 2},
        "status": {"observedGeneration": 2, "disruptionsAllowed": room, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    }))
    .unwrap()
}

fn room(progress: &mut Progress, room: i32, now: Instant) {
    progress.budgets_changed("shop", Change::Seen(Box::new(budget("web", room))), now);
}

/// All are asked for, and the budget holds them.
fn all_held(progress: &mut Progress, now: Instant) {
    for request in progress.requests(now) {
        progress.answered(&request.uid, hold(), now);
    }
}

fn take(progress: &mut Progress, requests: Vec<Request>, now: Instant) {
    for request in requests {
        progress.answered(&request.uid, Answer::Leaving, now);
    }
}

#[test]
fn nothing_is_watched_before_a_budget_holds_a_pod() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held(now), now);
    assert!(progress.namespaces_held().is_empty());
    all_held(&mut progress, now);
    assert_eq!(progress.namespaces_held(), ["shop"].into());
}

#[test]
fn a_budget_that_holds_a_pod_is_told_once_and_counted_each_time() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held(now), now);
    all_held(&mut progress, now);
    let again = progress.next_due(now).unwrap();
    all_held(&mut progress, again);
    assert_eq!(progress.take_news().len(), 1);
    assert_eq!(progress.into_pods()[&uid("web-00")].answers, [("held-by-budget", 2)].into());
}

#[test]
fn as_many_pods_are_asked_for_as_the_budget_has_room_for_longest_waiting_first() {
    let now = Instant::now();
    let mut progress = drain(&pods(5), held(now), now);
    all_held(&mut progress, now);
    // A probe, refused: the first pod goes to the end of the queue.
    let later = now + seconds(5);
    assert_eq!(names(&progress.requests(later)), ["web-00"]);
    progress.answered(&uid("web-00"), hold(), later);

    room(&mut progress, 2, later);
    let asked = progress.requests(later);
    assert_eq!(names(&asked), ["web-01", "web-02"]);
    assert!(progress.requests(later).is_empty(), "no more than there is room for");
    take(&mut progress, asked, later);
    room(&mut progress, 0, later);
    room(&mut progress, 3, later);
    assert_eq!(names(&progress.requests(later)), ["web-00", "web-03", "web-04"]);
}

#[test]
fn twenty_pods_behind_a_budget_of_one_leave_as_fast_as_it_has_room() {
    let mut now = Instant::now();
    let mut progress = drain(&pods(20), held(now), now);
    let mut requests = 20;
    for (n, request) in progress.requests(now).into_iter().enumerate() {
        progress.answered(&request.uid, if n == 0 { Answer::Leaving } else { hold() }, now);
    }
    room(&mut progress, 0, now);
    for _ in 1..20 {
        now += Duration::from_millis(300);
        assert!(progress.requests(now).is_empty(), "it has no room");
        room(&mut progress, 1, now);
        let asked = progress.requests(now);
        assert_eq!(asked.len(), 1);
        requests += asked.len();
        room(&mut progress, 0, now);
        take(&mut progress, asked, now);
    }
    let told = progress.into_pods().into_values().filter(|pod| matches!(pod.state, PodState::Leaving(_))).count();
    assert_eq!((told, requests), (20, 39), "each pod once in vain, but for the first, and once more");
}

#[test]
fn room_that_the_budget_has_while_it_refuses_a_pod_is_not_lost() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held(now), now);
    progress.requests(now);
    let later = now + Duration::from_millis(5);
    room(&mut progress, 1, later);
    progress.answered(&uid("web-00"), hold(), later);
    assert_eq!(names(&progress.requests(later)), ["web-00"]);
    progress.answered(&uid("web-00"), hold(), later);
    assert!(progress.requests(later).is_empty(), "somebody else was faster");
}

#[test]
fn a_pod_that_went_by_itself_leaves_its_room_to_the_next() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held(now), now);
    all_held(&mut progress, now);
    room(&mut progress, 1, now);
    assert_eq!(names(&progress.requests(now)), ["web-00"]);
    progress.answered(&uid("web-00"), Answer::Gone, now);
    assert_eq!(names(&progress.requests(now)), ["web-01"]);
}

#[test]
fn one_pod_of_a_budget_that_says_nothing_is_asked_for_every_five_seconds_each_in_turn() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held(now), now);
    all_held(&mut progress, now);
    let mut at = now;
    for name in ["web-00", "web-01", "web-02", "web-00"] {
        assert_eq!(progress.next_due(at), Some(at + seconds(5)));
        at += seconds(5);
        assert_eq!(names(&progress.requests(at)), [name]);
        progress.answered(&uid(name), hold(), at);
    }
}

#[test]
fn a_budget_that_is_no_more_holds_nothing() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held(now), now);
    all_held(&mut progress, now);
    progress.budgets_changed("shop", Change::Gone(Box::new(budget("other", 0))), now);
    assert!(progress.requests(now).is_empty());
    progress.budgets_changed("shop", Change::Gone(Box::new(budget("web", 0))), now);
    assert_eq!(progress.requests(now).len(), 3);
}

#[test]
fn a_budget_that_went_while_nobody_watched_holds_nothing() {
    let now = Instant::now();
    let mut progress = drain(&pods(3), held(now), now);
    all_held(&mut progress, now);
    progress.budgets_changed("elsewhere", Change::OnlyThese(vec![]), now);
    assert!(progress.requests(now).is_empty());
    progress.budgets_changed("shop", Change::OnlyThese(vec![budget("other", 1)]), now);
    assert_eq!(progress.requests(now).len(), 3);
}

#[test]
fn room_of_before_the_budget_was_changed_does_not_count() {
    let now = Instant::now();
    let mut progress = drain(&pods(1), held(now), now);
    all_held(&mut progress, now);
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
        let way = progress.requests(at)[0].way;
        if at == now + seconds(88) {
            assert_eq!(way, Method::Delete);
            break;
        }
        assert_eq!(way, Method::Evict);
        progress.answered(&uid("web-00"), Answer::HeldBySeveral, at);
        let again = progress.next_due(at).unwrap();
        assert!(again == at + seconds(5) || again == now + seconds(88), "{:?}", again - at);
        at = again;
    }
}
