//! Faults between the function and what it asks: the drain goes on as long as there is time, and what is
//! left at the end is told.
//!
//! Only what a case of `each_fault` cannot say: each fault at each step, once and for ever, is a case there.
//!
//! Reason: connection.

use std::net::TcpListener;
use std::time::Duration;

use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, fates};

const SPOT: Duration = Duration::from_secs(120);

async fn invoke(stage: &Stage) -> Outcome {
    stage.lambda.invoke(stage.interrupt(SPOT).await).await
}

fn assert_drained(outcome: &Outcome, pods: usize) {
    let answer = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error} {outcome:#?}"));
    assert_eq!((&answer["ending"], fates(answer)["clean"]), (&"drained".into(), pods), "{outcome:#?}");
}

/// The connection of the list goes silent with it: no ping is answered.
#[tokio::test]
async fn swallowed_first_answers_of_ec2_and_list_delay_the_drain() {
    let stage = Stage::set("swallowed").await;
    let aws = Gateway::before_aws(stage.world, Rules::default()).expect("a gateway");
    aws.rules().add(Rule::new("ec2:DescribeInstances", Which::Nth(1), Fault::Silence));
    let stage = stage.with_settings(&[("AWS_ENDPOINT_URL", &aws.url())]).await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let cluster = stage.through_gateway().await;
    let held = Held::default();
    cluster.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::Instead, held.clone())));

    let silenced = async {
        held.reached().await;
        cluster.network().drop_silently();
    };
    let (outcome, ()) = tokio::join!(invoke(&stage), silenced);

    assert_drained(&outcome, 2);
    assert_eq!((aws.rules().struck(), cluster.rules().struck()), (1, 1), "{outcome:#?}");
}

#[tokio::test]
async fn a_connection_that_is_to_be_left_is_left_and_the_drain_goes_on_over_another() {
    let stage = Stage::set("goaway").await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::GoAway));

    assert_drained(&invoke(&stage).await, 2);
    assert_eq!(gateway.network().connections(), 2);
}

#[tokio::test]
async fn an_endpoint_that_accepts_and_says_nothing_is_asked_of_eks_again() {
    let stage = Stage::set("mute-endpoint").await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = Gateway::before_api_server(stage.world, Rules::default()).expect("a gateway");
    let (aws, key, ca) = (stage.world.aws_side(), stage.lambda.access_key_id(), gateway.ca());
    // The kernel accepts, and nobody speaks TLS.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("https://{}", mute.local_addr().expect("an address"));
    aws.override_endpoint(key, &stage.world.cluster, Some(&endpoint), Some(&ca)).await.expect("EKS shows it");

    let event = stage.interrupt(SPOT).await;
    let mut drain = std::pin::pin!(stage.lambda.invoke(event));
    tokio::select! {
        outcome = &mut drain => panic!("EKS was not asked again: {outcome:#?}"),
        () = stage.until_called("eks:DescribeCluster", 2) => {}
    }
    gateway.show(stage.world, key).await.expect("EKS shows the gateway");

    assert_drained(&drain.await, 2);
}
