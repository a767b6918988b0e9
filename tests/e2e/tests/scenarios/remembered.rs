//! Where a cluster is, when EKS does not say it: the self-test has written it down.
//!
//! Reason: connection.

use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_bed::aws::Fault;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, fates, receipt, sample, spot_notice};

const SPOT: Duration = Duration::from_secs(120);
const USED: &str = "using what the self-test wrote down";

/// A stage of a stack of its own, whose self-test has written down where the cluster is, and whose function starts again.
async fn examined(stage: Stage) -> Stage {
    let report = stage.lambda.invoke(&sample("doctor")).await;
    assert!(report.result.is_ok(), "{report:#?}");
    let written = stage.all_aws_calls().await.iter().filter(|call| *call == "ssm:PutParameter").count();
    assert_eq!(written, 2, "of a cluster that it can sign in to, and its name");
    stage.lambda.recycle();
    stage
}

async fn stage(name: &str) -> Stage {
    Stage::set(name).await.with_settings(&[("SPILLWAY_STACK", name)]).await
}

/// A fault of each such call.
fn of_describe_cluster(stage: &Stage) -> Fault {
    Fault::of(stage.lambda.access_key_id(), "eks", "DescribeCluster")
}

#[tokio::test]
async fn a_spot_notice_is_drained_while_eks_throttles_or_says_nothing() {
    let stage = examined(stage("eks-is-silent").await).await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let aws = stage.world.aws_side();
    let throttled =
        Fault { status: Some(429), code: Some("ThrottlingException".to_owned()), ..of_describe_cluster(&stage) };
    aws.add_fault(&throttled).await.expect("a fault");

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], fates(answer)["clean"]), (&"drained".into(), 2), "{outcome:#?}");
    assert!(outcome.logs.iter().any(|line| line.contains(USED)), "{outcome:#?}");

    // Longer than a spot notice leaves.
    aws.clear_faults(stage.lambda.access_key_id()).await.expect("no fault");
    aws.add_fault(&Fault { delay_ms: Some(130_000), ..of_describe_cluster(&stage) }).await.expect("a fault");
    stage.lambda.recycle();
    let silent = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;
    assert_eq!(silent.result.as_ref().expect("it drains")["ending"], "drained", "{silent:#?}");
    assert!(silent.logs.iter().any(|line| line.contains(USED)), "{silent:#?}");
}

#[tokio::test]
async fn silent_ec2_has_the_remembered_clusters_searched() {
    let stage = examined(stage("ec2-is-silent").await).await;
    let of_call = Fault::of(stage.lambda.access_key_id(), "ec2", "DescribeInstances");
    let silent = Fault { delay_ms: Some(130_000), ..of_call };
    stage.world.aws_side().add_fault(&silent).await.expect("a fault");

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{outcome:#?}");
    assert!(receipt(&outcome)["steps"].to_string().contains("found-by-node"), "{answer:#}");
    assert_eq!(stage.all_aws_calls().await.iter().filter(|call| *call == "ssm:GetParameters").count(), 1);
}
