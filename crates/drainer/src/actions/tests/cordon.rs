use serde_json::json;
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Kind};
use spillway_settings::LifecycleResult;
use tokio::time::Instant;

use crate::actions::cordon::cordon;
use crate::receipt::record::{HookStatus, Record};
use crate::test_support::api_server::{NODE, NODE_PATH, node, status};
use crate::test_support::aws::{completed, hook_described, json_error, not_scheduled, scheduled};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

fn claim() -> Expected {
    call(format!("PATCH {NODE_PATH}")).says(200, node())
}

#[tokio::test(start_paused = true)]
async fn a_node_is_cordoned_its_pods_stay_and_its_hook_is_completed() {
    let context = TestContext::new(&[], [claim()], [hook_described(), completed("CONTINUE")]);
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let outcome = cordon(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(outcome, Outcome::Cordoned { node: NODE.to_owned() }.into());
    assert_eq!(record.hook, HookStatus::Completed(LifecycleResult::Continue));
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_a_webhook_refuses_is_a_failure_whatever_becomes_of_the_instance() {
    let said = status(403, "", "nodes").replace("why", "admission webhook 'w' denied the request");
    let context = TestContext::new(&[], [call(format!("PATCH {NODE_PATH}")).says(403, said)], []);
    let case = Case::spot();
    let attempt = case.attempt(&context).await;
    let failure = cordon(&context, &case.target(&attempt), &mut Record::default()).await.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesDenied");
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_is_answered_with_errors_is_tried_to_the_end() {
    let busy = call(format!("PATCH {NODE_PATH}")).says(503, "busy").repeated();
    let (context, case, began) = (TestContext::new(&[], [busy], []), Case::spot(), Instant::now());
    let attempt = case.attempt(&context).await;
    let failure = cordon(&context, &case.target(&attempt), &mut Record::default()).await.unwrap_err();
    assert_eq!((failure.error_type(), began.elapsed().as_secs()), ("KubernetesRefused", 120));
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_may_be_undone_has_its_check_scheduled() {
    let check = scheduled(&format!("{NODE}.rebalance-recommendation.0"))
        .with("at(1970-01-01T01:00:15)")
        .with("spillway-undo-check");
    let context = TestContext::new(&[], [claim()], [check]);
    let case = Case::of(Kind::Rebalance, Deadline::Open);
    let attempt = case.attempt(&context).await;
    let outcome = cordon(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert_eq!(outcome, Outcome::Cordoned { node: NODE.to_owned() }.into());
}

#[tokio::test(start_paused = true)]
async fn a_check_that_cannot_be_scheduled_fails_the_notice_when_the_hook_is_completed() {
    let denied = call(format!("POST /schedules/{NODE}.{}.0", Kind::ReplaceRootVolume.as_str().replace(' ', "-")))
        .says(403, json_error("AccessDeniedException"));
    let looked_at = call(format!("GET {NODE_PATH}")).says(200, node());
    let context = TestContext::new(&[], [looked_at, claim()], [hook_described(), denied, completed("CONTINUE")]);
    let (case, mut record) = (Case::held(Kind::ReplaceRootVolume), Record::default());
    let attempt = case.attempt(&context).await;
    let failure = cordon(&context, &case.target(&attempt), &mut record).await.unwrap_err();
    assert_eq!(failure.error_type(), "AwsDenied");
    assert_eq!(record.hook, HookStatus::Completed(LifecycleResult::Continue));
}

#[tokio::test(start_paused = true)]
async fn maintenance_that_has_begun_takes_away_what_was_scheduled_for_it() {
    let deleted = call(format!("DELETE /schedules/{NODE}.M-1")).says(200, json!({}));
    let looked_at = call(format!("GET {NODE_PATH}")).says(200, node());
    let context = TestContext::new(&[], [looked_at, claim()], [deleted, not_scheduled(&format!("{NODE}.M-1.again"))]);
    let mut case = Case::spot();
    case.notice.kind = Kind::Maintenance;
    case.notice.maintenance = Some(spillway_notice::Maintenance { id: "M-1".to_owned(), reboots: false, starts: None });
    let attempt = case.attempt(&context).await;
    let outcome = cordon(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert_eq!(outcome, Outcome::Cordoned { node: NODE.to_owned() }.into());
}
