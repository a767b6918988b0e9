//! No leader: however many notices come for a node, at once or one after another, it is drained once,
//! each notice ends with a receipt of its own, and each hook is completed.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::aws::{Fault, Hook};
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, nodes};
use spillway_e2e::{Stage, fates, receipt, spot_notice, world};

const SPOT: Duration = Duration::from_secs(120);
const WAIT: Duration = Duration::from_mins(1);

/// A stage with a node of a group that has two terminate hooks: its end is told twice.
async fn stage(name: &str) -> Stage {
    let hooks = [Hook::terminate("spillway"), Hook::terminate("traces")];
    world().await.aws_side().put_group(name, &hooks).await.expect("the group is new");
    let stage = Stage::set_with(name, NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() }).await;
    stage.with_settings(&[("SPILLWAY_HOOKS", "spillway,traces")]).await
}

/// Everything that AWS says when it takes a spot instance of a group: its reclaim, and each hook's notice.
async fn notices(stage: &Stage) -> Vec<Value> {
    let mut events = vec![spot_notice(&stage.node.instance_id, Timestamp::now())];
    let delivered = stage.world.aws_side().terminate(&stage.node.instance_id).await.expect("it terminates");
    events.extend(delivered.into_iter().map(|delivered| delivered.event));
    assert_eq!(events.len(), 3, "{events:#?}");
    events
}

fn ending(outcome: &Outcome) -> String {
    receipt(outcome)["ending"].as_str().unwrap_or_default().to_owned()
}

/// How often each ending came.
fn endings(outcomes: &[Outcome]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for outcome in outcomes {
        *counts.entry(ending(outcome)).or_default() += 1;
    }
    counts
}

/// What a metric comes to in all of them together.
fn counted(outcomes: &[Outcome], metric: &str) -> u64 {
    let lines = outcomes.iter().flat_map(|outcome| &outcome.logs).filter(|line| line.contains("\"_aws\""));
    lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()?[metric].as_u64()).sum()
}

/// How often each pod was told to leave.
fn evictions(stage: &mut Stage) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in stage.audit.requests().expect("the audit log") {
        if request.subresource == "eviction" && request.code == Some(201) {
            *counts.entry(request.name).or_default() += 1;
        }
    }
    counts
}

fn once_each(pods: &[Pod]) -> BTreeMap<String, usize> {
    pods.iter().map(|pod| (pod.name_any(), 1)).collect()
}

/// How each hook of the instance ended.
async fn hooks(stage: &Stage) -> Vec<(String, Option<String>, Option<String>)> {
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    instance.actions.into_iter().map(|action| (action.hook, action.result, action.ended_by)).collect()
}

fn completed(hook: &str) -> (String, Option<String>, Option<String>) {
    (hook.to_owned(), Some("CONTINUE".to_owned()), Some("call".to_owned()))
}

#[tokio::test]
async fn many_notices_at_once_drain_the_node_once_and_complete_every_hook() {
    let mut stage = stage("six-at-once").await;
    // Slow enough to be still there when the others come to look.
    stage.deploy("web", 20, PodShape::default().exits_after(Duration::from_secs(25))).await;
    let pods = pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list");
    let events = notices(&stage).await;

    // Each is delivered twice, and each time to a process of its own.
    let lambda = stage.lambda.clone();
    let all = futures_util::future::join_all(events.iter().chain(&events).map(|event| lambda.invoke(event)));
    let outcomes = stage.joined_after_evictions(20, all).await;

    assert_eq!(stage.lambda.process_ids().len(), 6);
    assert_eq!(endings(&outcomes), [("drained".to_owned(), 1), ("joined".to_owned(), 5)].into(), "{outcomes:#?}");
    for outcome in &outcomes {
        assert_eq!(fates(&receipt(outcome)), [("clean".to_owned(), 20)].into(), "each tells of every pod");
    }
    assert_eq!(counted(&outcomes, "PodsClean"), 20, "but one counts it");
    assert_eq!(evictions(&mut stage), once_each(&pods));
    assert_eq!(hooks(&stage).await, [completed("spillway"), completed("traces")]);
}

