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
const WAIT: Duration = Duration::from_secs(30);

/// A stage with a node of a group that has two terminate hooks: its end is told twice.
async fn stage(name: &str) -> Stage {
    let hooks = [Hook::terminate("drain"), Hook::terminate("logs")];
    world().await.aws_side().put_group(name, &hooks).await.expect("the group is new");
    Stage::set_with(name, NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() }).await
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

/// Hands each event to a process of its own, all at once.
async fn all_at_once(stage: &Stage, events: impl Iterator<Item = Value>) -> Vec<Outcome> {
    futures_util::future::join_all(events.map(|event| stage.lambda.invoke(event))).await
}

#[tokio::test]
async fn many_notices_at_once_drain_the_node_once_and_complete_every_hook() {
    let mut stage = stage("six-at-once").await;
    // Slow enough to be still there when the others come to look.
    stage.deploy("web", 20, PodShape::default().exits_after(Duration::from_secs(6))).await;
    let pods = pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list");
    let events = notices(&stage).await;

    // Each is delivered twice.
    let outcomes = all_at_once(&stage, events.iter().chain(&events).cloned()).await;

    assert_eq!(stage.lambda.process_ids().len(), 6);
    assert_eq!(endings(&outcomes), [("drained".to_owned(), 1), ("joined".to_owned(), 5)].into(), "{outcomes:#?}");
    for outcome in &outcomes {
        assert_eq!(fates(&receipt(outcome)), [("clean".to_owned(), 20)].into(), "each tells of every pod");
    }
    assert_eq!(evictions(&mut stage), once_each(&pods));
    assert_eq!(hooks(&stage).await, [completed("drain"), completed("logs")]);
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
    assert_eq!(hooks(&stage).await, [completed("drain"), completed("logs")]);
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
    assert_eq!(ending(&delivered_again), "ignored");
    assert_eq!(hooks(&stage).await[0], completed("drain"));
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
    // Late by two minutes: its window is ten seconds.
    let urgent = stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now() - SPOT)).await;
    let patient = patient.await.expect("no panic");

    assert_eq!((ending(&patient), ending(&urgent)), ("drained".to_owned(), "joined".to_owned()), "{urgent:#?}");
    assert_eq!(receipt(&urgent)["pods"][0]["fate"], "forced");
    assert_eq!(receipt(&patient)["hook"]["state"], "completed");
    let deletions =
        stage.requests().into_iter().filter(|request| request.starts_with("delete pods")).collect::<Vec<_>>();
    assert_eq!(deletions, [format!("delete pods {}/{} → 200", stage.name, pods[0].name_any())]);
}

#[tokio::test]
async fn the_tightest_deadline_shortens_a_grace_that_a_hook_has_given() {
    let stage = stage("shortened").await;
    stage.deploy("web", 1, PodShape::default().grace(600).exits_after(Duration::from_secs(600))).await;
    let client = stage.world.admin();
    let pod = pods::on_node(&client, &stage.node.name).await.expect("a list").remove(0);
    let terminate = notices(&stage).await.remove(1);

    let lambda = stage.lambda.clone();
    let patient = tokio::spawn(async move { lambda.invoke(terminate).await });
    let leaving = pods::until_pod(&client, &pod, "to be leaving", |pod| {
        pod.metadata.deletion_grace_period_seconds.map(drop).ok_or_else(|| "it is not".to_owned())
    });
    leaving.await.expect("the hook's drain evicts it");
    let urgent = stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now() - SPOT)).await;
    let patient = patient.await.expect("no panic");

    assert_eq!((ending(&patient), ending(&urgent)), ("drained".to_owned(), "joined".to_owned()), "{urgent:#?}");
    let record = &receipt(&urgent)["pods"][0];
    assert_eq!((&record["fate"], &record["grace_s"]), (&json!("clamped"), &json!(600)));
}
