//! Nodes that are given back after a reboot, and nodes whose instance is down for long.
//!
//! Reason: whole way.

use jiff::{SignedDuration, Timestamp, Unit};
use spillway_bed::{NodeOptions, nodes};
use spillway_e2e::maintenance::Maintenance;
use spillway_e2e::{Stage, ended, the_one};

#[tokio::test]
async fn rebooted_node_is_given_back_and_not_before() {
    let stage = Stage::set_with("rebooted", NodeOptions::default()).await;
    let stage = stage.with_settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", "3600")]).await;
    let (aws, client, node) = (stage.aws(), stage.client(), &stage.node.name);
    // The first check is at the start, and the next one ten minutes later.
    let starts = Timestamp::now() + SignedDuration::from_mins(1);
    let notice = Maintenance::of(&stage.node.instance_id, starts).notice("reboot");
    assert_eq!(ended(&stage.notify(&notice).await).0, "drained");

    let first = stage.lambda.invoke(stage.fired().await).await;

    let (ending, reason) = ended(&first);
    assert_eq!(ending, "continued", "{reason}");
    let waits = format!("node {node} is not given back yet: it has not rebooted; the next check is at");
    assert!(reason.starts_with(&waits), "{reason}");
    assert!(stage.is_cordoned().await);
    let next = stage.schedules().await.remove(0);
    assert!((next.at - starts).total(Unit::Second).expect("seconds") >= 600.0, "ten minutes later: {next:?}");

    let boot = nodes::boot_id(&client, node).await.expect("a boot id");
    aws.reboot(&stage.node.instance_id).await.expect("EC2 reboots");
    nodes::until_rebooted(&client, node, &boot).await.expect("the node boots");
    let second = stage.lambda.invoke(next.input).await;

    assert_eq!(ended(&second), ("done".to_owned(), format!("node {node} is given back to use: it has rebooted")));
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn stopped_instance_is_out_of_service_until_it_is_back() {
    let stage = Stage::set_with("out-of-service", NodeOptions::default()).await;
    let stage = stage.with_settings(&[("SPILLWAY_TAINTS", "out-of-service")]).await;
    let (aws, node) = (stage.aws(), &stage.node.name);
    let stopped = aws.stop(&stage.node.instance_id).await.expect("EC2 stops").pop().expect("a notice");
    nodes::until_not_ready(&stage.client(), node).await.expect("the kubelet is silent");

    let declared = stage.lambda.invoke(stopped.event).await;

    let reason = format!("node {node} is declared out of service: its instance is down, and it is not Ready");
    assert_eq!(ended(&declared), ("done".to_owned(), reason));
    let taints = stage.taints().await;
    assert!(taints.contains(&"node.kubernetes.io/out-of-service=spillway:NoExecute".to_owned()), "{taints:?}");
    assert!(taints.len() > 1, "the node controller's taints stay: {taints:?}");

    let running = the_one(aws.start(&stage.node.instance_id).await.expect("EC2 starts"));
    stage.lambda.invoke(running).await;

    let taints = stage.taints().await;
    assert!(!taints.iter().any(|taint| taint.contains("out-of-service")), "{taints:?}");
}
