//! A dry run: it says what it would have done, and changes nothing, anywhere.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::audit::Request;
use spillway_bed::aws::{Fault, Hook, InstanceRequest};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::maintenance::Maintenance;
use spillway_e2e::{Stage, fates, function, receipt, sample, spot_notice, the_one, world};

const SPOT: Duration = Duration::from_secs(120);

/// The same stage with a function that is to touch nothing.
async fn dry(stage: Stage, more: &[(&str, &str)]) -> Stage {
    stage.with_settings(&[more, &[("SPILLWAY_DRY_RUN", "true")]].concat()).await
}

/// What of the node and of its pods a drain would change.
async fn as_it_stands(stage: &Stage) -> Value {
    let node = stage.node_now().await;
    let of_node = ListParams::default().fields(&format!("spec.nodeName={}", stage.node.name));
    let pods = Api::<Pod>::namespaced(stage.world.admin(), &stage.name).list(&of_node).await.expect("they are listed");
    let pods = pods.items.iter().map(|pod| (pod.uid(), &pod.metadata.deletion_timestamp));
    let ours = node.annotations().keys().chain(node.labels().keys()).filter(|key| key.starts_with("spillway/"));
    json!({"spec": node.spec, "ours": ours.collect::<Vec<_>>(), "pods": pods.collect::<Vec<_>>()})
}

/// Whether a request can have changed anything.
fn changes(request: &Request) -> bool {
    let dry = request.subresource == "eviction" && request.uri.ends_with("?&dryRun=All");
    !dry && !matches!(request.verb.as_str(), "get" | "list" | "watch")
}

async fn assert_nothing_was_touched(stage: &mut Stage, before: &Value) {
    assert_eq!(as_it_stands(stage).await, *before);
    let changed: Vec<_> = stage.audit.requests().expect("the audit log").into_iter().filter(changes).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    let calls = stage.aws_calls().await;
    assert!(calls.iter().all(|call| call.contains(":Describe")), "{calls:?}");
}

#[tokio::test]
async fn a_dry_run_asks_which_pods_would_go_and_touches_nothing() {
    let mut stage = dry(Stage::set("dry-spot").await, &[]).await;
    let client = stage.world.admin();
    stage.deploy("web", 3, PodShape::default()).await;
    stage.deploy("free", 2, PodShape::default()).await;
    let do_not_disrupt = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    stage.deploy("do-not-disrupt", 1, PodShape::default().with(do_not_disrupt)).await;
    pods::create(&client, &pods::budget(&stage.name, "web", 3)).await.expect("the budget is new");
    pods::until_budget_sees(&client, &stage.name, "web", 3).await.expect("it counts");
    let before = as_it_stands(&stage).await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["dry_run"]), (&json!("ignored"), &json!(true)), "{answer:#}");
    let reason = format!(
        "dry run: would have drained node {}: 2 pods would leave, 4 would be blocked by PodDisruptionBudget \
         dry-spot/web (3), its annotation karpenter.sh/do-not-disrupt=true (1); what is still blocked is deleted in time \
         to shut down",
        stage.node.name
    );
    assert_eq!(answer["reason"], reason);
    assert_eq!(fates(answer), [("would-be-blocked".to_owned(), 4), ("would-leave".to_owned(), 2)].into());
    let pods = answer["pods"].as_array().expect("the pods");
    let of = |app: &str| {
        pods.iter().find(|pod| pod["pod"].as_str().is_some_and(|name| name.contains(app))).expect("it is there")
    };
    assert_eq!(of("/web")["answers"], json!({"blocked-by-budget": 1}));
    assert_eq!(of("/web")["blocked_by"], "web");
    assert_eq!(of("/free")["answers"], json!({"would-leave": 1}));
    assert_eq!(
        (&of("/do-not-disrupt")["answers"], &of("/do-not-disrupt")["evictions"]),
        (&Value::Null, &json!(0)),
        "it is not asked for"
    );
    assert_nothing_was_touched(&mut stage, &before).await;
}

