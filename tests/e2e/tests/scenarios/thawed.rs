//! A function that was frozen for long: whatever was on the way has forgotten its connections, without a word.
//!
//! Reason: connection.

use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_bed::gateway::{Gateway, Rules};
use spillway_e2e::{Stage, spot_notice};

#[tokio::test]
async fn no_call_goes_to_a_connection_that_died_while_the_function_was_frozen() {
    let stage = Stage::set("dead-connections").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    // It keeps connections open, as AWS does. The AWS side behind it does not.
    let aws = Gateway::before_aws(stage.world, Rules::default()).expect("a gateway");
    let stage = stage.with_settings(&[("AWS_ENDPOINT_URL", &aws.url())]).await;
    let cluster = stage.through_gateway().await;
    let first = stage.lambda.invoke(stage.interrupt(Duration::from_secs(120)).await).await;
    assert!(first.result.is_ok(), "{first:#?}");
    let process = stage.lambda.process_ids();

    let connections = || [&aws, &cluster].map(|gateway| gateway.network().connections());
    let before = connections();
    for gateway in [&aws, &cluster] {
        gateway.network().drop_silently();
    }
    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    let answer = again.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{again:#?}");
    assert_eq!(stage.lambda.process_ids(), process, "the environment was thawed, not made again");
    assert_eq!(aws.network().swallowed(), 0, "what was sent to AWS on dead connections: {again:#?}");
    // All calls to a service share one.
    assert_eq!(connections(), before.map(|before| before + 1), "to AWS, and to the cluster: {again:#?}");
}