#[tokio::test]
async fn notices_one_after_another_find_the_node_drained_and_complete_every_hook() {
    let mut stage = stage("in-turn").await;
    stage.deploy("web", 5, PodShape::default()).await;
    let pods = pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list");
    let events = notices(&stage).await;

    let mut outcomes = Vec::new();
    for event in &events {
        outcomes.push(stage.lambda.invoke(event).await);
    }
    // When the last hook is completed the instance goes, and its node with it.
    nodes::until_gone(&stage.world.admin(), &stage.node.name).await.expect("the node goes");
    for event in &events {
        outcomes.push(stage.lambda.invoke(event).await);
    }

    let endings: Vec<String> = outcomes.iter().map(ending).collect();
    assert_eq!(endings, ["drained", "joined", "joined", "ignored", "ignored", "ignored"], "{outcomes:#?}");
    assert_eq!(evictions(&mut stage), once_each(&pods));
    assert_eq!(hooks(&stage).await, [completed("spillway"), completed("traces")]);
}

#[tokio::test]
async fn an_event_that_is_tried_again_goes_on_and_one_that_is_delivered_again_finds_its_hook_completed() {
    let stage = stage("again").await;
    stage.deploy("web", 2, PodShape::default()).await;
    let event = notices(&stage).await.remove(1);
    // The first attempt drains the node and cannot complete the hook.
    let denied = Fault {
        times: 1,
        status: Some(403),
        code: Some("AccessDenied".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "autoscaling", "CompleteLifecycleAction")
    };
    stage.world.aws_side().add_fault(&denied).await.expect("a fault");

    let tried = stage.lambda.invoke_async(&event).await.expect("the queue works");
    let delivered_again = stage.lambda.invoke(&event).await;

    let attempts: Vec<String> = tried.failed.iter().chain([&tried.last]).map(ending).collect();
    assert_eq!(attempts, ["failed", "drained"], "Lambda's retry is the same invocation to us");
    assert_eq!(receipt(&delivered_again)["hook"]["state"], "already-over");
    // By whichever is known first: that the hook waits no longer, or that the node is empty.
    assert!(["ignored", "joined"].contains(&ending(&delivered_again).as_str()), "{delivered_again:#?}");
    assert_eq!(hooks(&stage).await[0], completed("spillway"));
}

#[tokio::test]
async fn the_tightest_deadline_forces_what_a_hook_would_have_waited_for() {
    let mut stage = stage("tightest").await;
    stage.deploy("web", 1, PodShape::default().grace(1)).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget(&stage.name, "web", 1)).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, "web", 1).await.expect("it counts");
    let pods = pods::on_node(&client, &stage.node.name).await.expect("a list");
    let terminate = notices(&stage).await.remove(1);

    let lambda = stage.lambda.clone();
    let patient = tokio::spawn(async move { lambda.invoke(terminate).await });
    let held = stage.audit.wait_until("the budget's refusal", WAIT, |requests| {
        requests.iter().any(|r| r.subresource == "eviction" && r.code == Some(429))
    });
    held.await.expect("the hook's drain is held");
    // Late: fifteen seconds are left, of which two are kept back and one is the pod's. It is deleted after twelve,
    // also if the function needs some of them to begin: between two of the times at which the patient drain asks for
    // it again, every five seconds.
    let in_15_s = Timestamp::now() - SPOT + Duration::from_secs(15);
    let urgent = stage.lambda.invoke(spot_notice(&stage.node.instance_id, in_15_s)).await;
    let patient = patient.await.expect("no panic");

    assert_eq!((ending(&patient), ending(&urgent)), ("drained".to_owned(), "joined".to_owned()), "{urgent:#?}");
    assert_eq!(receipt(&urgent)["pods"][0]["fate"], "forced");
    // It got the whole second that it asks for. That its budget was passed the holder cannot know, but who did it.
    let record = &receipt(&patient)["pods"][0];
    assert_eq!(
        (&record["fate"], &record["given_s"], &record["accepted_ms"]),
        (&json!("clean"), &Value::Null, &Value::Null)
    );
    let why = "PodDisruptionBudget web blocked it until another notice's drain or a person had it leave";
    assert_eq!(record["why"], why);
    let by_fate =
        ["PodsClean", "PodsForced", "PodsBlocked"].map(|metric| counted(&[patient.clone(), urgent.clone()], metric));
    assert_eq!(by_fate, [0, 1, 1], "one pod, however many notices");
    assert_eq!(receipt(&patient)["hook"]["state"], "completed");
    let deletions =
        stage.requests().into_iter().filter(|request| request.starts_with("delete pods")).collect::<Vec<_>>();
    assert_eq!(deletions, [format!("delete pods {}/{} → 200", stage.name, pods[0].name_any())]);
}

