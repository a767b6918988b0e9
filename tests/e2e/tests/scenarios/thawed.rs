//! A function that was frozen until the network forgot its connections.
//!
//! Reason: connection.

use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_bed::gateway::{Gateway, Rules};
use spillway_e2e::{Stage, answer, spot_notice};

#[tokio::test]
async fn thawed_function_uses_no_connection_from_before_the_freeze() {
    let stage = Stage::set("dead-connections").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    // The gateway keeps connections open, as AWS does. The AWS side behind it does not.
    let aws = Gateway::before_aws(stage.world, Rules::default()).expect("a gateway");
    let stage = stage.with_settings(&[("AWS_ENDPOINT_URL", &aws.url()), ("SPILLWAY_STACK", "dead-connections")]).await;
    let cluster = stage.through_gateway().await;
    answer(&stage.drain().await);
    let process = stage.lambda.process_ids();

    let connections = || [&aws, &cluster].map(|gateway| gateway.network().connections());
    let before = connections();
    for gateway in [&aws, &cluster] {
        gateway.network().drop_silently();
    }
    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    assert_eq!(answer(&again)["ending"], "drained", "{again:#?}");
    assert_eq!(stage.lambda.process_ids(), process, "the same process was thawed");
    assert_eq!(aws.network().swallowed(), 0, "requests to AWS on dead connections: {again:#?}");
    // All services share one connection.
    assert_eq!(connections(), before.map(|before| before + 1), "to AWS, and to the cluster: {again:#?}");
}
