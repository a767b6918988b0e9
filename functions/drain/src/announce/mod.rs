//! Tells people: each file here is a view of the receipt.

mod log;
mod metrics;

use std::io::Write as _;

use jiff::Timestamp;

use crate::receipt::Receipt;

/// Writes the receipt and its metrics to the log.
pub(crate) fn announce(receipt: &Receipt, namespace: &str, now: Timestamp) {
    let lines = [Some(log::line(receipt, now)), metrics::line(receipt, namespace, now)];
    let mut out = std::io::stdout().lock();
    for line in lines.into_iter().flatten() {
        // A log that cannot be written is not worth failing a drain for, and nobody could be told.
        let _ = writeln!(out, "{line}");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::BTreeMap;
    use std::time::Duration;

    use jiff::SignedDuration;
    use serde_json::Value;

    use super::*;
    use crate::drain::deadline::{Grace, Window};
    use crate::drain::evict::{Answer, Way};
    use crate::drain::hold::Hold;
    use crate::drain::plan::{PodName, PodUid, Stays, Tier};
    use crate::drain::rooms::BudgetName;
    use crate::drain::tracked::{State, Tracked};
    use crate::drain::{End, Report};
    use crate::failure::Failure;
    use crate::interruption::{Deadline, Hook, InstanceId, Interruption, Kind};
    use crate::lifecycle::Completion;
    use crate::receipt::{Ending, Fate, StepName};
    use crate::settings::LifecycleResult;

    fn notice() -> Timestamp {
        "2026-11-21T03:12:00Z".parse().unwrap()
    }

    fn after(ms: i64) -> Timestamp {
        notice() + SignedDuration::from_millis(ms)
    }

    fn pod(name: &str, state: State, told: Option<(Way, Grace)>) -> (PodUid, Tracked) {
        let now = tokio::time::Instant::now();
        let name_of_it = PodName { namespace: "shop".to_owned(), name: name.to_owned() };
        let mut tracked = Tracked::new(name_of_it, Tier::Ordinary, Duration::from_secs(30), state, now);
        if let Some((way, grace)) = told {
            tracked.tell(way, grace, now);
            tracked.count(&Answer::Leaving);
        }
        tracked.state = state;
        tracked.gone_at = (state == State::Gone).then_some(now);
        (PodUid(format!("uid-of-{name}")), tracked)
    }

    /// A receipt with a pod for each fate.
    fn receipt() -> Receipt {
        let hook = Hook { group: "workers".to_owned(), name: "drain".to_owned(), token: None };
        let interruption = Interruption {
            event_id: "e-1".to_owned(),
            kind: Kind::Terminate,
            instance: InstanceId::parse("i-0123456789abcdef0").unwrap(),
            time: notice(),
            deadline: Deadline::HeldByHook,
            hook: Some(hook),
            maintenance: None,
        };
        let mut receipt = Receipt::begin("r-1", &interruption, &[]);
        receipt.cluster = Some("prod".to_owned());
        receipt.node = Some("ip-10-0-0-1.ec2.internal".to_owned());
        for (step, ms) in [(StepName::Begun, 350), (StepName::Described, 420), (StepName::Claimed, 480)] {
            receipt.step(step, after(ms));
        }
        receipt.step(StepName::Drained, after(9_000));
        let clamped = Grace::Clamped(Duration::from_secs(7));
        let web = Hold::Budget(BudgetName { namespace: "shop".to_owned(), name: "web".to_owned() });
        let (held_uid, mut held) = pod("held", State::Held(None), None);
        held.hold = Some(web.clone());
        for _ in 0..4 {
            held.count(&Answer::HeldBy { budget: "web".to_owned() });
        }
        let (forced_uid, mut forced) = pod("forced", State::Gone, Some((Way::Delete, clamped)));
        forced.count(&Answer::HeldBySeveral);
        forced.hold = Some(web);
        let pods = BTreeMap::from([
            pod("agent", State::Stays(Stays::DaemonSet), None),
            pod("clamped", State::Gone, Some((Way::Evict, clamped))),
            pod("clean", State::Gone, Some((Way::Evict, Grace::Own))),
            pod("unconfirmed", State::Unconfirmed, Some((Way::Evict, Grace::Own))),
            (forced_uid, forced),
            (held_uid, held),
        ]);
        receipt.pods(&Report { pods, end: End::TimeUp, blind: None }, (after(9_000), tokio::time::Instant::now()));
        receipt
    }

    fn pretty(line: &str) -> String {
        serde_json::to_string_pretty(&serde_json::from_str::<Value>(line).unwrap()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_receipt_of_a_drain_as_the_log_has_it() {
        let mut receipt = receipt();
        receipt.step(StepName::Completed, after(9_050));
        receipt.hook(Ok(Completion::Completed), LifecycleResult::Continue);
        receipt.end(Ending::Drained, "all 3 pods that had to leave node ip-10-0-0-1.ec2.internal have gone".to_owned());
        let line = log::line(&receipt, after(9_060));
        insta::assert_snapshot!(pretty(&line));
        // As it is, in its own order: what the queries in template.yaml are tried on.
        insta::assert_snapshot!(line);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_says_what_becomes_of_the_hook() {
        let mut receipt = receipt();
        receipt.fail(&Failure::PodsLeft { node: "ip-10-0-0-1.ec2.internal".to_owned(), left: 1, all: 4 });
        let line: Value = serde_json::from_str(&log::line(&receipt, after(9_060))).unwrap();
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
            instance_goes: Some(now + Duration::from_secs(seconds)),
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
        let (ending, reason) = crate::ending::continued(&unfinished);
        first.end(ending, reason);
        let line: Value = serde_json::from_str(&log::line(&first, after(9_060))).unwrap();
        assert_eq!(line["level"], "INFO");
        insta::assert_snapshot!(line["message"].as_str().unwrap());
        let metrics: Value = serde_json::from_str(&metrics::line(&first, "Spillway", after(9_060)).unwrap()).unwrap();
        assert_eq!((&metrics["PodsLeft"], &metrics["HooksNotCompleted"]), (&0.into(), &0.into()));
        insta::assert_json_snapshot!(first.in_short(after(350), after(9_050)));
    }

    #[test]
    fn an_event_that_is_none_of_ours_has_a_receipt_but_no_metrics() {
        let mut receipt = Receipt::without_interruption("r-1", None);
        receipt.end(Ending::Ignored, "not handled".to_owned());
        assert_eq!(metrics::line(&receipt, "Spillway", notice()), None);
        assert!(log::line(&receipt, notice()).contains("ignored: not handled"));
    }
}
