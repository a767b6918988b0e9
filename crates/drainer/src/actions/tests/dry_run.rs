use spillway_core::decision::{Decision, begins};

use super::*;
use crate::actions::dry_run::dry_run;
use crate::context::Attempt;

const DRY: [(&str, &str); 1] = [("SPILLWAY_DRY_RUN", "true")];

async fn rehearsed(case: &Case, decision: Decision, api: impl IntoIterator<Item = Expected>) -> (Outcome, Record) {
    let (context, mut record) = (TestContext::new(&DRY, api, []), Record::default());
    // As in the handler, a dry run has no action to which it could send anything.
    let Case { notice, history, invocation, .. } = case;
    let attempt = Attempt::new(notice, history, invocation, None, &context.settings);
    let outcome = dry_run(&context, decision, &case.target(&attempt), &mut record).await.unwrap();
    (done(outcome), record)
}

#[tokio::test(start_paused = true)]
async fn drain_is_tested_with_evictions_that_change_nothing() {
    let evicted = call("POST /api/v1/namespaces/shop/pods/a/eviction").with("dryRun=All").with(r#""dryRun":["All"]"#);
    let evicted = evicted.says(201, json!({"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201}));
    let api = [read_node(node()), list_pods(&[pod("a")]), evicted];
    let (outcome, record) = rehearsed(&Case::spot(), Decision::Drain, api).await;
    let drained = format!("dry run: would have drained node {NODE}: 1 pod would leave, 0 would be blocked");
    assert_eq!((outcome.to_string(), record.hook), (drained, HookStatus::Left));
    assert_eq!(record.pods.iter().map(|pod| pod.evictions).collect::<Vec<_>>(), [1]);
}

#[tokio::test(start_paused = true)]
async fn eviction_in_a_dry_run_has_ten_seconds() {
    let unanswered = call("POST /api/v1/namespaces/shop/pods/a/eviction");
    let began = Instant::now();
    let api = [read_node(node()), list_pods(&[pod("a")]), unanswered];
    let (_, record) = rehearsed(&Case::spot(), Decision::Drain, api).await;
    assert_eq!((record.pods.len(), began.elapsed().as_secs()), (1, 10));
}

#[tokio::test(start_paused = true)]
async fn other_decisions_are_described_after_one_read_of_the_node() {
    for (decision, would) in [
        (Decision::Cordon, "cordoned node"),
        (Decision::Undo, "uncordoned node"),
        (Decision::OutOfService, "declared node"),
        (Decision::NodeClaim, "deleted the NodeClaim"),
        (Decision::AwaitReady, "completed the launch hook as soon"),
        (Decision::Complete, "completed the launch hook at once"),
    ] {
        let (outcome, _) = rehearsed(&Case::spot(), decision, [read_node(node())]).await;
        assert!(outcome.to_string().starts_with(&format!("dry run: would have {would}")), "{outcome}");
    }
}

#[tokio::test(start_paused = true)]
async fn later_drain_is_described_with_its_begin() {
    let case = Case::of(Kind::Maintenance, Deadline::Hard(at("1970-01-03T00:00:00Z")));
    let (outcome, _) = rehearsed(&case, Decision::Cordon, [read_node(node())]).await;
    let begins = begins(&case.notice, &crate::test_support::settings(&DRY));
    let waited = format!("dry run: would have waited until {begins} and then cordoned node {NODE}");
    assert!(outcome.to_string().starts_with(&waited), "{outcome}");
}

#[tokio::test(start_paused = true)]
async fn ignored_notice_costs_no_request() {
    let (outcome, _) = rehearsed(&Case::spot(), Decision::Ignore(Reason::NothingLeft), []).await;
    assert_eq!(outcome, Outcome::Ignored(Reason::NothingLeft));
}

#[tokio::test(start_paused = true)]
async fn hook_without_a_node_would_be_completed() {
    for (case, has_hook) in [(Case::spot(), false), (Case::held(Kind::Terminate), true)] {
        let api = [no_node(), call("GET /api/v1/nodes").says(200, list("Node", &[]))];
        let (outcome, _) = rehearsed(&case, Decision::Drain, api).await;
        assert_eq!(matches!(outcome, Outcome::WouldHave(_)), has_hook, "{outcome:?}");
    }
}
