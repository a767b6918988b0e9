use std::time::Duration;

use kube::Api;
use serde_json::json;
use spillway_core::decision::Reason;
use spillway_core::node::claimant::How;
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Kind};
use spillway_settings::LifecycleResult;
use tokio::time::Instant;

use crate::actions::Next;
use crate::actions::claim::{Claiming, Purpose, claim};
use crate::context::Context;
use crate::failure::Failure;
use crate::node::{Rehearsed, rehearse};
use crate::receipt::record::{HookStatus, Record};
use crate::test_support::api_server::{self, NODE, NODE_PATH, list, node, status};
use crate::test_support::aws::{completed, heartbeat, hook_described, waits_no_more};
use crate::test_support::context::{Case, TestContext, client};
use crate::test_support::script::{Expected, call};

fn patch() -> Expected {
    call(format!("PATCH {NODE_PATH}")).with("spillway~1claim")
}

/// The claim's node and how it went, or what the notice came to.
async fn claimed(context: &Context, case: &Case, record: &mut Record) -> Result<Result<(String, How), Next>, Failure> {
    let attempt = case.attempt(context).await;
    let target = case.target(&attempt);
    match attempt.hold_action_during(claim(context, &target, Purpose::Drain, record)).await? {
        Claiming::Claimed(node) => Ok(Ok((node.claim.node, node.claim.how))),
        Claiming::Ended(next) => Ok(Err(next)),
    }
}

async fn of_spot(api: impl IntoIterator<Item = Expected>) -> Result<Result<(String, How), Next>, Failure> {
    let context = TestContext::new(&[], api, []);
    claimed(&context, &Case::spot(), &mut Record::default()).await
}

