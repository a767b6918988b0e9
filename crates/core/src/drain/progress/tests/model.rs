//! Whatever the API server answers: what may never happen, for drains of all kinds.

use proptest::prelude::*;

use super::waiting::deleted;
use super::*;

/// What is drawn for a pod: its grace, its tier, whether it is not to be disrupted, how long ago somebody deleted it with
/// which grace, and the answers that it gets in turn.
#[derive(Debug, Clone)]
struct Draw {
    grace_s: i64,
    critical: bool,
    do_not_disrupt: bool,
    deleted_s: Option<(u64, i64)>,
    answers: Vec<Answer>,
}

fn answer() -> impl Strategy<Value = Answer> {
    let retry_after = || prop::option::of((1..100_u64).prop_map(Duration::from_secs));
    prop_oneof![
        1 => Just(Answer::Leaving),
        1 => Just(Answer::Gone),
        1 => Just(Answer::Replaced),
        4 => Just(blocked()),
        2 => Just(Answer::BlockedBySeveral),
        1 => Just(Answer::NamespaceTerminating),
        1 => retry_after().prop_map(|retry_after| Answer::Throttled { retry_after }),
        1 => Just(Answer::Unauthorized { message: "401".to_owned() }),
        1 => Just(Answer::Forbidden { message: "403".to_owned() }),
        1 => Just(Answer::Refused { message: "422".to_owned() }),
        1 => retry_after().prop_map(|retry_after| Answer::ServerError { message: "500".to_owned(), retry_after }),
        1 => Just(Answer::Unanswered { message: "lost".to_owned() }),
        1 => Just(Answer::GivenUp { message: "nothing came".to_owned() }),
    ]
}

fn draw() -> impl Strategy<Value = Draw> {
    let answers = prop::collection::vec(answer(), 1..6);
    let deleted_s = prop::option::weighted(0.2, (0..400_u64, 1..1000_i64));
    let grace_s = prop_oneof![0..40_i64, 0..1000_i64];
    (grace_s, any::<bool>(), any::<bool>(), deleted_s, answers).prop_map(
        |(grace_s, critical, do_not_disrupt, deleted_s, answers)| Draw {
            grace_s,
            critical,
            do_not_disrupt,
            deleted_s,
            answers,
        },
    )
}

fn pod_of(n: usize, draw: &Draw) -> Pod {
    let mut pod = pod(&format!("p-{n}"), draw.critical.then_some("system-cluster-critical"));
    pod.spec.termination_grace_period_seconds = Some(draw.grace_s);
    if draw.do_not_disrupt {
        let annotation = ("cluster-autoscaler.kubernetes.io/safe-to-evict".to_owned(), "false".to_owned());
        pod.metadata.annotations = Some([annotation].into());
    }
    if let Some((ago_s, grace_s)) = draw.deleted_s {
        pod = deleted(pod, Duration::from_secs(ago_s), grace_s);
    }
    pod
}

/// Which of the draws a pod is of.
fn number(pod: &Tracked) -> usize {
    pod.name.name[2..].parse().unwrap()
}

/// The same window, while a hook holds the instance.
fn by_hook(window: Window) -> Window {
    Window { instance_goes: Termination::AtTheLatest(window.end), ..window }
}

/// A request and when it was made, from the start.
type Requested = (Duration, LeaveRequest);

