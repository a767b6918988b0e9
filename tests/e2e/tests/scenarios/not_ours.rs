//! Instances of clusters that do not admit the function are ignored: a failure would be retried twice and raise the alarm for each
//! instance that a neighbour launches.
//!
//! Reason: connection.

use spillway_bed::lambda::{Account, Lambda, LambdaOptions};
use spillway_e2e::{Stage, ended, notice};

#[tokio::test]
async fn running_instance_of_a_cluster_without_access_is_ignored() {
    let stage = Stage::set("neighbour").await;
    let world = stage.world;
    let credentials = stage.aws().credentials("somebody-else", "neighbour").await.expect("credentials");
    let (endpoint, region, id) = (world.aws.clone(), world.region.clone(), world.account.clone());
    let stranger = Lambda::in_account(Account { endpoint, region, id, credentials }, LambdaOptions::default());
    let running = stage.delivered(&notice("state-change-running", &stage.node.instance_id)).await;

    let outcome = stranger.invoke(running).await;

    let reason = "cluster bed denies access with 401: no node was cordoned there";
    assert_eq!(ended(&outcome), ("ignored".to_owned(), reason.to_owned()));
    assert!(outcome.result.is_ok(), "{outcome:#?}");
}
