use kube::Api;
use spillway_core::node::claimant::ClaimResult;

use super::*;
use crate::actions::claim::{Claiming, Purpose, claim};
use crate::node::{Rehearsed, rehearse};
use crate::test_support::context::client;

fn patch() -> Expected {
    patch_node().with("spillway~1claim")
}

/// Likely names that lead to no node.
fn wrong_guess() -> Expected {
    patch().says(404, status(404, "NotFound", "nodes"))
}

/// The claim's node and its kind, or the outcome of the notice.
type Claimed = Result<Result<(String, ClaimResult), Next>, Failure>;

async fn claimed_by(context: &TestContext, case: &Case, record: &mut Record) -> Claimed {
    let attempt = case.attempt(context).await;
    let target = case.target(&attempt);
    match attempt.with_heartbeats(claim(context, &target, Purpose::Drain, record)).await? {
        Claiming::Claimed(node) => Ok(Ok((node.claim.node, node.claim.how))),
        Claiming::Ended(next) => Ok(Err(next)),
    }
}

async fn of(case: Case, api: impl IntoIterator<Item = Expected>, aws: impl IntoIterator<Item = Expected>) -> Claimed {
    claimed_by(&TestContext::new(&[], api, aws), &case, &mut Record::default()).await
}

async fn of_spot(api: impl IntoIterator<Item = Expected>) -> Claimed {
    of(Case::spot(), api, []).await
}

async fn of_rebalance(api: impl IntoIterator<Item = Expected>) -> Claimed {
    of(Case::of(Kind::Rebalance, Deadline::Open), api, []).await
}

fn first(name: &str) -> (String, ClaimResult) {
    (name.to_owned(), ClaimResult::First)
}