#[tokio::test]
async fn the_tightest_deadline_shortens_a_grace_that_a_hook_has_given() {
    let stage = stage("shortened").await;
    stage.deploy("web", 1, PodShape::default().grace(600).exits_after(Duration::from_secs(30))).await;
    let client = stage.world.admin();
    let pod = pods::on_node(&client, &stage.node.name).await.expect("a list").remove(0);
    let terminate = notices(&stage).await.remove(1);

    let lambda = stage.lambda.clone();
    let patient = tokio::spawn(async move { lambda.invoke(terminate).await });
    let leaving = pods::until_pod(&client, &pod, "to be leaving", |pod| {
        pod.metadata.deletion_grace_period_seconds.map(drop).ok_or_else(|| "it is not".to_owned())
    });
    leaving.await.expect("the hook's drain evicts it");
    // Late by a minute. A pod is told again as long as what is left, counted from its eviction, is not nearly over:
    // that is for 26 s.
    let in_a_minute = Timestamp::now() - SPOT + Duration::from_secs(60);
    let urgent = stage.lambda.invoke(spot_notice(&stage.node.instance_id, in_a_minute)).await;
    let patient = patient.await.expect("no panic");

    assert_eq!((ending(&patient), ending(&urgent)), ("drained".to_owned(), "joined".to_owned()), "{urgent:#?}");
    let record = &receipt(&urgent)["pods"][0];
    assert_eq!((&record["fate"], &record["grace_s"]), (&json!("clamped"), &json!(600)));
    assert!(record["given_s"].as_u64().is_some_and(|given| given > 10), "it was not given what was left: {record:#}");
    let of_holder = &receipt(&patient)["pods"][0];
    assert_eq!((&of_holder["fate"], &of_holder["given_s"]), (&json!("clamped"), &record["given_s"]));
    let why = "another notice's drain or a person cut short the grace that it had been given";
    assert_eq!(of_holder["why"], why);
}

#[tokio::test]
async fn a_pod_that_has_had_longer_than_is_left_goes_on_for_as_long_as_its_instance_is_there() {
    let mut stage = stage("goes-on").await;
    stage.deploy("web", 1, PodShape::default().grace(600).exits_after(Duration::from_secs(7))).await;
    let client = stage.world.admin();
    let pods = pods::on_node(&client, &stage.node.name).await.expect("a list");
    let terminate = notices(&stage).await.remove(1);

    let lambda = stage.lambda.clone();
    let patient = tokio::spawn(async move { lambda.invoke(terminate).await });
    // For the urgent notice, which has to see the pod before it has gone.
    stage.lambda.initialize().await.expect("it starts");
    let leaving = pods::until_pod(&client, &pods[0], "to be leaving", |pod| {
        pod.metadata.deletion_grace_period_seconds.map(drop).ok_or_else(|| "it is not".to_owned())
    });
    leaving.await.expect("the hook's drain evicts it");
    // Late: twelve seconds are left, of which three are the head start and two are kept back. What is left then would,
    // counted from the pod's eviction, be over when the API server hears of it, or too soon after.
    let in_12_s = Timestamp::now() - SPOT + Duration::from_secs(12);
    let urgent = stage.lambda.invoke(spot_notice(&stage.node.instance_id, in_12_s)).await;
    let patient = patient.await.expect("no panic");

    assert_eq!((ending(&patient), ending(&urgent)), ("drained".to_owned(), "joined".to_owned()), "{urgent:#?}");
    assert_eq!(evictions(&mut stage), once_each(&pods));
    for outcome in [&patient, &urgent] {
        assert_eq!(fates(&receipt(outcome)), [("clean".to_owned(), 1)].into(), "nobody cut its grace short");
    }
}
