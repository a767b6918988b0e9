//! Faults between the function and what it asks: the drain goes on as long as there is time, and what is
//! left at the end is told.
//!
//! Only what a case of `each_fault` cannot say: each fault at each step, once and for ever, is a case there.

use std::net::TcpListener;
use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::gateway::{Answer, Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::PodShape;
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, fates, receipt, spot_notice};

const SPOT: Duration = Duration::from_secs(120);
const MINUTE: Duration = Duration::from_secs(60);

async fn invoke(stage: &Stage) -> Outcome {
    stage.lambda.invoke(stage.interrupt(SPOT).await).await
}

fn assert_drained(outcome: &Outcome, pods: usize) {
    let answer = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error} {outcome:#?}"));
    assert_eq!((&answer["ending"], fates(answer)["clean"]), (&"drained".into(), pods), "{outcome:#?}");
}

#[tokio::test]
async fn a_watch_that_never_comes_about_is_made_up_for_by_lists() {
    for (name, fault) in [("no-watch", Fault::Answer(Answer::kubernetes(503))), ("silent-watch", Fault::Silence)] {
        let stage = Stage::set(name).await;
        stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
        let gateway = stage.through_gateway().await;
        gateway.rules().add(Rule::new("watch pods", Which::All, fault));

        assert_drained(&invoke(&stage).await, 2);
    }
}

#[tokio::test]
async fn pods_that_could_not_be_watched_to_their_end_are_told_as_such() {
    let stage = Stage::set("blind").await;
    stage.deploy("web", 1, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("watch pods", Which::All, Fault::Answer(Answer::kubernetes(403))));
    // Ten seconds are left.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(110));

    let outcome = stage.lambda.invoke(event).await;

    assert_eq!(outcome.result.as_ref().expect_err("it fails").error_type, "PodsLost");
    let why = receipt(&outcome)["pods"][0]["why"].to_string();
    assert!(why.contains("could not be watched to its end: the API server answered 403"), "{why}");
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

#[tokio::test]
async fn of_an_endpoint_that_refuses_connections_eks_is_asked_less_and_less_often() {
    let stage = Stage::set("refused-endpoint").await;
    let endpoint = stage.through_proxy().await;
    endpoint.set_mode(Mode::Refuse).await.expect("the endpoint is closed");
    // Ten seconds are left.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(110));

    let outcome = stage.lambda.invoke(event).await;

    assert!(outcome.result.is_err(), "{outcome:#?}");
    let asked = stage.aws_calls().await.iter().filter(|call| *call == "eks:DescribeCluster").count();
    // Where it is, and again after the first refusal, two seconds later and four seconds after that.
    assert!((3..=4).contains(&asked), "{asked} times: {outcome:#?}");
}

#[tokio::test]
async fn what_is_left_at_the_end_is_told_pod_by_pod_with_the_fault() {
    let stage = Stage::set("left").await;
    stage.deploy("web", 3, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    for call in ["create pods/eviction", "delete pods"] {
        gateway.rules().add(Rule::new(call, Which::All, Fault::Answer(Answer::kubernetes(500))));
    }
    // Ten seconds are left. A notice that comes after its time has ten minutes.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(110));

    let outcome = stage.lambda.invoke(event).await;

    assert_eq!(outcome.result.as_ref().expect_err("it fails").error_type, "PodsLost");
    let receipt = receipt(&outcome);
    assert_eq!(fates(&receipt), [("lost".to_owned(), 3)].into());
    for pod in receipt["pods"].as_array().expect("pods") {
        assert!(pod["why"].as_str().is_some_and(|why| why.contains("etcdserver: request timed out")), "{pod}");
    }
}

#[tokio::test]
async fn pods_whose_evictions_all_fail_are_deleted_in_time_and_told_with_the_fault() {
    let stage = Stage::set("evictions-fail").await;
    stage.deploy("web", 2, PodShape::default().grace(13)).await;
    let gateway = stage.through_gateway().await;
    let broken = Fault::Answer(Answer::kubernetes(500));
    gateway.rules().add(Rule::new("create pods/eviction", Which::All, broken));
    // Late by a minute and a half. Half of the thirty seconds that are left is their grace and the margin: when that
    // begins they are deleted.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(90));

    let outcome = stage.lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(fates(answer), [("forced".to_owned(), 2)].into(), "{answer:#}");
    for pod in answer["pods"].as_array().expect("pods") {
        assert!(pod["why"].as_str().is_some_and(|why| why.contains("etcdserver: request timed out")), "{pod}");
    }
}

#[tokio::test]
async fn a_clock_that_is_a_minute_fast_leaves_a_minute_less() {
    let stage = Stage::set("fast-clock").await;
    stage.deploy("web", 1, PodShape::default().grace(600)).await;
    // To a clock that is a minute fast, a notice that was sent just now is a minute old.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - MINUTE);

    let outcome = stage.lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it drains");
    let given = answer["pods"][0]["given_s"].as_u64();
    assert!(given.is_some_and(|given| (1..=58).contains(&given)), "{answer:#}");
}

#[tokio::test]
async fn a_clock_that_is_a_minute_slow_does_not_make_the_window_longer_than_it_is() {
    let stage = Stage::set("slow-clock").await;
    stage.deploy("web", 1, PodShape::default().grace(600)).await;
    // To a clock that is a minute slow, a notice that was sent just now will be sent in a minute.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() + MINUTE);

    let outcome = stage.lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it drains");
    let given = answer["pods"][0]["given_s"].as_u64();
    assert!(given.is_some_and(|given| given <= 118), "{answer:#}");
}
