//! Nodes that are given back: after a rebalance recommendation that nothing followed, after a reboot, after a stop; and
//! nodes whose instance is down for longer.
//!
//! Reason: whole way.

use jiff::{SignedDuration, Timestamp, Unit};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::{NodeOptions, nodes};
use spillway_e2e::maintenance::Maintenance;
use spillway_e2e::{Stage, ended, the_one};

/// A stage with a node of its own, and a function with such settings.
async fn stage(name: &str, spot: bool, settings: &[(&str, &str)]) -> Stage {
    let env = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let stage = Stage::set_with(name, NodeOptions { spot, ..NodeOptions::default() }).await;
    stage.with_function(LambdaOptions { env, ..LambdaOptions::default() }).await
}

fn given_back(stage: &Stage, why: &str) -> (String, String) {
    ("done".to_owned(), format!("node {} is given back to use: {why}", stage.node.name))
}

#[tokio::test]
async fn a_node_that_was_rebooted_is_given_back_and_one_that_was_not_is_looked_for_again() {
    let stage = stage("rebooted", false, &[("SPILLWAY_MAINTENANCE_LEAD_S", "3600")]).await;
    let (aws, client) = (stage.world.aws_side(), stage.world.admin());
    // Once it has started, it is looked for only ten minutes later.
    let starts = Timestamp::now() + SignedDuration::from_mins(1);
    let notice = Maintenance::of(&stage.node.instance_id, starts).notice("reboot");
    assert_eq!(ended(&stage.notify(&notice).await).0, "drained");

    // At its start it has not been rebooted.
    let first = stage.lambda.invoke(stage.fired().await).await;

    let (ending, reason) = ended(&first);
    assert_eq!(ending, "continued", "{reason}");
    let waits = format!("node {} is not given back yet: it has not rebooted; the next check is at", stage.node.name);
    assert!(reason.starts_with(&waits), "{reason}");
    assert!(stage.is_cordoned().await);
    let next = aws.schedules(stage.lambda.access_key_id()).await.expect("Scheduler is there").remove(0);
    assert!((next.at - starts).total(Unit::Second).expect("seconds") >= 600.0, "ten minutes later: {next:?}");

    let boot = nodes::boot_id(&client, &stage.node.name).await.expect("it has one");
    aws.reboot(&stage.node.instance_id).await.expect("it reboots");
    nodes::until_rebooted(&client, &stage.node.name, &boot).await.expect("it comes back");
    let second = stage.lambda.invoke(next.input).await;

    assert_eq!(ended(&second), given_back(&stage, "it has rebooted"));
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn a_node_whose_instance_stopped_and_runs_again_is_given_back_when_it_is_ready() {
    let stage = stage("stop-start", false, &[]).await;
    let aws = stage.world.aws_side();
    let stopping = aws.stop(&stage.node.instance_id).await.expect("it stops");
    let stopping = stopping.into_iter().find(|one| one.event["detail"]["state"] == "stopping").expect("it tells");
    assert_eq!(ended(&stage.lambda.invoke(stopping.event).await).0, "drained");
    assert!(stage.is_cordoned().await);

    let running = the_one(aws.start(&stage.node.instance_id).await.expect("it starts"));
    let undone = stage.lambda.invoke(running).await;

    assert_eq!(ended(&undone), given_back(&stage, "its instance runs again"));
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn a_node_whose_instance_is_down_is_declared_out_of_service_until_it_is_back() {
    let stage = stage("out-of-service", false, &[("SPILLWAY_TAINTS", "out-of-service")]).await;
    let (aws, client) = (stage.world.aws_side(), stage.world.admin());
    let stopped = aws.stop(&stage.node.instance_id).await.expect("it stops").pop().expect("it tells");
    nodes::until_not_ready(&client, &stage.node.name).await.expect("its kubelet is silent");

    let declared = stage.lambda.invoke(stopped.event).await;

    let node = &stage.node.name;
    let reason = format!("node {node} is declared out of service: its instance is down, and it is not Ready");
    assert_eq!(ended(&declared), ("done".to_owned(), reason));
    let taints = stage.taints().await;
    assert!(taints.contains(&"node.kubernetes.io/out-of-service=spillway:NoExecute".to_owned()), "{taints:?}");
    assert!(taints.len() > 1, "the node controller's own are kept: {taints:?}");

    let running = the_one(aws.start(&stage.node.instance_id).await.expect("it starts"));
    stage.lambda.invoke(running).await;

    let taints = stage.taints().await;
    assert!(!taints.iter().any(|taint| taint.contains("out-of-service")), "{taints:?}");
}
