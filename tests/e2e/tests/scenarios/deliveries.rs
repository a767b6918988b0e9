//! Delivery of a notice to a function without a free execution.
//!
//! Reason: process.

use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, ended, spot_notice};

#[tokio::test]
async fn notice_without_a_free_execution_waits_for_one() {
    let one_at_a_time = LambdaOptions { reserved_concurrency: Some(1), wait_factor: 0.2, ..LambdaOptions::default() };
    let stage = Stage::set("one-at-a-time").await.with_function(one_at_a_time).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let other = stage.world.add_node(NodeOptions::spot()).await.expect("the node joins");
    let (gateway, held) = (stage.through_gateway().await, Held::default());
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::Before, held.clone())));
    let (first, second) = (stage.interrupt().await, spot_notice(&other.instance_id, Timestamp::now()));

    let meanwhile = async {
        held.reached().await;
        let refused = async {
            stage.lambda.until_refused(3).await;
            held.release();
        };
        tokio::join!(stage.lambda.invoke_async(&second), refused).0
    };
    let (first, second) = tokio::join!(stage.lambda.invoke_async(&first), meanwhile);

    let (first, second) = (first.expect("the queue works"), second.expect("the queue works"));
    for delivery in [&first, &second] {
        assert_eq!(ended(&delivery.last).0, "drained", "{delivery:#?}");
        assert!(delivery.failed.is_empty() && delivery.failure_record.is_none(), "a wait is no failure: {delivery:#?}");
    }
    assert!(first.waits.is_empty());
    assert!(second.waits.starts_with(&[1, 2].map(Duration::from_secs)), "{:?}", second.waits);
}
