//! Properties of drains with arbitrary pods and answers.

use proptest::prelude::*;

use super::waiting::deleted;
use super::*;

/// A drawn pod: its grace, its tier, its do-not-disrupt annotation, time and grace of an earlier deletion, and its answers in turn.
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
        1 => Just(unauthorized()),
        1 => Just(Answer::Forbidden { message: "403".to_owned() }),
        1 => Just(refused()),
        1 => retry_after().prop_map(|retry_after| Answer::ServerError { message: "500".to_owned(), retry_after }),
        1 => Just(unanswered()),
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

/// Index of the pod's draw.
fn number(pod: &Tracked) -> usize {
    pod.name.name[2..].parse().unwrap()
}

/// The window of an instance that a hook holds.
fn by_hook(window: Window) -> Window {
    Window { instance_goes: Termination::AtTheLatest(window.end), ..window }
}

/// A request and its time from the start.
type Requested = (Duration, LeaveRequest);

/// Drains until the window ends. Each request gets the pod's next answer at once, and the last answer for ever.
fn play(draws: &[Draw], window: Window) -> (Vec<Requested>, Progress) {
    let pods: Vec<Pod> = draws.iter().enumerate().map(|(n, draw)| pod_of(n, draw)).collect();
    let mut progress = drain(&pods, window, window.start);
    let mut requested = Vec::new();
    let mut now = window.start;
    let mut steps = 0;
    while now < window.end && progress.end().is_none() {
        steps += 1;
        assert!(steps < 20_000, "endless, {:?} after the start: {progress:?}", now - window.start);
        for request in progress.requests(now) {
            let n: usize = request.name.name[2..].parse().unwrap();
            let times = requested.iter().filter(|(_, before): &&Requested| before.uid == request.uid).count();
            let answers = &draws[n].answers;
            progress.answered(&request.uid, answers[times.min(answers.len() - 1)].clone(), now);
            requested.push((now - window.start, request));
        }
        if progress.is_node_watch_due(now) {
            progress.node_watch_started();
            progress.kubelet_observed(Kubelet::Answers, now);
        }
        now = progress.next_due(now).unwrap_or(window.end).min(window.end);
    }
    (requested, progress)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn fixed_end_forces_blocked_pods_and_clamps_by_the_time_left(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64,
    ) {
        let window = hard(Instant::now(), window_s);
        let (requested, progress) = play(&draws, window);
        let pods = progress.into_pods();
        for (at, request) in &requested {
            let pod = &pods[&request.uid];
            if request.method == Method::Delete {
                prop_assert!(2 * *at >= seconds(window_s), "before half: {request:?} at {at:?}");
                prop_assert!(*at + pod.grace + MARGIN >= seconds(window_s), "before its last safe moment: {request:?} at {at:?}");
                prop_assert!(pod.blocked.last().is_some(), "not blocked: {request:?}");
            }
            let given = match request.grace {
                Grace::Own => pod.grace,
                Grace::Clamped(given) => given,
            };
            prop_assert!(given <= seconds(window_s).saturating_sub(*at + MARGIN).max(seconds(1)), "{request:?} at {at:?}");
            if let Some(Deletion { since, by }) = pod.deletion {
                prop_assert!(request.grace != Grace::Own, "the API server makes nothing of {request:?}");
                prop_assert!(since + given > window.start + *at, "killed at once: {request:?} at {at:?}");
                prop_assert!(since + given < by && by > window.end, "needless: {request:?} at {at:?}");
            }
        }
    }

    #[test]
    fn fixed_end_requests_each_pod_and_forces_it_in_time(
        draws in prop::collection::vec(draw(), 1..9), window_s in 40..300_u64,
    ) {
        let window = hard(Instant::now(), window_s);
        let (requested, progress) = play(&draws, window);
        for (uid, pod) in progress.into_pods() {
            prop_assert!(pod.deletion.is_some() || pod.history.last_request().is_some(), "left alone: {pod:?}");
            let forced = window.forced_from(pod.grace).unwrap();
            let requests: Vec<&Requested> = requested.iter().filter(|(_, request)| request.uid == uid).collect();
            match requests.iter().position(|(_, request)| request.method == Method::Delete) {
                // Deleted then, or once its blocker is known.
                Some(first) => {
                    let known = first.checked_sub(1).map_or(Duration::ZERO, |before| requests[before].0);
                    prop_assert_eq!(requests[first].0, known.max(forced - window.start), "{:?}", pod);
                }
                None => prop_assert!(!pod.waits() || pod.blocked.by().is_none() || forced >= window.end, "{pod:?}"),
            }
        }
    }

    #[test]
    fn unknown_end_shortens_no_grace_and_has_no_tiers(
        draws in prop::collection::vec(draw(), 1..9), respected_s in 0..300_u64,
    ) {
        let window = soon(Instant::now(), respected_s);
        let (requested, progress) = play(&draws, window);
        for (at, request) in &requested {
            prop_assert_eq!(request.grace, Grace::Own);
            prop_assert!(request.method == Method::Evict || *at >= seconds(respected_s), "{request:?} at {at:?}");
        }
        for (uid, pod) in progress.into_pods() {
            let first = requested.iter().find(|(_, request)| request.uid == uid).map(|(at, _)| *at);
            let is_free = !draws[number(&pod)].do_not_disrupt && pod.deletion.is_none();
            prop_assert!(!is_free || first == Some(Duration::ZERO), "waits for another pod: {pod:?}");
        }
    }

    #[test]
    fn free_pod_is_requested_in_time_for_its_grace_and_its_budget(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64, hook in any::<bool>(),
    ) {
        let window = hard(Instant::now(), window_s);
        let window = if hook { by_hook(window) } else { window };
        let (requested, progress) = play(&draws, window);
        let pods = progress.into_pods();
        let is_free = |pod: &Tracked| !draws[number(pod)].do_not_disrupt && pod.deletion.is_none();
        for pod in pods.values().filter(|pod| is_free(pod)) {
            let first = pod.history.requested_at();
            prop_assert!(first.is_some() && first <= window.last_safe_moment(pod.grace), "{pod:?}");
        }
        let deletions = requested.iter().filter(|(_, request)| request.method == Method::Delete && window_s >= 50);
        for (at, pod) in deletions.map(|(at, request)| (at, &pods[&request.uid])) {
            let first = pod.history.requested_at().unwrap() - window.start;
            prop_assert!(!is_free(pod) || first + seconds(20) <= *at, "{pod:?} at {at:?}, requested at {first:?}");
        }
    }

    #[test]
    fn no_pod_is_requested_repeatedly_without_a_pause(
        draws in prop::collection::vec(draw(), 1..9), window_s in 1..300_u64,
    ) {
        let goes = hard(Instant::now(), window_s);
        let stays = Window { instance_goes: Termination::MayStay, ..goes };
        // Once a second, the least Retry-After; in the half of the window in which a pod may be forced, a deletion after each
        // eviction.
        let once_a_second = usize::try_from(window_s).unwrap();
        for (window, most) in [(stays, once_a_second), (by_hook(goes), once_a_second * 3 / 2), (goes, once_a_second * 3 / 2)] {
            let (requested, progress) = play(&draws, window);
            for uid in progress.into_pods().keys() {
                let times = requested.iter().filter(|(_, request)| request.uid == *uid).count();
                // The first failures in a row are followed sooner, and a new token is used at once.
                prop_assert!(times <= most + 8, "{uid:?} was requested {times} times in {window_s} s");
            }
        }
    }
}
