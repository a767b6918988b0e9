//! The edges of a drain: no harm where nobody knows the deadline.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::{Value, json};
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, ended, fates, receipt, sample};

const QUICK: Duration = Duration::from_secs(1);

/// EC2 said so long ago that the instance stops, though it still says that it runs.
fn stopping(stage: &Stage, ago_s: i64) -> Value {
    let time = Timestamp::now() - SignedDuration::from_secs(ago_s);
    let mut notice = sample("state-change-stopping");
    notice["id"] = json!(format!("stopping-{}", stage.node.instance_id));
    notice["time"] = json!(time.round(Unit::Second).expect("a time of these days").to_string());
    notice["detail"]["instance-id"] = json!(stage.node.instance_id);
    notice
}

#[tokio::test]
async fn when_nobody_knows_the_deadline_every_pod_keeps_its_own_grace() {
    let stage = Stage::set("own-grace").await;
    stage.deploy("web", 2, PodShape::default().grace(30).exits_after(QUICK)).await;

    let outcome = stage.notify(&stopping(&stage, 0)).await;

    let receipt = receipt(&outcome);
    assert_eq!((ended(&outcome).0.as_str(), fates(&receipt)["clean"]), ("drained", 2), "{receipt:#}");
    let given: Vec<&Value> = receipt["pods"].as_array().into_iter().flatten().map(|pod| &pod["given_s"]).collect();
    assert!(given.iter().all(|given| given.is_null()), "none got less than it asks for: {receipt:#}");
    assert!(receipt["notice"]["deadline"].is_null(), "{receipt:#}");
}

#[tokio::test]
async fn a_stopping_that_comes_late_leaves_a_node_alone_whose_instance_runs_again() {
    let stage = Stage::set("runs-again").await;
    stage.deploy("web", 1, PodShape::default()).await;

    let outcome = stage.notify(&stopping(&stage, 180)).await;

    let reason = format!("instance {} runs again", stage.node.instance_id);
    assert_eq!(ended(&outcome), ("ignored".to_owned(), reason));
    assert!(stage.is_untouched().await);
}