/// Drains until the window ends; every request is answered at once, with the pod's next answer, the
/// last of them for ever.
fn play(draws: &[Draw], window: Window) -> (Vec<Requested>, Progress) {
    let pods: Vec<Pod> = draws.iter().enumerate().map(|(n, draw)| pod_of(n, draw)).collect();
    let mut progress = drain(&pods, window, window.start);
    let mut requested = Vec::new();
    let mut now = window.start;
    let mut steps = 0;
    while now < window.end && progress.end().is_none() {
        steps += 1;
        assert!(steps < 20_000, "it goes on for ever {:?} after the start: {progress:?}", now - window.start);
        for request in progress.requests(now) {
            let n: usize = request.name.name[2..].parse().unwrap();
            let times = requested.iter().filter(|(_, before): &&Requested| before.uid == request.uid).count();
            let answers = &draws[n].answers;
            progress.answered(&request.uid, answers[times.min(answers.len() - 1)].clone(), now);
            requested.push((now - window.start, request));
        }
        if progress.is_node_watch_due(now) {
            progress.node_watch_begins();
            progress.kubelet_seen(Kubelet::Answers, now);
        }
        now = progress.next_due(now).unwrap_or(window.end).min(window.end);
    }
    (requested, progress)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_is_deleted_before_half_the_window_nor_before_its_last_safe_moment_nor_unless_it_was_blocked(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64,
    ) {
        let window = hard(Instant::now(), window_s);
        let (requested, progress) = play(&draws, window);
        let pods = progress.into_pods();
        for (at, request) in requested.iter().filter(|(_, request)| request.method == Method::Delete) {
            let pod = &pods[&request.uid];
            prop_assert!(2 * *at >= Duration::from_secs(window_s), "{request:?} at {at:?}");
            prop_assert!(*at + pod.grace + MARGIN >= Duration::from_secs(window_s), "{request:?} at {at:?}");
            prop_assert!(pod.blocked.last().is_some(), "{request:?}");
        }
    }

    #[test]
    fn what_something_blocks_is_deleted_no_later_than_its_last_safe_moment_unless_half_the_window_is_later(
        draws in prop::collection::vec(draw(), 1..9), window_s in 10..300_u64,
    ) {
        let window = hard(Instant::now(), window_s);
        let (requested, progress) = play(&draws, window);
        for (uid, pod) in progress.into_pods() {
            let forced = window.forced_from(pod.grace).unwrap();
            let requests: Vec<&Requested> = requested.iter().filter(|(_, request)| request.uid == uid).collect();
            match requests.iter().position(|(_, request)| request.method == Method::Delete) {
                // It is deleted then, or at once when it became known that something blocks it.
                Some(first) => {
                    let known = first.checked_sub(1).map_or(Duration::ZERO, |before| requests[before].0);
                    prop_assert_eq!(requests[first].0, known.max(forced - window.start), "{:?}", pod);
                }
                None => prop_assert!(!pod.waits() || pod.blocked.by().is_none() || forced >= window.end, "{pod:?}"),
            }
        }
    }

    #[test]
    fn the_grace_that_is_given_ends_before_the_instance_goes(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64,
    ) {
        let window = hard(Instant::now(), window_s);
        let (requested, progress) = play(&draws, window);
        let pods = progress.into_pods();
        for (at, request) in &requested {
            let given = match request.grace {
                Grace::Own => pods[&request.uid].grace,
                Grace::Clamped(given) => given,
            };
            let left = Duration::from_secs(window_s).saturating_sub(*at + MARGIN);
            prop_assert!(given <= left.max(Duration::from_secs(1)), "{request:?} at {at:?}");
        }
    }

    #[test]
    fn while_a_hook_holds_the_instance_nothing_is_clamped_and_deleted_only_what_was_blocked_and_has_to_leave(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64,
    ) {
        let window = by_hook(hard(Instant::now(), window_s));
        let (requested, progress) = play(&draws, window);
        let pods = progress.into_pods();
        for (at, request) in &requested {
            prop_assert_eq!(request.grace, Grace::Own);
            let pod = &pods[&request.uid];
            if request.method == Method::Delete {
                prop_assert!(Some(window.start + *at) >= window.forced_from(pod.grace), "{request:?} at {at:?}");
                prop_assert!(pod.blocked.last().is_some(), "{request:?}");
            }
        }
    }

    #[test]
    fn of_an_instance_that_goes_at_a_time_that_nobody_knows_no_pod_is_given_less_than_its_own_grace(
        draws in prop::collection::vec(draw(), 1..9), respected_s in 0..300_u64,
    ) {
        let window = soon(Instant::now(), respected_s);
        let (requested, progress) = play(&draws, window);
        for (at, request) in &requested {
            prop_assert_eq!(request.grace, Grace::Own);
            let is_early = *at < Duration::from_secs(respected_s);
            prop_assert!(request.method == Method::Evict || !is_early, "{request:?} at {at:?}");
        }
        for (uid, pod) in progress.into_pods() {
            let first = requested.iter().find(|(_, request)| request.uid == uid).map(|(at, _)| *at);
            let is_free = !draws[number(&pod)].do_not_disrupt && pod.deletion.is_none();
            prop_assert!(!is_free || first == Some(Duration::ZERO), "no pod waits for another: {pod:?}");
        }
    }

    #[test]
    fn a_pod_that_leaves_already_is_requested_again_only_as_long_as_that_takes_nothing_from_it(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64,
    ) {
        let window = hard(Instant::now(), window_s);
        let (requested, progress) = play(&draws, window);
        let pods = progress.into_pods();
        for (at, request) in &requested {
            let Some(Deletion { since, by }) = pods[&request.uid].deletion else { continue };
            let Grace::Clamped(given) = request.grace else { panic!("the API server makes nothing of {request:?}") };
            prop_assert!(since + given > window.start + *at, "the API server kills it: {request:?} at {at:?}");
            prop_assert!(since + given < by, "the API server makes nothing of {request:?} at {at:?}");
            prop_assert!(by > window.end, "it needed nothing: {request:?} at {at:?}");
        }
    }

    #[test]
    fn a_critical_pod_is_requested_to_leave_no_later_than_its_last_safe_moment_whatever_blocks_the_others(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64, hook in any::<bool>(),
    ) {
        let window = hard(Instant::now(), window_s);
        let window = if hook { by_hook(window) } else { window };
        let (_, progress) = play(&draws, window);
        for pod in progress.into_pods().values().filter(|pod| pod.tier == Tier::Critical) {
            let draw = &draws[number(pod)];
            if !draw.do_not_disrupt && draw.deleted_s.is_none() {
                prop_assert!(pod.history.requested_at() <= window.last_safe_moment(pod.grace), "{pod:?}");
                prop_assert!(pod.history.requested_at().is_some(), "{pod:?}");
            }
        }
    }

    #[test]
    fn what_blocks_a_pod_had_time_to_let_it_go_before_the_pod_is_deleted(
        draws in prop::collection::vec(draw(), 1..9), window_s in 50..300_u64, hook in any::<bool>(),
    ) {
        let window = hard(Instant::now(), window_s);
        let window = if hook { by_hook(window) } else { window };
        let (requested, progress) = play(&draws, window);
        let pods = progress.into_pods();
        for (at, request) in requested.iter().filter(|(_, request)| request.method == Method::Delete) {
            let pod = &pods[&request.uid];
            let asked = pod.history.requested_at().unwrap() - window.start;
            let is_free = !draws[number(pod)].do_not_disrupt && pod.deletion.is_none();
            prop_assert!(!is_free || asked + Duration::from_secs(20) <= *at, "{pod:?} at {at:?}, asked at {asked:?}");
        }
    }

    #[test]
    fn no_pod_is_requested_again_and_again_without_a_pause(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64,
    ) {
        let goes = hard(Instant::now(), window_s);
        let open = Window { instance_goes: Termination::Unknown, ..goes };
        // Once a second, as an API server may ask for; and in the half of the window in which a pod may be forced, a
        // deletion after each eviction.
        let once_a_second = usize::try_from(window_s).unwrap();
        for (window, most) in [(open, once_a_second), (by_hook(goes), once_a_second * 3 / 2), (goes, once_a_second * 3 / 2)] {
            let (requested, progress) = play(&draws, window);
            for uid in progress.into_pods().keys() {
                let times = requested.iter().filter(|(_, request)| request.uid == *uid).count();
                // The first failures in a row are followed sooner, and a new token is used at once.
                prop_assert!(times <= most + 8, "{uid:?} was requested {times} times in {window_s} s");
            }
        }
    }

    #[test]
    fn every_pod_that_may_leave_is_requested_to(
        draws in prop::collection::vec(draw(), 1..9), window_s in 40..300_u64,
    ) {
        let window = hard(Instant::now(), window_s);
        let (_, progress) = play(&draws, window);
        for pod in progress.into_pods().values().filter(|pod| pod.deletion.is_none()) {
            prop_assert!(pod.history.last_request().is_some(), "{pod:?} was left alone");
        }
    }
}
