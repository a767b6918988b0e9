use serde_json::json;
use spillway_core::decision::{Decision, Reason, begins};
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Kind};
use tokio::time::Instant;

use super::done;
use crate::actions::dry_run::dry_run;
use crate::context::Attempt;
use crate::receipt::record::{HookStatus, Record};
use crate::test_support::api_server::{NODE, NODE_PATH, list, node, pod, status};
use crate::test_support::at;
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

const DRY: [(&str, &str); 1] = [("SPILLWAY_DRY_RUN", "true")];

fn looked_at() -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, node())
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_tried_with_evictions_that_change_nothing() {
    let evicted = call("POST /api/v1/namespaces/shop/pods/a/eviction").with("dryRun=All").with(r#""dryRun":["All"]"#);
    let context = TestContext::new(
        &DRY,
        [
            looked_at(),
            call("GET /api/v1/pods").with("spec.nodeName").says(200, list("Pod", &[pod("a")])),
            evicted.says(201, json!({"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201})),
        ],
        [],
    );
    let (case, mut record) = (Case::spot(), Record::default());
    let attempt = case.attempt(&context).await;
    let outcome = done(dry_run(&context, Decision::Drain, &case.target(&attempt), &mut record).await.unwrap());
    let drained = format!("dry run: would have drained node {NODE}: 1 pod would leave, 0 would be blocked");
    assert_eq!(outcome.to_string(), drained);
    assert_eq!(record.hook, HookStatus::Left);
    assert_eq!(record.pods.iter().map(|pod| pod.evictions).collect::<Vec<_>>(), [1]);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_without_an_answer_is_waited_for_ten_seconds() {
    let calls = [
        looked_at(),
        call("GET /api/v1/pods").says(200, list("Pod", &[pod("a")])),
        call("POST /api/v1/namespaces/shop/pods/a/eviction"),
    ];
    let (context, began) = (TestContext::new(&DRY, calls, []), Instant::now());
    let (case, mut record) = (Case::spot(), Record::default());
    let attempt = case.attempt(&context).await;
    drop(dry_run(&context, Decision::Drain, &case.target(&attempt), &mut record).await.unwrap());
    assert_eq!((record.pods.len(), began.elapsed().as_secs()), (1, 10));
}

#[tokio::test(start_paused = true)]
async fn every_other_decision_is_told_after_a_look_at_the_node() {
    let decisions = [
        (Decision::Cordon, "cordoned node"),
        (Decision::Undo, "given node"),
        (Decision::OutOfService, "declared node"),
        (Decision::NodeClaim, "deleted the NodeClaim"),
        (Decision::AwaitReady, "completed the launch hook as soon"),
        (Decision::Complete, "completed the launch hook at once"),
    ];
    for (decision, would) in decisions {
        let context = TestContext::new(&DRY, [looked_at()], []);
        let case = Case::spot();
        let attempt = case.attempt(&context).await;
        let outcome = done(dry_run(&context, decision, &case.target(&attempt), &mut Record::default()).await.unwrap());
        assert!(outcome.to_string().starts_with(&format!("dry run: would have {would}")), "{outcome}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_begins_later_is_told_with_its_time() {
    let context = TestContext::new(&DRY, [looked_at()], []);
    let case = Case::of(Kind::Maintenance, Deadline::Hard(at("1970-01-03T00:00:00Z")));
    let attempt = case.attempt(&context).await;
    let target = case.target(&attempt);
    let outcome = done(dry_run(&context, Decision::Cordon, &target, &mut Record::default()).await.unwrap());
    let begins = begins(&case.notice, &context.settings);
    let waited = format!("dry run: would have waited until {begins}, and then cordoned node {NODE}");
    assert!(outcome.to_string().starts_with(&waited), "{outcome}");
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_ignored_costs_no_request() {
    let context = TestContext::new(&DRY, [], []);
    let case = Case::spot();
    let attempt = case.attempt(&context).await;
    let ignore = Decision::Ignore(Reason::AutoMode);
    let outcome = done(dry_run(&context, ignore, &case.target(&attempt), &mut Record::default()).await.unwrap());
    assert_eq!(outcome, Outcome::Ignored(Reason::AutoMode));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_there_is_told_and_its_hook_is_left_waiting() {
    for has_hook in [false, true] {
        let context = TestContext::new(
            &DRY,
            [
                call(format!("GET {NODE_PATH}")).says(404, status(404, "NotFound", "nodes")),
                call("GET /api/v1/nodes").says(200, list("Node", &[])),
            ],
            [],
        );
        let case = if has_hook { Case::held(Kind::Terminate) } else { Case::spot() };
        let Case { notice, history, invocation, .. } = &case;
        let attempt = Attempt::new(notice, history, invocation, None, &context.settings);
        let target = case.target(&attempt);
        let outcome = done(dry_run(&context, Decision::Drain, &target, &mut Record::default()).await.unwrap());
        assert_eq!(matches!(outcome, Outcome::WouldHave(_)), has_hook, "{outcome:?}");
    }
}
