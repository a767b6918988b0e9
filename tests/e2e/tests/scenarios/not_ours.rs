//! Instances that start in clusters which are not ours: no failure, and next to no work. Lambda delivers each failure twice
//! more and rings the alarm, so what fails here does so for each instance that a neighbour launches.
//!
//! Reason: connection.

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use spillway_bed::lambda::{Account, Lambda, LambdaOptions};
use spillway_e2e::{Stage, ended, sample};

/// EC2 says that the stage's instance runs.
async fn runs(stage: &Stage) -> Value {
    let mut notice = sample("state-change-running");
    notice["id"] = json!(format!("running-{}", stage.name));
    notice["time"] = json!(Timestamp::now().round(Unit::Second).expect("a time of these days").to_string());
    notice["detail"]["instance-id"] = json!(stage.node.instance_id);
    stage.delivered(&notice).await
}

#[tokio::test]
async fn an_instance_that_runs_in_a_cluster_that_does_not_let_us_in_is_ignored() {
    let stage = Stage::set("neighbour").await;
    let world = stage.world;
    let credentials = world.aws_side().credentials("somebody-else", "neighbour").await.expect("credentials");
    let (endpoint, region, id) = (world.aws.clone(), world.region.clone(), world.account.clone());
    let stranger = Lambda::in_account(Account { endpoint, region, id, credentials }, LambdaOptions::default());

    let outcome = stranger.invoke(runs(&stage).await).await;

    let why = "cluster bed denies access with 401: no node was cordoned there";
    assert_eq!(ended(&outcome), ("ignored".to_owned(), why.to_owned()));
    assert!(outcome.result.is_ok(), "{outcome:#?}");
}
