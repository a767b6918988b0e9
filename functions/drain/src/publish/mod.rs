//! Tells people: each file here is a view of the receipt.

mod document;
pub(crate) mod emf;
mod events;
mod metrics;
mod node_events;

use std::io::Write as _;

use aws_sdk_eventbridge::Client;
use jiff::Timestamp;

use crate::drain::UnderWay;
use crate::drain::plan::PodName;
use crate::invocation::Invocation;
use crate::node::{Claim, How};
use crate::notice::continued::History;
use crate::receipt::{Begin, Receipt};
use crate::settings::Settings;
use document::{To, document};

/// How long a receipt may be. EventBridge takes 256 KB, with what it adds; the log would take more, but both have the same.
const MOST_BYTES: usize = 240 * 1024;

/// Whether it is this drain's to tell that it has begun: whoever claimed the node tells it, in the first of its
/// invocations.
pub(crate) fn tells_begin(claim: &Claim, history: &History) -> bool {
    match claim.how {
        How::First | How::CordonedByOthers => history.earlier.is_empty(),
        How::Again | How::Joined { .. } => false,
    }
}

/// Whether that has been told by the time the drain is over, by this invocation or by one before it.
pub(crate) fn begin(claim: &Claim, history: &History, under_way: &UnderWay<'_>) -> Begin {
    let by_this_one = tells_begin(claim, history) && under_way.has_begun();
    let by_one_before = claim.how == How::Again || !history.earlier.is_empty();
    if by_this_one || by_one_before { Begin::Told } else { Begin::Untold }
}

/// Tells that a drain is under way and which pods have to leave, on the event bus; and on the node.
pub(crate) async fn announce_begin(
    so_far: &Receipt,
    leaving: &[PodName],
    settings: &Settings,
    eventbridge: &Client,
    invocation: &Invocation,
) {
    let on_the_bus = async {
        if events::is_begin_told(settings) {
            events::tell_begin(eventbridge, so_far, leaving, invocation).await;
        }
    };
    tokio::join!(on_the_bus, node_events::tell_begin(so_far, settings, invocation));
}

/// Writes the receipt and its metrics to the log; then, last of all, tells it on the event bus, and on the node and its
/// pods.
pub(crate) async fn announce(
    receipt: &mut Receipt,
    settings: &Settings,
    eventbridge: &Client,
    invocation: &Invocation,
) {
    let now = invocation.clock.now();
    // Of every pod, whether or not the receipt can name it.
    let metrics = metrics::line(receipt, &settings.metrics_namespace, now);
    cut(receipt, now);
    write([Some(document(receipt, now, To::Log)), metrics]);
    let on_the_bus = async {
        if events::is_end_told(settings, receipt) {
            events::tell_end(eventbridge, document(receipt, now, To::Bus), invocation).await;
        }
    };
    tokio::join!(on_the_bus, node_events::tell_end(receipt, settings, invocation));
}

/// Leaves out the pods that matter least of a receipt that is too long.
fn cut(receipt: &mut Receipt, now: Timestamp) {
    receipt.shorten(document(receipt, now, To::Bus).len().saturating_sub(MOST_BYTES));
}

