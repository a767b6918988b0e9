//! How a notice comes to the function when not all goes well on the way: late, again, twice, out of order, or not at all.
//!
//! Reason: process.

use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::NodeOptions;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, fates, receipt, spot_notice};

const PODS: u32 = 2;
const SPOT: Duration = Duration::from_secs(120);

/// As the template says: the first retry is worth a try for a spot notice.
#[tokio::test]
async fn a_spot_drain_that_crashed_is_finished_by_lambdas_retry_a_minute_later_within_its_two_minutes() {
    let real_waits = LambdaOptions { wait_factor: 1.0, ..LambdaOptions::default() };
    let stage = Stage::set("crashed").await.with_function(real_waits).await;
    stage.deploy("web", PODS, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("create pods/eviction", Which::All, Fault::Hold(Side::Before, held.clone())));
    let event = stage.interrupt(SPOT).await;

    let crash = async {
        held.reached().await;
        stage.lambda.kill();
        gateway.rules().clear();
    };
    let (delivery, ()) = tokio::join!(stage.lambda.invoke_async(&event), crash);

    let delivery = delivery.expect("the queue works");
    assert_eq!(delivery.waits, [Duration::from_mins(1)]);
    let answer = delivery.last.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{answer:#}");
    assert_eq!(fates(answer)["clean"], PODS as usize, "nobody is hurried: {answer:#}");
}

#[tokio::test]
async fn a_notice_that_finds_no_free_execution_is_handled_when_there_is_one() {
    let one_at_a_time = LambdaOptions { reserved_concurrency: Some(1), wait_factor: 0.2, ..LambdaOptions::default() };
    let stage = Stage::set("one-at-a-time").await.with_function(one_at_a_time).await;
    stage.deploy("web", PODS, PodShape::default()).await;
    let other = stage.world.add_node(NodeOptions { spot: true, ..NodeOptions::default() }).await.expect("it joins");
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::Before, held.clone())));
    let (first, second) = (stage.interrupt(SPOT).await, spot_notice(&other.instance_id, Timestamp::now()));

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
        assert_eq!(receipt(&delivery.last)["ending"], "drained", "{delivery:#?}");
        assert!(
            delivery.failed.is_empty() && delivery.failure_record.is_none(),
            "to wait is no failure: {delivery:#?}"
        );
    }
    assert!(first.waits.is_empty());
    assert!(second.waits.starts_with(&[1, 2].map(Duration::from_secs)), "{:?}", second.waits);
}