#[tokio::test(start_paused = true)]
async fn first_request_claims_and_cordons_the_node() {
    let patch = patch().with(r#"{"op":"add","path":"/spec/unschedulable","value":true}"#).with("fieldManager=spillway");
    let context = TestContext::new(&[], [patch.says(200, node())], []);
    let mut record = Record::default();
    assert_eq!(claimed_by(&context, &Case::spot(), &mut record).await.unwrap().unwrap(), first(NODE));
    assert_eq!(record.node.as_deref(), Some(NODE));
}

#[tokio::test(start_paused = true)]
async fn instance_without_a_node_is_let_go() {
    let api = [wrong_guess(), call("GET /api/v1/nodes").with("limit=100").says(200, list("Node", &[]))];
    let context = TestContext::new(&[], api, [hook_described(), heartbeat().perhaps(), completed("CONTINUE")]);
    let mut record = Record::default();
    let ended = claimed_by(&context, &Case::held(Kind::Terminate), &mut record).await.unwrap();
    assert!(matches!(ended, Err(Next::Done(Outcome::Ignored(Reason::NoNode { .. })))), "{ended:?}");
    assert_eq!(record.hook, HookStatus::Completed(Continue));
}

#[tokio::test(start_paused = true)]
async fn likely_name_of_another_instance_is_passed_over() {
    let mut case = Case::spot();
    case.instance.private_dns_name = Some("ip-10-0-0-1.ec2.internal".to_owned());
    let api = [
        call("PATCH /api/v1/nodes/ip-10-0-0-1.ec2.internal").says(422, status(422, "Invalid", "nodes")),
        call("GET /api/v1/nodes/ip-10-0-0-1.ec2.internal").says(200, successor()),
        patch().says(200, node()),
    ];
    assert_eq!(of(case, api, []).await.unwrap().unwrap(), first(NODE));
}

/// A node with an unlikely name is found by its provider id. etcd may compact the list's version between two pages.
#[tokio::test(start_paused = true)]
async fn search_with_a_compacted_page_starts_again() {
    let named = |name: &str, mut node: Value| {
        node["metadata"]["name"] = json!(name);
        node
    };
    let first_page = || {
        let mut page = list("Node", &[named("other", successor())]);
        page["metadata"]["continue"] = json!("after-other");
        call("GET /api/v1/nodes").with("limit=100").without("continue=").says(200, page)
    };
    let second_page = || call("GET /api/v1/nodes").with("continue=after-other");
    let claimed = of_spot([
        wrong_guess(),
        first_page(),
        second_page().says(410, status(410, "Expired", "")),
        wrong_guess(),
        first_page(),
        second_page().says(200, list("Node", &[named("odd", node())])),
        call("PATCH /api/v1/nodes/odd").says(200, named("odd", node())),
    ]);
    assert_eq!(claimed.await.unwrap().unwrap(), first("odd"));
}

#[tokio::test(start_paused = true)]
async fn provider_id_of_another_form_is_tested_as_read() {
    for provider_id in ["aws:////i-0123456789abcdef0", "i-0123456789abcdef0"] {
        let mut odd = node();
        odd["spec"]["providerID"] = json!(provider_id);
        let tested = patch().with(format!(r#""path":"/spec/providerID","value":"{provider_id}""#));
        let refused = patch().says(422, status(422, "Invalid", "nodes"));
        assert_eq!(of_spot([refused, read_node(&odd), tested.says(200, &odd)]).await.unwrap().unwrap(), first(NODE));
    }
}

#[tokio::test(start_paused = true)]
async fn missing_right_is_a_failure_at_once_and_401_at_the_end() {
    let failure = of_spot([patch().says(403, status(403, "Forbidden", "nodes"))]).await.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesDenied");
    assert!(failure.text().contains("apply deploy/rbac.yaml"), "{}", failure.text());
    let failure = of_spot([patch().says(401, status(401, "Unauthorized", "")).repeated()]).await.unwrap_err();
    assert_eq!((failure.error_type(), failure.unfinished()), ("KubernetesDenied", None));
}

#[tokio::test(start_paused = true)]
async fn cordon_denied_by_a_webhook_is_skipped_if_the_instance_goes() {
    let denied = |code| [patch().says(code, denied_by_webhook(code))];
    for code in [403, 422, 429] {
        let Ok((node, ClaimResult::Denied(status))) = of_spot(denied(code)).await.unwrap() else { panic!("{code}") };
        assert_eq!((node.as_str(), status.code), (NODE, code));
    }
    for case in [Case::of(Kind::Stopping, Deadline::Unknown), Case::held(Kind::Terminate)] {
        let aws = case.notice.hook.iter().flat_map(|_| [hook_described(), heartbeat().perhaps()]).collect::<Vec<_>>();
        let claimed = of(case, denied(403), aws).await.unwrap();
        assert!(matches!(claimed, Ok((_, ClaimResult::Denied(_)))), "{claimed:?}");
    }
    let failure = of_rebalance(denied(403)).await.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesDenied");
    assert!(!failure.text().contains("rbac"), "{}", failure.text());
}

/// A webhook's pods may be on the nodes that go. The API server waits for a webhook for up to 30 s without an answer.
#[tokio::test(start_paused = true)]
async fn failing_claim_is_skipped_if_the_instance_goes() {
    let webhook = "failed calling webhook 'w'";
    let down = || patch().says(500, status(500, "InternalError", "nodes").replace("why", webhook)).repeated();
    for (answer, message, seconds) in
        [(down(), webhook, 5..8), (patch(), "the API server did not answer within 15 s", 15..20)]
    {
        let began = Instant::now();
        let Ok((name, ClaimResult::Denied(status))) = of_spot([answer, read_node(node())]).await.unwrap() else {
            panic!()
        };
        assert_eq!((name.as_str(), status.message.as_str()), (NODE, message));
        assert!(seconds.contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }

    let mut opted_out = node();
    opted_out["metadata"]["labels"]["spillway/ignore"] = json!("true");
    let outcome = of_spot([down(), read_node(opted_out)]).await.unwrap();
    assert_eq!(outcome, Err(Outcome::Ignored(Reason::OptedOut(NODE.to_owned())).into()));
    // An answer may be an error although the claim was made.
    let made = read_node(claimed(Kind::Spot.as_str(), "e-1", "r-1"));
    assert_eq!(of_spot([down(), made]).await.unwrap(), Ok((NODE.to_owned(), ClaimResult::Again)));

    assert_eq!(of_rebalance([down()]).await.unwrap_err().error_type(), "KubernetesRefused");
    let began = Instant::now();
    assert_eq!(of_rebalance([patch(), patch().says(200, node())]).await.unwrap().unwrap(), first(NODE));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// No other notice would remove the taint.
#[tokio::test(start_paused = true)]
async fn taint_of_begun_maintenance_is_removed_after_an_outage() {
    let mut case = Case::of(Kind::Maintenance, Deadline::Unknown);
    case.notice.maintenance = Some(maintenance("M-1"));
    let mut waiting = node();
    waiting["spec"]["taints"] = json!([{"key": "spillway/planned", "value": "e-1", "effect": "PreferNoSchedule"}]);
    let down = patch_node().says(500, status(500, "InternalError", "nodes"));
    let api = [read_node(waiting), down].map(|call| call.repeated().at_any_time());
    let check = scheduled(&format!("{NODE}.M-1.1")).with("spillway-undo-check");
    let began = Reason::MaintenanceBegan(NODE.to_owned());
    assert_eq!(of(case, api, [check]).await.unwrap(), Err(Outcome::Ignored(began).into()));
}

/// The instance may be in use again.
#[tokio::test(start_paused = true)]
async fn return_to_the_warm_pool_waits_for_its_first_heartbeat() {
    let aws = [hook_described(), call("RecordLifecycleActionHeartbeat").lost(), hook_over()];
    let claimed = of(Case::held(Kind::ReturnToWarmPool), [], aws).await.unwrap();
    assert_eq!(claimed, Err(Outcome::Ignored(Reason::HookIsOver).into()));
}

#[tokio::test(start_paused = true)]
async fn rehearsed_claim_distinguishes_webhooks_from_missing_rights() {
    let said = |code, message: &str| status(code, "", "nodes").replace("why", message);
    let missing = r#"nodes \"n-1\" is forbidden: User \"spillway\" cannot patch"#;
    for (code, answer, expected) in [
        (200, node().to_string(), "Passes"),
        (403, denied_by_webhook(403), "Denied"),
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