fn write(lines: [Option<String>; 2]) {
    let mut out = std::io::stdout().lock();
    for line in lines.into_iter().flatten() {
        // A log that cannot be written is not worth failing a drain for, and nobody could be told.
        let _ = writeln!(out, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use jiff::SignedDuration;
    use serde_json::Value;

    use super::document::begun;
    use super::*;
    use crate::aws::instance::{Instance, InstanceState};
    use crate::aws::lifecycle::Completion;
    use crate::drain::blocker::Blocker;
    use crate::drain::deadline::{Grace, Termination, Window};
    use crate::drain::disruptions_allowed::BudgetName;
    use crate::drain::evict::{Answer, Method};
    use crate::drain::plan::{PodUid, Stays, Tier};
    use crate::drain::pod::{PodState, RequestedBy, Tracked};
    use crate::drain::{DrainEnd, DrainReport};
    use crate::failure::Failure;
    use crate::invocation::clock::Clock;
    use crate::notice::continued::Earlier;
    use crate::notice::{Deadline, Home, Hook, InstanceId, Kind, Notice};
    use crate::receipt::{Ending, Fate, StepName};
    use crate::requests::Requests;
    use crate::settings::LifecycleResult;

    fn notice() -> Timestamp {
        "2026-11-21T03:12:00Z".parse().unwrap()
    }

    pub(super) fn after(ms: i64) -> Timestamp {
        notice() + SignedDuration::from_millis(ms)
    }

    fn name_of(pod: &str) -> PodName {
        PodName { namespace: "shop".to_owned(), name: pod.to_owned() }
    }

    pub(super) fn pod(name: &str, state: PodState, told: Option<(Method, Grace)>) -> (PodUid, Tracked) {
        let now = tokio::time::Instant::now();
        let mut tracked = Tracked::new(name_of(name), Tier::Ordinary, Duration::from_secs(30), state, now);
        if let Some((way, grace)) = told {
            tracked.tell(way, grace, now);
            tracked.count(&Answer::Leaving);
        }
        tracked.state = state;
        tracked.gone_at = (state == PodState::Gone).then_some(now);
        (PodUid(format!("uid-of-{name}")), tracked)
    }

    fn invocation() -> Invocation {
        let home = Home { account: "123456789012".to_owned(), region: "us-east-1".to_owned() };
        let mut invocation = Invocation::until(Timestamp::MAX, "r-1", Clock::starting_at(notice()));
        invocation.home = home;
        invocation
    }

    /// A receipt with a pod for each fate.
    pub(super) fn receipt() -> Receipt {
        let hook = Hook { group: "workers".to_owned(), name: "drain".to_owned(), token: None };
        let notice = Notice {
            event_id: "e-1".to_owned(),
            kind: Kind::Terminate,
            instance: InstanceId::parse("i-0123456789abcdef0").unwrap(),
            time: notice(),
            deadline: Deadline::HeldByHook,
            hook: Some(hook),
            maintenance: None,
        };
        let mut receipt = Receipt::begin(&invocation(), &notice, &[]);
        receipt.describe(&Instance {
            id: notice.instance,
            zone: "us-east-1a".to_owned(),
            private_dns_name: None,
            state: InstanceState::Up,
            type_name: Some("m7g.large".to_owned()),
            tags: [("aws:autoscaling:groupName".to_owned(), "workers".to_owned())].into(),
        });
        receipt.cluster = Some("prod".to_owned());
        receipt.claim(&Claim {
            node: "ip-10-0-0-1.ec2.internal".to_owned(),
            how: How::First,
            holder: "e-1".to_owned(),
            labels: [("team".to_owned(), "shop".to_owned())].into(),
        });
        for (step, ms) in [(StepName::Begun, 350), (StepName::Described, 420), (StepName::Claimed, 480)] {
            receipt.step(step, after(ms));
        }
        receipt.step(StepName::Drained, after(9_000));
        receipt.requests = Some(Requests { kubernetes: 23, aws: 5 });
        let clamped = Grace::Clamped(Duration::from_secs(7));
        let web = Blocker::Budget(BudgetName { namespace: "shop".to_owned(), name: "web".to_owned() });
        let (held_uid, mut held) = pod("held", PodState::Held(None), None);
        held.hold = Some(web.clone());
        for _ in 0..4 {
            held.count(&Answer::HeldBy { budget: "web".to_owned() });
        }
        let (forced_uid, mut forced) = pod("forced", PodState::Gone, Some((Method::Delete, clamped)));
        forced.count(&Answer::HeldBySeveral);
        forced.hold = Some(web);
        let pods = BTreeMap::from([
            pod("agent", PodState::Stays(Stays::DaemonSet), None),
            pod("clamped", PodState::Gone, Some((Method::Evict, clamped))),
            pod("clean", PodState::Gone, Some((Method::Evict, Grace::Own))),
            pod("unconfirmed", PodState::Unconfirmed, Some((Method::Evict, Grace::Own))),
            (forced_uid, forced),
            (held_uid, held),
        ]);
        receipt.pods(
            &DrainReport { pods, end: DrainEnd::TimeUp, blind: None },
            (after(9_000), tokio::time::Instant::now()),
        );
        receipt
    }

    fn pretty(line: &str) -> String {
        serde_json::to_string_pretty(&serde_json::from_str::<Value>(line).unwrap()).unwrap()
    }

    #[test]
    fn that_a_drain_has_begun_is_told_by_the_first_invocation_of_the_notice_that_claimed_the_node() {
        let joined = How::Joined { notice: "spot interruption".to_owned(), event: "e-0".to_owned() };
        let now = Timestamp::UNIX_EPOCH;
        let before = Earlier { request_id: "r-0".to_owned(), from: now, to: now, node: None, pods: BTreeMap::new() };
        let mut told = Vec::new();
        for how in [How::First, How::CordonedByOthers, How::Again, joined] {
            for earlier in [vec![], vec![before.clone()]] {
                let claim =
                    Claim { node: "n".to_owned(), how: how.clone(), holder: "e-1".to_owned(), labels: BTreeMap::new() };
                let history = History { notice: Value::Null, instance: None, earlier };
                if tells_begin(&claim, &history) {
                    told.push((how.clone(), history.earlier.len()));
                }
            }
        }
        assert_eq!(told, [(How::First, 0), (How::CordonedByOthers, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_receipt_of_a_drain_as_the_log_has_it() {
        let mut receipt = receipt();
        receipt.step(StepName::Completed, after(9_050));
        receipt.hook(Ok(Completion::Completed), LifecycleResult::Continue);
        receipt.end(Ending::Drained, "all 3 pods that had to leave node ip-10-0-0-1.ec2.internal have gone".to_owned());
        let line = document(&receipt, after(9_060), To::Log);
        insta::assert_snapshot!(pretty(&line));
        // As it is, in its own order: what the queries in template.yaml are tried on.
        insta::assert_snapshot!(line);
    }

    #[tokio::test(start_paused = true)]
    async fn the_event_of_a_drain_that_has_begun() {
        let mut receipt = receipt();
        receipt.pods.clear();
        receipt.requests = None;
        receipt.steps.truncate(3);
        let so_far = receipt.so_far(crate::receipt::ending::not_yet("ip-10-0-0-1.ec2.internal", Kind::Terminate));
        insta::assert_snapshot!(pretty(&begun(&so_far, &[name_of("web-0"), name_of("web-1")], after(560))));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_drain_that_has_begun_as_many_pods_are_named_as_the_event_bus_takes() {
        let mut so_far = receipt();
        so_far.pods.clear();
        let all: Vec<PodName> = (0..2_000).map(|n| name_of(&format!("{n:0>200}"))).collect();

        let event = begun(&so_far, &all, after(560));

        assert!((MOST_BYTES - 400..=MOST_BYTES).contains(&event.len()), "{}", event.len());
        let event: Value = serde_json::from_str(&event).unwrap();
        let (named, cut) = (event["pods"].as_array().unwrap(), event["pods_cut"].as_u64().unwrap());
        assert_eq!(named.len() + usize::try_from(cut).unwrap(), all.len());
        assert_eq!(named[0]["pod"], all[0].to_string());
    }

    #[tokio::test(start_paused = true)]
    async fn a_receipt_that_is_too_long_is_cut_to_the_same_for_log_and_bus_and_the_lost_are_kept() {
        let mut receipt = receipt();
        let clean = receipt.pods.iter().find(|pod| pod.fate == Fate::Clean).unwrap().clone();
        receipt.pods.extend(std::iter::repeat_n(clean, 2_000));
        receipt.end(Ending::Drained, String::new());
        let all = receipt.pods.len();

        cut(&mut receipt, after(9_060));

        let event = document(&receipt, after(9_060), To::Bus);
        let line = document(&receipt, after(9_060), To::Log);
        assert!((MOST_BYTES - 400..=MOST_BYTES).contains(&event.len()), "{}", event.len());
        let (mut event, line): (Value, Value) =
            (serde_json::from_str(&event).unwrap(), serde_json::from_str(&line).unwrap());
        event.as_object_mut().unwrap().remove("node_labels").unwrap();
        assert_eq!(event, line);
        let (kept, cut) = (line["pods"].as_array().unwrap(), line["pods_cut"].as_u64().unwrap());
        assert_eq!(u64::try_from(kept.len()).unwrap() + cut, u64::try_from(all).unwrap());
        assert_eq!((&kept[0]["fate"], &kept[1]["fate"]), (&"left".into(), &"forced".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_says_what_becomes_of_the_hook() {
        let mut receipt = receipt();
        receipt.fail(&Failure::PodsLeft { node: "ip-10-0-0-1.ec2.internal".to_owned(), left: 1, all: 4 });
        let line: Value = serde_json::from_str(&document(&receipt, after(9_060), To::Log)).unwrap();
        assert_eq!(line["level"], "ERROR");
        insta::assert_snapshot!(line["message"].as_str().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn the_metrics_are_in_the_embedded_format() {
        let mut receipt = receipt();
        receipt.end(Ending::Drained, String::new());
        insta::assert_snapshot!(pretty(&metrics::line(&receipt, "Spillway", after(9_060)).unwrap()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_counted_with_the_notice_that_it_followed_and_else_with_the_one_that_holds_the_claim() {
        let now = tokio::time::Instant::now();
        let joined = How::Joined { notice: "spot interruption".to_owned(), event: "e-0".to_owned() };
        let clean = |name, followed| {
            let (uid, mut tracked) = pod(name, PodState::Gone, Some((Method::Evict, Grace::Own)));
            tracked.followed = followed;
            (uid, tracked)
        };
        let counted = |how| {
            let mut receipt = receipt();
            receipt.claim(&Claim { node: "n".to_owned(), how, holder: "e-1".to_owned(), labels: BTreeMap::new() });
            let left = pod("left", PodState::Asked, Some((Method::Evict, Grace::Own)));
            let pods = [
                left,
                clean("ours-1", Some(RequestedBy::ThisDrain)),
                clean("ours-2", Some(RequestedBy::ThisDrain)),
                clean("anothers", Some(RequestedBy::Another)),
                clean("nobodys", None),
            ];
            receipt.pods(&DrainReport { pods: pods.into(), end: DrainEnd::TimeUp, blind: None }, (after(9_000), now));
            receipt.end(Ending::Failed, String::new());
            let line: Value =
                serde_json::from_str(&metrics::line(&receipt, "Spillway", after(9_060)).unwrap()).unwrap();
            ["PodsClean", "PodsFullGrace", "PodsLeft"].map(|metric| line[metric].as_u64().unwrap())
        };
        assert_eq!(counted(How::First), [3, 3, 1]);
        assert_eq!(counted(joined), [2, 2, 1], "what is lost is never kept silent");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_with_pods_on_it_has_no_time_to_empty_and_its_time_left_is_never_negative() {
        let mut receipt = receipt();
        receipt.fail(&Failure::PodsLeft { node: "ip-10-0-0-1.ec2.internal".to_owned(), left: 1, all: 4 });
        let measured = |receipt: &Receipt| {
            let line = metrics::line(receipt, "Spillway", after(9_060)).unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            (line["NoticeToDrained"].as_i64(), line["TimeLeft"].as_i64())
        };
        assert_eq!(measured(&receipt), (None, None), "nothing says when the instance goes");
        let now = tokio::time::Instant::now();
        let goes_after = |seconds| Window {
            start: now,
            end: now,
            instance_goes: Termination::At(now + Duration::from_secs(seconds)),
            margin: Duration::from_secs(2),
        };
        receipt.window(goes_after(120), (after(0), now));
        assert_eq!(measured(&receipt), (None, Some(111_000)));
        receipt.pods.retain(|pod| pod.fate != Fate::Left);
        receipt.window(goes_after(8), (after(0), now));
        assert_eq!(measured(&receipt), (Some(9_000), Some(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_receipt_that_is_handed_on_tells_its_history_and_counts_no_pod_as_left() {
        let mut first = receipt();
        first.step(StepName::HandedOn, after(9_050));
        first.hook_is_held();
        let unfinished = Failure::PodsLeft { node: "ip-10-0-0-1.ec2.internal".to_owned(), left: 1, all: 4 };
        let (ending, reason) = crate::receipt::ending::continued(&unfinished);
        first.end(ending, reason);
        let line: Value = serde_json::from_str(&document(&first, after(9_060), To::Log)).unwrap();
        assert_eq!(line["level"], "INFO");
        insta::assert_snapshot!(line["message"].as_str().unwrap());
        let metrics: Value = serde_json::from_str(&metrics::line(&first, "Spillway", after(9_060)).unwrap()).unwrap();
        assert_eq!((&metrics["PodsLeft"], &metrics["HooksNotCompleted"]), (&0.into(), &0.into()));
        insta::assert_json_snapshot!(first.in_short(after(350), after(9_050)));
    }

    #[test]
    fn an_event_that_is_none_of_ours_has_a_receipt_but_no_metrics() {
        let mut receipt = Receipt::without_notice(&invocation(), None);
        receipt.end(Ending::Ignored, "not handled".to_owned());
        assert_eq!(metrics::line(&receipt, "Spillway", notice()), None);
        assert!(document(&receipt, notice(), To::Log).contains("ignored: not handled"));
    }
}