/// NTH's dry run completes the hook and sends its heartbeats (F8).
#[tokio::test]
async fn a_dry_run_leaves_the_hook_waiting_and_sends_it_no_heartbeat() {
    let stage = Stage::set_in_group("dry-hook", Hook::terminate("spillway")).await;
    let mut stage = dry(stage, &[]).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let event = stage.terminate().await;
    let before = as_it_stands(&stage).await;

    let outcome = stage.lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    let reason = format!(
        "dry run: would have drained node {}: 2 pods would leave, 0 would be blocked; its lifecycle hook spillway of group \
         dry-hook is left to its own timeout",
        stage.node.name
    );
    assert_eq!((&answer["reason"], &answer["hook"]["state"]), (&json!(reason), &json!("left")));
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.lifecycle_state.as_deref(), Some("Terminating:Wait"));
    assert_eq!((instance.actions[0].heartbeats, &instance.actions[0].result), (0, &None));
    assert_nothing_was_touched(&mut stage, &before).await;
}

#[tokio::test]
async fn a_dry_run_of_a_cordon_says_so_and_finds_a_node_of_another_name() {
    let node = NodeOptions { name: Some("dry-cordon-node".to_owned()), spot: true, ..NodeOptions::default() };
    let stage = Stage::set_with("dry-cordon", node).await;
    let mut stage = dry(stage, &[("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "spot")]).await;
    let before = as_it_stands(&stage).await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!(answer["reason"], "dry run: would have cordoned node dry-cordon-node and left its pods");
    assert_nothing_was_touched(&mut stage, &before).await;
}

#[tokio::test]
async fn a_dry_run_leaves_the_hook_of_a_node_that_never_joined() {
    let world = world().await;
    let aws = world.aws_side();
    aws.put_group("dry-absent", &[Hook::terminate("spillway")]).await.expect("a group");
    let (cluster, group) = (Some(world.cluster.clone()), Some("dry-absent".to_owned()));
    let request = InstanceRequest { cluster, group, ..InstanceRequest::default() };
    let instance = aws.run_instance(&request).await.expect("an instance");
    let lambda = function(world, "dry-absent", &[("SPILLWAY_DRY_RUN", "true")]).await;

    let outcome = lambda.invoke(the_one(aws.terminate(&instance.instance_id).await.expect("it terminates"))).await;

    let reason = outcome.result.as_ref().expect("it is no failure")["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.starts_with("dry run: would have let the instance go: not a node of ours"), "{reason}");
    assert!(
        reason.ends_with("; its lifecycle hook spillway of group dry-absent is left to its own timeout"),
        "{reason}"
    );
    let state = aws.instance(&instance.instance_id).await.expect("it is known");
    assert_eq!((state.actions[0].heartbeats, &state.actions[0].result), (0, &None));
}

#[tokio::test]
async fn a_dry_run_that_cannot_ask_fails_and_hands_nothing_on() {
    let stage = Stage::set_in_group("dry-fails", Hook::terminate("spillway")).await;
    let env = [("SPILLWAY_DRY_RUN".to_owned(), "true".to_owned())].into();
    // Five seconds of it are kept back.
    let options = LambdaOptions { env, timeout: Duration::from_secs(15), ..LambdaOptions::default() };
    let mut stage = stage.with_function(options).await;
    let fault = Fault {
        status: Some(500),
        code: Some("InternalError".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "ec2", "DescribeInstances")
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");
    let (event, before) = (stage.terminate().await, as_it_stands(&stage).await);

    let outcome = stage.lambda.invoke(event).await;

    assert_eq!(outcome.result.as_ref().expect_err("it fails").error_type, "AwsBroken");
    assert_eq!(receipt(&outcome)["dry_run"], true);
    assert_nothing_was_touched(&mut stage, &before).await;
}

#[tokio::test]
async fn a_dry_run_takes_a_pod_that_is_leaving_for_one_that_would_leave() {
    let mut stage = dry(Stage::set("dry-leaving").await, &[]).await;
    let client = stage.world.admin();
    let slow = PodShape::default().exits_after(Duration::from_mins(10)).grace(600).bound_to(&stage.node.name);
    pods::create(&client, &pods::bare_pod(&stage.name, "slow", &slow)).await.expect("it is created");
    pods::until_running_on(&client, &stage.node.name, 1).await.expect("it runs");
    let pods = Api::<Pod>::namespaced(client, &stage.name);
    pods.delete("slow", &DeleteParams::default()).await.expect("it is told to leave");
    let before = as_it_stands(&stage).await;

    let outcome = stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await;

    let slow = &outcome.result.as_ref().expect("it is no failure")["pods"][0];
    assert_eq!((&slow["fate"], &slow["evictions"]), (&json!("would-leave"), &json!(0)));
    assert_nothing_was_touched(&mut stage, &before).await;
}

#[tokio::test]
async fn a_dry_run_of_maintenance_that_is_to_come_says_when_it_would_begin_and_makes_no_schedule() {
    let mut stage = dry(Stage::set_with("dry-later", NodeOptions::default()).await, &[]).await;
    stage.deploy("web", 1, PodShape::default()).await;
    let in_a_week = Timestamp::now() + SignedDuration::from_hours(7 * 24);
    let maintenance = Maintenance::of(&stage.node.instance_id, in_a_week);
    let before = as_it_stands(&stage).await;

    let outcome = stage.notify(&maintenance.notice("dry-later")).await;

    let reason = outcome.result.as_ref().expect("it is no failure")["reason"].as_str().expect("a text");
    let waits =
        reason.strip_prefix("dry run: would have waited until ").and_then(|rest| rest.split_once(", and then "));
    let (begins, then) = waits.unwrap_or_else(|| panic!("{reason}"));
    let begins: Timestamp = begins.parse().expect("a time");
    assert!(begins < maintenance.starts && maintenance.starts - SignedDuration::from_hours(1) <= begins, "{reason}");
    assert_eq!(then, format!("drained node {}: 1 pod would leave, 0 would be blocked", stage.node.name));
    assert_nothing_was_touched(&mut stage, &before).await;
}

#[tokio::test]
async fn a_dry_run_of_a_notice_of_several_instances_names_them_and_hands_none_on() {
    let lambda = function(world().await, "dry-several", &[("SPILLWAY_DRY_RUN", "true")]).await;
    let mut event = sample("health-scheduled-maintenance");
    let entity = |id: &str| json!({"entityValue": id, "status": "PENDING"});
    event["detail"]["affectedEntities"] = json!([entity("i-00000001"), entity("i-00000002")]);

    let outcome = lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    let reason = "dry run: would have handed on, once for each of its instances: i-00000001, i-00000002";
    assert_eq!((&answer["ending"], &answer["reason"]), (&json!("ignored"), &json!(reason)));
    let calls = world().await.aws_side().calls(Some(lambda.access_key_id())).await.expect("the journal");
    assert!(calls.is_empty(), "{calls:?}");
}

#[tokio::test]
async fn a_dry_run_of_a_launch_waits_for_nothing() {
    let world = world().await;
    let aws = world.aws_side();
    aws.put_group("dry-launch", &[Hook::launch("launch")]).await.expect("a group");
    let options = NodeOptions { group: Some("dry-launch".to_owned()), ..NodeOptions::default() };
    let launched = aws.launch(&world.instance_request(&options)).await.expect("an instance");
    let lambda = function(
        world,
        "dry-launch",
        &[("SPILLWAY_DRY_RUN", "true"), ("SPILLWAY_LAUNCH", "ABANDON"), ("SPILLWAY_HOOKS", "launch")],
    )
    .await;

    let outcome = lambda.invoke(the_one(launched.delivered)).await;

    let id = &launched.instance.instance_id;
    let reason = format!(
        "dry run: would have waited for the node of instance {id} and completed its launch hook; its lifecycle hook \
         launch of group dry-launch is left to its own timeout"
    );
    assert_eq!(outcome.result.as_ref().expect("it is no failure")["reason"], reason);
    let action = &aws.instance(id).await.expect("it is known").actions[0];
    assert_eq!((action.heartbeats, &action.result), (0, &None));
}

#[tokio::test]
async fn a_dry_run_of_giving_a_node_back_that_is_not_there_lets_no_instance_go() {
    let world = world().await;
    let aws = world.aws_side();
    aws.put_group("dry-back", &[Hook::launch("launch")]).await.expect("a group");
    let options = NodeOptions { group: Some("dry-back".to_owned()), ..NodeOptions::default() };
    let launched = aws.launch(&world.instance_request(&options)).await.expect("an instance");
    let mut event = the_one(launched.delivered);
    event["detail"]["Action"] = json!("ReplaceRootVolume");
    let lambda = function(world, "dry-back", &[("SPILLWAY_DRY_RUN", "true")]).await;

    let outcome = lambda.invoke(event).await;

    let reason = outcome.result.as_ref().expect("it is no failure")["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.starts_with("not a node of ours"), "{reason}");
}
