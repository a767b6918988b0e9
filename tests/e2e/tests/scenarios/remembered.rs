//! Endpoints that the self-test has cached in Parameter Store serve while EKS or EC2 is silent.
//!
//! Reason: connection.

use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_e2e::{Stage, answer, assert_drained, receipt, sample, spot_notice};

/// Longer than the window of a spot notice.
const SILENCE: Duration = Duration::from_secs(130);
const USED: &str = "using what the self-test wrote down";

/// A stage with a stack of its own, after a self-test and before a cold start.
async fn set(name: &str) -> Stage {
    let stage = Stage::set(name).await.with_settings(&[("SPILLWAY_STACK", name)]).await;
    answer(&stage.lambda.invoke(&sample("doctor")).await);
    let puts = stage.all_aws_calls().await.iter().filter(|call| *call == "ssm:PutParameter").count();
    assert_eq!(puts, 2, "a reachable cluster, and the list of names");
    stage.lambda.recycle();
    stage
}

#[tokio::test]
async fn cached_endpoint_serves_while_eks_throttles_or_is_silent() {
    let stage = set("eks-is-silent").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    stage.deploy_quick("web", 2).await;
    stage.refuse_call("eks", "DescribeCluster", 429, "ThrottlingException", "Rate exceeded").await;

    let throttled = stage.drain().await;

    assert_drained(&throttled, 2);
    assert!(throttled.logs.iter().any(|line| line.contains(USED)), "{throttled:#?}");

    stage.clear_faults().await;
    stage.delay_call("eks", "DescribeCluster", SILENCE).await;
    stage.lambda.recycle();
    let silent = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;
    assert_eq!(answer(&silent)["ending"], "drained", "{silent:#?}");
    assert!(silent.logs.iter().any(|line| line.contains(USED)), "{silent:#?}");
}

#[tokio::test]
async fn silent_ec2_has_the_cached_clusters_searched() {
    let stage = set("ec2-is-silent").await;
    stage.delay_call("ec2", "DescribeInstances", SILENCE).await;

    let outcome = stage.drain().await;

    assert_eq!(answer(&outcome)["ending"], "drained", "{outcome:#?}");
    assert!(receipt(&outcome)["steps"].to_string().contains("found-by-node"), "{outcome:#?}");
    assert_eq!(stage.all_aws_calls().await.iter().filter(|call| *call == "ssm:GetParameters").count(), 1);
}
