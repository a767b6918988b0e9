//! The pace of terminate hooks: of a group's nodes so many drain at once as the setting says, and the others wait for their turn.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use spillway_bed::aws::Hook;
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, TestNode, kubelet, nodes};
use spillway_e2e::{Stage, ended, receipt, the_one, world};

use crate::pace::{drained_at, ended_at};

/// A stage and nodes of one group and zone, which nobody else has, of which so many may drain for hooks at once.
async fn set(name: &str, zone: &str, nodes: usize, at_once: &str) -> (Stage, Vec<TestNode>) {
    world().await.aws_side().put_group(name, &[Hook::terminate("spillway")]).await.expect("the group is new");
    let in_zone =
        || NodeOptions { zone: zone.to_owned(), group: Some(name.to_owned()), spot: true, ..NodeOptions::default() };
    let stage = Stage::set_with(name, in_zone()).await.with_settings(&[("SPILLWAY_HOOKS_AT_ONCE", at_once)]).await;
    let mut all = vec![stage.node.clone()];
    while all.len() < nodes {
        all.push(stage.world.add_node(in_zone()).await.expect("it joins"));
    }
    (stage, all)
}

async fn deploy(stage: &Stage, node: &TestNode, exits_after: Duration) {
    let shape = PodShape::default().exits_after(exits_after).grace(90).on_node(&node.name);
    let app = format!("web-{}", &node.instance_id[node.instance_id.len() - 6..]);
    pods::run_deployment(&stage.world.admin(), &stage.name, &app, 2, &shape).await.expect("its pods run");
}

async fn terminated(stage: &Stage, node: &TestNode) -> Value {
    let delivered = stage.world.aws_side().terminate(&node.instance_id).await.expect("Auto Scaling terminates");
    the_one(delivered)
}

/// Waits until the claim on the node says that its drain goes on, or that it waits.
async fn until_claimed(stage: &Stage, node: &TestNode, idle: bool) {
    let says = |claim: &str| claim.contains(r#""idle":true"#) == idle;
    let claimed = nodes::until_annotated(&stage.world.admin(), &node.name, "spillway/claim", says).await;
    claimed.unwrap_or_else(|error| panic!("{error}"));
}

fn is_completed(outcome: &Outcome) {
    let receipt = receipt(outcome);
    assert_eq!(
        (ended(outcome).0.as_str(), receipt["hook"]["state"].as_str()),
        ("drained", Some("completed")),
        "{receipt:#}"
    );
}

#[tokio::test]
async fn of_four_nodes_whose_hooks_come_at_once_two_drain_at_once_and_the_others_wait_for_their_turn() {
    let (stage, nodes) = set("hook-pace", "us-east-1e", 4, "2").await;
    let mut hooks = Vec::new();
    for node in &nodes {
        deploy(&stage, node, Duration::from_secs(5)).await;
    }
    for node in &nodes {
        hooks.push(terminated(&stage, node).await);
    }

    let outcomes = join_all(hooks.into_iter().map(|hook| stage.lambda.invoke(hook))).await;

    outcomes.iter().for_each(is_completed);
    let drains: Vec<_> = outcomes.iter().map(drained_at).collect();
    for (from, _) in &drains {
        let at_once = drains.iter().filter(|(begin, end)| begin <= from && from < end).count();
        assert!(at_once <= 2, "{at_once} at {from}: {drains:#?}");
    }
}

#[tokio::test]
async fn neither_a_spot_notice_of_a_waiting_instance_nor_a_node_that_is_not_ready_waits() {
    let (stage, nodes) = set("hook-pace-urgent", "us-east-1f", 3, "1").await;
    let [slow, waiting, silent] = &nodes[..] else { panic!("{nodes:?}") };
    deploy(&stage, slow, Duration::from_secs(60)).await;
    deploy(&stage, waiting, Duration::from_secs(1)).await;
    kubelet::silence(&stage.world.admin(), &silent.name).await.expect("it is silent");
    let first = terminated(&stage, slow).await;
    let second = terminated(&stage, waiting).await;
    let third = terminated(&stage, silent).await;

    let urgent = async {
        until_claimed(&stage, waiting, true).await;
        let third = stage.lambda.invoke(third).await;
        let spot = stage.world.aws_side().interrupt(&waiting.instance_id, Duration::from_secs(120)).await;
        (third, stage.lambda.invoke(the_one(spot.expect("EC2 interrupts"))).await)
    };
    let second = async {
        until_claimed(&stage, slow, false).await;
        stage.lambda.invoke(second).await
    };
    let (first, second, (third, spot)) = tokio::join!(stage.lambda.invoke(first), second, urgent);

    [&first, &second].into_iter().for_each(is_completed);
    let slow_ends = ended_at(&first);
    assert_eq!(receipt(&third)["hook"]["state"], "completed", "{third:#?}");
    assert!(drained_at(&spot).0 < slow_ends, "the spot notice waited");
    assert!(ended_at(&third) < slow_ends, "the node that is not Ready waited: {third:#?}");
}
