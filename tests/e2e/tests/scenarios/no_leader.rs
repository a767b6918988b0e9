//! No leader: however many notices come for a node, at once or one after another, it is drained once,
//! each notice ends with a receipt of its own, and each hook is completed.
//!
//! Reason: process.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::Value;
use spillway_bed::aws::Hook;
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, nodes};
use spillway_e2e::{Stage, fates, receipt, spot_notice, world};

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
