//! From the bus to the function: what is read, what is refused, and that nothing that failed is lost.
//!
//! Reason: process, connection.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, function, sample, spot_notice, world};

const SPOT: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_second_notice_after_a_freeze_is_drained_without_asking_eks_again() {
    let stage = Stage::set("thaw").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let first = stage.lambda.invoke(stage.interrupt(SPOT).await).await;
    assert!(first.result.is_ok(), "{first:#?}");
    let calls_of_the_first = stage.aws_calls().await;
    assert_eq!(calls_of_the_first, ["ec2:DescribeInstances", "eks:DescribeCluster", "events:PutEvents"]);
    let process = stage.lambda.process_ids();

    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    assert_eq!(again.result.as_ref().expect("it drains")["node"], second.name);
    assert_eq!(stage.lambda.process_ids(), process, "the environment was thawed, not made again");
    assert_eq!(stage.aws_calls().await[3..], ["ec2:DescribeInstances", "events:PutEvents"], "no EKS call");
}

#[tokio::test]
async fn a_cluster_that_moved_is_asked_for_again() {
    let stage = Stage::set("moved-endpoint").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let before = stage.through_proxy().await;
    let first = stage.lambda.invoke(stage.interrupt(SPOT).await).await;
    assert!(first.result.is_ok(), "{first:#?}");
    before.set_mode(Mode::Refuse).await.expect("the old endpoint is closed");
    let _after = stage.through_proxy().await;

    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    assert_eq!(again.result.as_ref().expect("it drains")["ending"], "drained", "{again:#?}");
    let asked = &stage.aws_calls().await[3..];
    assert_eq!(asked, ["ec2:DescribeInstances", "eks:DescribeCluster", "events:PutEvents"]);
}

#[tokio::test]
async fn a_notice_that_cannot_be_read_fails_and_its_text_is_kept() {
    let world = world().await;
    let lambda = function(world, "unreadable", &[]).await;
    let mut event = sample("spot-interruption");
    event["id"] = json!("unreadable-1");
    event["detail"]["instance-id"] = json!("i-not-an-id");

    let delivery = lambda.invoke_async(&event).await.expect("the queue works");

    let error = delivery.last.result.as_ref().expect_err("it fails");
    assert_eq!(error.error_type, "UnreadableNotice");
    assert_eq!(error.message, "cannot read the notice: at detail.instance-id: \"i-not-an-id\" is no instance id");
    let kept = world.aws_side().failures().await.expect("the failure queue");
    assert!(kept.iter().any(|text| text.contains("unreadable-1") && text.contains("i-not-an-id")), "{kept:?}");
}

#[tokio::test]
async fn a_payload_that_is_no_json_fails_and_says_where() {
    let lambda = function(world().await, "no-json", &[]).await;
    let outcome = lambda.invoke("{\"detail\": ").await;
    let error = outcome.result.expect_err("it fails");
    assert!(error.message.contains("EOF while parsing"), "{error}");
    // The function lives on.
    let next = lambda
        .invoke(json!({"id": "1", "time": "2026-11-21T00:00:00Z", "source": "s", "detail-type": "t", "detail": {}}));
    assert_eq!(next.await.result.expect("it is ignored")["ending"], "ignored");
}

#[tokio::test]
async fn wrong_settings_stop_the_start_and_all_are_named() {
    let lambda =
        function(world().await, "wrong", &[("SPILLWAY_DRAIN_ON", "yes"), ("SPILLWAY_HOOK_MAX_WAIT_S", "1h")]).await;
    let outcome = lambda.invoke(sample("spot-interruption")).await;
    assert!(outcome.result.is_err());
    let logs = outcome.logs.join("\n");
    assert!(logs.contains("DrainOn is \\\"yes\\\"; it takes some of spot, capacity"), "{logs}");
    assert!(logs.contains("HookMaxWaitS is \\\"1h\\\"; it takes a whole number of seconds"), "{logs}");
}
