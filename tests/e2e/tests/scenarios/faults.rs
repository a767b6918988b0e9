//! Faults between the function and its servers that no case of `each_fault` has.
//!
//! Reason: connection.

use std::net::TcpListener;

use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, assert_drained};

/// The connection of the list goes silent with the list: no ping is answered.
#[tokio::test]
async fn swallowed_first_answers_of_ec2_and_list_delay_the_drain() {
    let stage = Stage::set("swallowed").await;
    let aws = Gateway::before_aws(stage.world, Rules::default()).expect("a gateway");
    aws.rules().add(Rule::new("ec2:DescribeInstances", Which::Nth(1), Fault::Silence));
    let stage = stage.with_settings(&[("AWS_ENDPOINT_URL", &aws.url()), ("SPILLWAY_STACK", "swallowed")]).await;
    stage.deploy_quick("web", 2).await;
    let (cluster, held) = (stage.through_gateway().await, Held::default());
    cluster.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::Instead, held.clone())));

    let (outcome, ()) = tokio::join!(stage.drain(), async {
        held.reached().await;
        cluster.network().drop_silently();
    });

    assert_drained(&outcome, 2);
    assert_eq!((aws.rules().struck(), cluster.rules().struck()), (1, 1), "{outcome:#?}");
}

#[tokio::test]
async fn goaway_moves_the_drain_to_another_connection() {
    let stage = Stage::set("goaway").await.with_own_stack().await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::GoAway));

    assert_drained(&stage.drain().await, 2);
    assert_eq!(gateway.network().connections(), 2);
}

#[tokio::test]
async fn mute_endpoint_has_eks_described_again() {
    let stage = Stage::set("mute-endpoint").await.with_own_stack().await;
    stage.deploy("web", 2, PodShape::default()).await;
    let (gateway, key) = (stage.gateway(), stage.lambda.access_key_id());
    // The kernel accepts connections, and the TLS handshake gets no answer.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("https://{}", mute.local_addr().expect("an address"));
    let shown = stage.aws().override_endpoint(key, &stage.world.cluster, Some(&endpoint), Some(&gateway.ca())).await;
    shown.expect("EKS shows the endpoint");

    let mut drain = std::pin::pin!(stage.drain());
    tokio::select! {
        outcome = &mut drain => panic!("EKS was not described again: {outcome:#?}"),
        () = stage.until_called("eks:DescribeCluster", 2) => {}
    }
    gateway.show(stage.world, key).await.expect("EKS shows the gateway");

    assert_drained(&drain.await, 2);
}
