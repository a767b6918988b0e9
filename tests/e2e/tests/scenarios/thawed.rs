//! A function that was frozen for long: whatever was on the way has forgotten its connections. This is green without
//! `Connections::renew`, too, so it does not show that renewing is needed.

use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_bed::proxy::Proxy;
use spillway_e2e::{Stage, spot_notice};

/// After that long an attempt at a call is given up.
const TIMEOUT_MS: i64 = 5000;

#[tokio::test]
async fn a_notice_does_not_wait_for_connections_that_died_while_the_function_was_frozen() {
    let stage = Stage::set("dead-connections").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let aws = stage.world.aws.trim_start_matches("http://").parse().expect("an address and a port");
    let proxy = Proxy::start(aws).expect("a free port");
    let endpoint = format!("http://{}", proxy.address());
    let stage = stage.with_settings(&[("AWS_ENDPOINT_URL", endpoint.as_str())]).await;
    let first = stage.lambda.invoke(stage.interrupt(Duration::from_secs(120)).await).await;
    assert!(first.result.is_ok(), "{first:#?}");
    let process = stage.lambda.process_ids();

    proxy.drop_silently();
    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    let answer = again.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{again:#?}");
    assert_eq!(stage.lambda.process_ids(), process, "the environment was thawed, not made again");
    let steps = answer["steps"].as_array().expect("steps");
    let at = |name: &str| steps.iter().find(|step| step["step"] == name).and_then(|step| step["at_ms"].as_i64());
    let (begun, claimed) = (at("begun").expect("it began"), at("claimed").expect("it claimed"));
    assert!(claimed - begun < TIMEOUT_MS, "a call waited for its timeout: {again:#?}");
}
