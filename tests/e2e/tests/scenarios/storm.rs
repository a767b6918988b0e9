//! Many notices at once, and EC2's limit of calls.

use futures_util::future::join_all;
use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_bed::lambda::Outcome;
use spillway_e2e::{Stage, receipt, spot_notice};

/// Nodes that go at once, and calls that each of EC2's two buckets answers before it is empty.
const NODES: usize = 12;
const ANSWERED: u32 = 4;

#[tokio::test]
async fn nodes_of_a_storm_that_ec2_throttles_are_found_in_the_cluster_with_few_calls_each() {
    let stage = Stage::set("throttled-storm").await;
    let cluster = stage.world.cluster.clone();
    let stage = stage.with_settings(&[("SPILLWAY_CLUSTERS", &cluster)]).await;
    let aws = stage.world.aws_side();
    let mut instances = vec![stage.node.instance_id.clone()];
    for _ in 1..NODES {
        let node = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
        instances.push(node.instance_id);
    }
    for (bucket, answered) in [("ec2:DescribeInstances", ANSWERED), ("ec2:DescribeInstances by ids alone", ANSWERED)] {
        aws.limit_calls(stage.lambda.access_key_id(), bucket, answered).await.expect("EC2 has the limit");
    }

    let notices = instances.iter().map(|id| stage.lambda.invoke(spot_notice(id, Timestamp::now())));
    let outcomes = join_all(notices).await;

    for outcome in &outcomes {
        assert_eq!(outcome.result.as_ref().expect("it drains")["ending"], "drained", "{outcome:#?}");
    }
    let is_by_node = |outcome: &&Outcome| receipt(outcome)["steps"].to_string().contains("found-by-node");
    let by_node = outcomes.iter().filter(is_by_node).count();
    let calls = stage.aws_calls().await.iter().filter(|call| *call == "ec2:DescribeInstances").count();
    assert_eq!(by_node, NODES - 2 * ANSWERED as usize, "both buckets are used");
    assert!((NODES..NODES * 5).contains(&calls), "{calls} calls for {NODES} nodes");
}
