//! Notices from the bus to the function: warm starts, moved endpoints, unreadable events, invalid settings.
//!
//! Reason: process, connection.

use jiff::Timestamp;
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, answer, function, sample, spot_notice, world};

#[tokio::test]
async fn second_notice_after_a_freeze_needs_no_call_to_eks() {
    let stage = Stage::set("thaw").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    answer(&stage.drain().await);
    assert_eq!(stage.aws_calls().await, ["ec2:DescribeInstances", "eks:DescribeCluster", "events:PutEvents"]);
    let process = stage.lambda.process_ids();

    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    assert_eq!(answer(&again)["node"], second.name);
    assert_eq!(stage.lambda.process_ids(), process, "the same process was thawed");
    assert_eq!(stage.aws_calls().await[3..], ["ec2:DescribeInstances", "events:PutEvents"]);
}

#[tokio::test]
async fn moved_endpoint_has_eks_described_again() {
    let stage = Stage::set("moved-endpoint").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let before = stage.through_gateway().await;
    answer(&stage.drain().await);
    before.network().set_mode(Mode::Refuse).await.expect("the old endpoint is closed");
    let _after = stage.through_gateway().await;

    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    assert_eq!(answer(&again)["ending"], "drained", "{again:#?}");
    let calls = &stage.aws_calls().await[3..];
    assert_eq!(calls, ["ec2:DescribeInstances", "eks:DescribeCluster", "events:PutEvents"]);
}

#[tokio::test]
async fn payload_that_is_no_json_fails_and_the_process_lives_on() {
    let lambda = function(world().await, "no-json", &[]).await;
    let error = lambda.invoke("{\"detail\": ").await.result.expect_err("a failure");
    assert!(error.message.contains("EOF while parsing"), "{error}");
    let event = json!({"id": "1", "time": "2026-11-21T00:00:00Z", "source": "s", "detail-type": "t", "detail": {}});
    assert_eq!(answer(&lambda.invoke(event).await)["ending"], "ignored");
}

#[tokio::test]
async fn invalid_settings_fail_the_start_and_are_all_named() {
    let settings = [("SPILLWAY_DRAIN_ON", "yes"), ("SPILLWAY_HOOK_MAX_WAIT_S", "1h")];
    let outcome = function(world().await, "wrong", &settings).await.invoke(sample("spot-interruption")).await;
    assert!(outcome.result.is_err());
    let logs = outcome.logs.join("\n");
    assert!(logs.contains("DrainOn is \\\"yes\\\"; it takes some of spot, capacity"), "{logs}");
    assert!(logs.contains("HookMaxWaitS is \\\"1h\\\"; it takes a whole number of seconds"), "{logs}");
}
