//! Many notices at once, and EC2's limit of calls.

use futures_util::future::join_all;
use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_e2e::{Stage, spot_notice};

/// How many nodes go at once, and how many of their notices EC2 answers at once and then each second.
const NODES: usize = 12;
const MOST: u32 = 4;
const PER_SECOND: u32 = 2;

#[tokio::test]
async fn a_storm_that_ec2_throttles_is_drained_with_few_calls_a_node() {
    let stage = Stage::set("throttled-storm").await;
    let aws = stage.world.aws_side();
    let mut instances = vec![stage.node.instance_id.clone()];
    for _ in 1..NODES {
        let node = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
        instances.push(node.instance_id);
    }
    let describe = ("ec2", "DescribeInstances");
    aws.limit_calls(stage.lambda.access_key_id(), describe, MOST, PER_SECOND).await.expect("EC2 has the limit");

    let notices = instances.iter().map(|id| stage.lambda.invoke(spot_notice(id, Timestamp::now())));
    let outcomes = join_all(notices).await;

    for outcome in &outcomes {
        assert_eq!(outcome.result.as_ref().expect("it drains")["ending"], "drained", "{outcome:#?}");
    }
    let calls = stage.aws_calls().await.iter().filter(|call| *call == "ec2:DescribeInstances").count();
    // One that is throttled comes back after one second at most, then after two, then after four.
    assert!((NODES..=NODES * 5).contains(&calls), "{calls} calls for {NODES} nodes");
}
