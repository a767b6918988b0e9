use spillway_core::decision::Decision;

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