#[tokio::test(start_paused = true)]
async fn the_first_request_is_the_patch_that_claims() {
    let patch = patch().with(r#"{"op":"add","path":"/spec/unschedulable","value":true}"#).with("fieldManager=spillway");
    let context = TestContext::new(&[], [patch.says(200, node())], []);
    let mut record = Record::default();
    let claimed = claimed(&context, &Case::spot(), &mut record).await.unwrap();
    assert_eq!(claimed, Ok((NODE.to_owned(), How::First)));
    assert_eq!(record.node.as_deref(), Some(NODE));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_untouched_is_looked_at_and_claimed_as_it_is() {
    let mut cordoned = node();
    cordoned["spec"]["unschedulable"] = json!(true);
    let claimed = of_spot([
        patch().says(422, status(422, "Invalid", "nodes")),
        call(format!("GET {NODE_PATH}")).says(200, &cordoned),
        patch().without(r#""op":"add","path":"/spec/unschedulable""#).says(200, &cordoned),
    ]);
    assert_eq!(claimed.await.unwrap(), Ok((NODE.to_owned(), How::CordonedByOthers)));
}

#[tokio::test(start_paused = true)]
async fn a_node_with_the_label_that_opts_out_is_left_alone() {
    let mut ours_not = node();
    ours_not["metadata"]["labels"]["spillway/ignore"] = json!("true");
    let claimed = of_spot([
        patch().says(422, status(422, "Invalid", "nodes")),
        call(format!("GET {NODE_PATH}")).says(200, ours_not),
    ]);
    assert_eq!(claimed.await.unwrap(), Err(Outcome::Ignored(Reason::OptedOut(NODE.to_owned())).into()));
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_a_node_is_let_go() {
    let context = TestContext::new(
        &[],
        [
            patch().says(404, status(404, "NotFound", "nodes")),
            call("GET /api/v1/nodes").with("limit=100").says(200, list("Node", &[])),
        ],
        [hook_described(), completed("CONTINUE")],
    );
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let claiming = claim(&context, &case.target(&attempt), Purpose::Drain, &mut record).await.unwrap();
    assert!(matches!(claiming, Claiming::Ended(Next::Done(Outcome::Ignored(Reason::NoNode { .. })))));
    assert_eq!(record.hook, HookStatus::Completed(LifecycleResult::Continue));
}

#[tokio::test(start_paused = true)]
async fn a_likely_name_that_is_another_instances_is_passed_over_for_the_next() {
    let mut others = node();
    others["spec"]["providerID"] = json!("aws:///us-east-1a/i-0fffffffffffffff0");
    let mut case = Case::spot();
    case.instance.private_dns_name = Some("ip-10-0-0-1.ec2.internal".to_owned());
    let context = TestContext::new(
        &[],
        [
            call("PATCH /api/v1/nodes/ip-10-0-0-1.ec2.internal").says(422, status(422, "Invalid", "nodes")),
            call("GET /api/v1/nodes/ip-10-0-0-1.ec2.internal").says(200, others),
            patch().says(200, node()),
        ],
        [],
    );
    let claimed = claimed(&context, &case, &mut Record::default()).await.unwrap();
    assert_eq!(claimed, Ok((NODE.to_owned(), How::First)));
}

#[tokio::test(start_paused = true)]
async fn a_node_of_an_unlikely_name_is_found_by_its_provider_id() {
    let mut odd = node();
    odd["metadata"]["name"] = json!("odd");
    let mut first_page = list("Node", &[odd.clone()]);
    first_page["metadata"]["continue"] = json!("after-odd");
    let claimed = of_spot([
        patch().says(404, status(404, "NotFound", "nodes")),
        call("GET /api/v1/nodes").with("limit=100").says(200, first_page),
        call("PATCH /api/v1/nodes/odd").says(200, odd),
    ]);
    assert_eq!(claimed.await.unwrap(), Ok(("odd".to_owned(), How::First)));
}

/// etcd keeps no version for longer than some minutes: a search that stood still may be told so in the middle.
#[tokio::test(start_paused = true)]
async fn a_search_whose_next_page_has_been_compacted_begins_again() {
    let odd = |name: &str, provider_id: &str| {
        let mut odd = node();
        (odd["metadata"]["name"], odd["spec"]["providerID"]) = (json!(name), json!(provider_id));
        odd
    };
    let (other, ours) =
        (odd("other", "aws:///us-east-1a/i-1"), odd("odd", node()["spec"]["providerID"].as_str().unwrap()));
    let first_page = || {
        let mut page = list("Node", std::slice::from_ref(&other));
        page["metadata"]["continue"] = json!("after-other");
        call("GET /api/v1/nodes").with("limit=100").without("continue=").says(200, page)
    };
    let guesses_wrong = || patch().says(404, status(404, "NotFound", "nodes"));
    let claimed = of_spot([
        guesses_wrong(),
        first_page(),
        call("GET /api/v1/nodes").with("continue=after-other").says(410, status(410, "Expired", "")),
        guesses_wrong(),
        first_page(),
        call("GET /api/v1/nodes").with("continue=after-other").says(200, list("Node", std::slice::from_ref(&ours))),
        call("PATCH /api/v1/nodes/odd").says(200, ours),
    ]);
    assert_eq!(claimed.await.unwrap(), Ok(("odd".to_owned(), How::First)));
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_provider_id_has_another_form_is_claimed_by_the_one_that_was_read() {
    for provider_id in ["aws:////i-0123456789abcdef0", "i-0123456789abcdef0"] {
        let mut odd = node();
        odd["spec"]["providerID"] = json!(provider_id);
        let claimed = of_spot([
            patch().says(422, status(422, "Invalid", "nodes")),
            call(format!("GET {NODE_PATH}")).says(200, &odd),
            patch().with(format!(r#""path":"/spec/providerID","value":"{provider_id}""#)).says(200, &odd),
        ]);
        assert_eq!(claimed.await.unwrap(), Ok((NODE.to_owned(), How::First)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again() {
    let failures = [
        patch().says(401, status(401, "Unauthorized", "")),
        patch().says(503, "busy"),
        patch().says(404, "no such path"),
        patch().lost(),
    ];
    for failure in failures {
        let claimed = of_spot([failure, patch().says(200, node())]).await;
        assert_eq!(claimed.unwrap(), Ok((NODE.to_owned(), How::First)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_gets_no_answer_is_given_up_and_made_again_if_the_instance_may_stay() {
    let began = Instant::now();
    let context = TestContext::new(&[], [patch(), patch().says(200, node())], []);
    let case = Case::of(Kind::Rebalance, Deadline::Open);
    let claimed = claimed(&context, &case, &mut Record::default()).await;
    assert_eq!(claimed.unwrap(), Ok((NODE.to_owned(), How::First)));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_told_at_once() {
    let failure = of_spot([patch().says(403, status(403, "Forbidden", "nodes"))]).await.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesDenied");
    assert!(failure.text().contains("apply deploy/rbac.yaml"), "{}", failure.text());
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_a_webhook_refuses_is_done_without_only_if_the_instance_goes() {
    let refused = |code| {
        let said = status(code, "", "nodes").replace("why", "admission webhook 'w' denied the request");
        [patch().says(code, said)]
    };
    for code in [403, 422, 429] {
        let Ok((node, How::Denied(status))) = of_spot(refused(code)).await.unwrap() else { panic!("{code}") };
        assert_eq!((node.as_str(), status.code), (NODE, code));
    }
    for case in [Case::of(Kind::Stopping, Deadline::Unknown), Case::held(Kind::Terminate)] {
        let aws = case.notice.hook.iter().flat_map(|_| [hook_described(), heartbeat().perhaps()]);
        let context = TestContext::new(&[], refused(403), aws);
        let claimed = claimed(&context, &case, &mut Record::default()).await.unwrap();
        assert!(matches!(claimed, Ok((_, How::Denied(_)))), "{claimed:?}");
    }
    let context = TestContext::new(&[], refused(403), []);
    let case = Case::of(Kind::Rebalance, Deadline::Open);
    let failure = claimed(&context, &case, &mut Record::default()).await.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesDenied");
    assert!(!failure.text().contains("rbac"), "{}", failure.text());
}

/// A webhook's pods may be on the very nodes that go.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_answered_with_errors_for_five_seconds_is_done_without_if_the_instance_goes() {
    let down = || patch().says(500, status(500, "InternalError", "nodes").replace("why", "failed calling webhook 'w'"));
    let began = Instant::now();
    let look = call(format!("GET {NODE_PATH}")).says(200, node());
    let Ok((name, How::Denied(status))) = of_spot([down().repeated(), look]).await.unwrap() else { panic!() };
    assert_eq!((name.as_str(), status.code), (NODE, 500));
    assert!((5..8).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());

    let mut opted_out = node();
    opted_out["metadata"]["labels"]["spillway/ignore"] = json!("true");
    let look = call(format!("GET {NODE_PATH}")).says(200, opted_out);
    let outcome = of_spot([down().repeated(), look]).await.unwrap();
    assert_eq!(outcome, Err(Outcome::Ignored(Reason::OptedOut(NODE.to_owned())).into()));

    let made = call(format!("GET {NODE_PATH}")).says(200, api_server::claimed(Kind::Spot.as_str(), "e-1", "r-1"));
    let outcome = of_spot([down().repeated(), made]).await.unwrap();
    assert_eq!(outcome, Ok((NODE.to_owned(), How::Again)), "an answer may be an error although the claim was made");

    let context = TestContext::new(&[], [down().repeated()], []);
    let failure = claimed(&context, &Case::of(Kind::Rebalance, Deadline::Open), &mut Record::default()).await;
    assert_eq!(failure.unwrap_err().error_type(), "KubernetesRefused");
}

/// The API server waits for a webhook for 30 s at most, and says nothing meanwhile.
#[tokio::test(start_paused = true)]
async fn a_claim_that_gets_no_answer_is_done_without_if_the_instance_goes() {
    let began = Instant::now();
    let look = call(format!("GET {NODE_PATH}")).says(200, node());
    let Ok((name, How::Denied(status))) = of_spot([patch(), look]).await.unwrap() else { panic!() };
    assert_eq!((name.as_str(), status.message.as_str()), (NODE, "the API server did not answer within 15 s"));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_is_not_let_in_to_the_end_is_told_so() {
    let refused = patch().says(401, status(401, "Unauthorized", "")).repeated();
    let failure = of_spot([refused]).await.unwrap_err();
    assert_eq!((failure.error_type(), failure.unfinished()), ("KubernetesDenied", None));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_over_before_the_claim_ends_the_notice() {
    let over = call("RecordLifecycleActionHeartbeat").says(400, waits_no_more());
    let unanswered = [patch().repeated(), call(format!("GET {NODE_PATH}")).perhaps().repeated()];
    let context = TestContext::new(&[], unanswered, [hook_described(), heartbeat(), over]);
    let mut record = Record::default();
    let claimed = claimed(&context, &Case::held(Kind::Terminate), &mut record).await.unwrap();
    assert_eq!(claimed, Err(Outcome::Ignored(Reason::HookIsOver).into()));
    assert_eq!(record.hook, HookStatus::AlreadyOver(None));
}

#[tokio::test(start_paused = true)]
async fn a_return_to_the_warm_pool_whose_hook_is_over_claims_nothing() {
    let heartbeat = || call("RecordLifecycleActionHeartbeat");
    let aws = [hook_described(), heartbeat().lost(), heartbeat().says(400, waits_no_more())];
    let context = TestContext::new(&[], [], aws);
    let claimed = claimed(&context, &Case::held(Kind::ReturnToWarmPool), &mut Record::default()).await.unwrap();
    assert_eq!(claimed, Err(Outcome::Ignored(Reason::HookIsOver).into()));
}

#[tokio::test(start_paused = true)]
async fn the_claim_of_another_notice_stays_its_own() {
    let theirs = api_server::claimed(Kind::Spot.as_str(), "e-0", "r-0");
    let api = [patch().says(422, status(422, "Invalid", "nodes")), call(format!("GET {NODE_PATH}")).says(200, theirs)];
    let (context, case) = (TestContext::new(&[], api, []), Case::spot());
    let attempt = case.attempt(&context).await;
    let claiming = claim(&context, &case.target(&attempt), Purpose::Drain, &mut Record::default()).await.unwrap();
    let Claiming::Claimed(node) = claiming else { panic!("its pods have to leave too") };
    assert_eq!((node.claim.is_joined(), node.claim.holder.as_str()), (true, "e-0"));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_rehearsed_changes_nothing_and_tells_a_webhook_from_a_right_that_is_missing() {
    let said = |code, message: &str| status(code, "", "nodes").replace("why", message);
    let missing = r#"nodes \"n-1\" is forbidden: User \"spillway\" cannot patch"#;
    for (code, answer, expected) in [
        (200, node().to_string(), "Passes"),
        (403, said(403, "admission webhook 'w' denied the request"), "Denied"),
        (500, said(500, "failed calling webhook 'w'"), "Denied"),
        (422, said(422, "the test failed"), "NotFree"),
        (404, status(404, "NotFound", "nodes"), "NotFree"),
        (403, said(403, missing), "Failed"),
    ] {
        let context = TestContext::new(&[], [patch().with("dryRun=All").says(code, answer)], []);
        let case = Case::spot();
        let attempt = case.attempt(&context).await;
        let (nodes, node) = (Api::all(client(&context).await), serde_json::from_value(node()).unwrap());
        let rehearsed = match rehearse(&nodes, &node, &case.target(&attempt).claimant()).await {
            Ok(Rehearsed::Passes) => "Passes",
            Ok(Rehearsed::Denied(_)) => "Denied",
            Ok(Rehearsed::NotFree) => "NotFree",
            Err(_) => "Failed",
        };
        assert_eq!(rehearsed, expected, "{code}");
    }
}
