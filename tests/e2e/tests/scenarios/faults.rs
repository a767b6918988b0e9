//! Faults between the function and what it asks: the drain goes on as long as there is time, and what is
//! left at the end is told.
//!
//! The sentences that a case of `each_fault` cannot say.

use std::net::TcpListener;
use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::aws::{Fault as AwsFault, Hook};
use spillway_bed::gateway::{Answer, Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::{Lambda, LambdaOptions, Outcome};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, fates, receipt, spot_notice};

const SPOT: Duration = Duration::from_secs(120);
const MINUTE: Duration = Duration::from_secs(60);
/// What a notice that comes too late still has.
const WINDOW: Duration = Duration::from_secs(10);
/// Longer than a connection's pings wait.
const SILENT: Duration = Duration::from_secs(16);
/// A quarter of what a spot notice leaves.
const DOWN: Duration = Duration::from_secs(30);

async fn invoke(stage: &Stage) -> Outcome {
    stage.lambda.invoke(stage.interrupt(SPOT).await).await
}

fn assert_drained(outcome: &Outcome, pods: usize) {
    let answer = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error} {outcome:#?}"));
    assert_eq!((&answer["ending"], fates(answer)["clean"]), (&"drained".into(), pods), "{outcome:#?}");
}

/// Drains two pods past one fault on the way to the API server, in one try.
async fn drains_past(name: &str, call: &str, fault: Fault) -> (Stage, Gateway) {
    let stage = Stage::set(name).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new(call, Which::Nth(1), fault));

    let outcome = invoke(&stage).await;

    assert_drained(&outcome, 2);
    assert!(pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list").is_empty());
    assert!(gateway.rules().struck() >= 1, "the fault was met: {:?}", gateway.rules().calls());
    (stage, gateway)
}

/// Drains two pods past one fault at AWS' end, in one try; what failed is asked again, and the hook is completed.
async fn drains_past_aws(name: &str, service: &str, action: &str, fault: impl FnOnce(AwsFault) -> AwsFault) {
    let stage = Stage::set_in_group(name, Hook::terminate("spillway")).await;
    // Long enough for the second try of a heartbeat, which the drain does not wait for.
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(8))).await;
    let once = AwsFault { times: 1, ..AwsFault::of(stage.lambda.access_key_id(), service, action) };
    stage.world.aws_side().add_fault(&fault(once)).await.expect("a fault");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    assert_drained(&outcome, 2);
    assert_eq!(outcome.result.as_ref().expect("it drains")["hook"]["state"], "completed");
    let (calls, failed) = (stage.aws_calls().await, format!("{service}:{action}"));
    assert!(calls.iter().filter(|call| **call == failed).count() >= 2, "{failed} is asked again: {calls:?}");
}

/// Invokes, and does something when the request is reached that the rule is for. The request is not passed on.
async fn broken_at(stage: &Stage, gateway: &Gateway, call: &str, break_it: impl AsyncFnOnce()) -> Outcome {
    let held = Held::default();
    gateway.rules().add(Rule::new(call, Which::Nth(1), Fault::Hold(Side::Before, held.clone())));
    let mut drain = std::pin::pin!(invoke(stage));
    tokio::select! {
        outcome = &mut drain => panic!("{call} was not reached: {outcome:#?}"),
        () = held.reached() => {}
    }
    tokio::join!(drain, break_it()).0
}

#[tokio::test]
async fn an_ec2_that_resets_is_asked_again() {
    drains_past_aws("ec2-resets", "ec2", "DescribeInstances", |fault| AwsFault { reset: true, ..fault }).await;
}

#[tokio::test]
async fn an_eks_that_fails_is_asked_again() {
    drains_past_aws("eks-fails", "eks", "DescribeCluster", |fault| AwsFault { status: Some(500), ..fault }).await;
}

#[tokio::test]
async fn a_claim_whose_token_is_refused_once_is_made_again() {
    drains_past("token-refused", "patch nodes", Fault::Answer(Answer::kubernetes(401))).await;
}

#[tokio::test]
async fn a_list_that_is_cut_short_is_asked_for_again() {
    drains_past("list-cut-short", "list pods", Fault::CutShort).await;
}

#[tokio::test]
async fn an_eviction_that_is_reset_is_asked_for_again() {
    drains_past("eviction-reset", "create pods/eviction", Fault::Reset).await;
}

#[tokio::test]
async fn a_watch_that_is_answered_with_a_page_is_begun_again() {
    drains_past("watch-page", "watch pods", Fault::NotData).await;
}

#[tokio::test]
async fn a_watch_that_has_lost_its_place_begins_with_a_list() {
    let (_stage, gateway) = drains_past("watch-expired", "watch pods", Fault::Answer(Answer::kubernetes(410))).await;
    let lists = gateway.rules().calls().iter().filter(|call| *call == "list pods").count();
    assert_eq!(lists, 2, "{:?}", gateway.rules().calls());
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
    // Late, so that the window is short.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - SPOT);

    let outcome = stage.lambda.invoke(event).await;

    assert_eq!(outcome.result.as_ref().expect_err("it fails").error_type, "PodsLost");
    let why = receipt(&outcome)["pods"][0]["why"].to_string();
    assert!(why.contains("could not be watched to its end: the API server answered 403"), "{why}");
}

#[tokio::test]
async fn a_path_that_is_not_found_is_not_taken_for_a_pod_that_has_gone() {
    let not_found = Fault::Answer(Answer::kubernetes(404));
    let (_stage, gateway) = drains_past("path-not-found", "create pods/eviction", not_found).await;
    let evictions = gateway.rules().calls().iter().filter(|call| *call == "create pods/eviction").count();
    assert_eq!(evictions, 3, "{:?}", gateway.rules().calls());
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_with_the_window_and_a_receipt() {
    for call in ["patch nodes", "list pods", "create pods/eviction"] {
        let name = format!("silent-{}", call.replace([' ', '/'], "-"));
        let stage = Stage::set(&name).await;
        stage.deploy("web", 1, PodShape::default()).await;
        let gateway = stage.through_gateway().await;
        gateway.rules().add(Rule::new(call, Which::All, Fault::Silence));
        // Lambda ends the function six seconds after its window, long before the call would time out.
        let options =
            LambdaOptions { function_name: name, timeout: WINDOW + Duration::from_secs(6), ..Default::default() };
        let lambda = Lambda::start(stage.world, options).await.expect("credentials");
        gateway.show(stage.world, lambda.access_key_id()).await.expect("EKS shows the gateway");
        // Late, so that the window is short.
        let event = spot_notice(&stage.node.instance_id, Timestamp::now() - SPOT);

        let outcome = lambda.invoke(event).await;

        let receipt = receipt(&outcome);
        assert!(receipt.to_string().contains("the API server did not answer"), "{call}: {receipt:#}");
    }
}

#[tokio::test]
async fn a_heartbeat_that_is_throttled_does_no_harm() {
    let throttled = |fault| AwsFault { status: Some(400), code: Some("Throttling".to_owned()), ..fault };
    drains_past_aws("heartbeat-throttled", "autoscaling", "RecordLifecycleActionHeartbeat", throttled).await;
}

#[tokio::test]
async fn a_completion_whose_connection_is_reset_is_made_again() {
    let reset = |fault| AwsFault { reset: true, ..fault };
    drains_past_aws("completion-reset", "autoscaling", "CompleteLifecycleAction", reset).await;
}

#[tokio::test]
async fn a_connection_that_is_to_be_left_is_left_and_the_drain_goes_on_over_another() {
    let (_stage, gateway) = drains_past("goaway", "list pods", Fault::GoAway).await;
    assert_eq!(gateway.network().connections(), 2);
}

#[tokio::test]
async fn a_token_that_expires_in_mid_drain_is_replaced() {
    let (_stage, gateway) = drains_past("token-expires", "create pods/eviction", Fault::TokenExpires).await;
    let evictions = gateway.rules().calls().iter().filter(|call| *call == "create pods/eviction").count();
    assert!(evictions > 2, "{:?}", gateway.rules().calls());
}

#[tokio::test]
async fn a_busy_api_server_is_left_alone_for_as_long_as_it_asks() {
    let stage = Stage::set("retry-after").await;
    stage.deploy("web", 1, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    let busy = Fault::Answer(Answer::throttled(Some(4)));
    gateway.rules().add(Rule::new("create pods/eviction", Which::Nth(1), busy));

    let outcome = invoke(&stage).await;

    assert_drained(&outcome, 1);
    assert!(outcome.duration >= Duration::from_secs(4), "it waited {:?}", outcome.duration);
}

#[tokio::test]
async fn an_api_server_that_is_down_for_a_while_in_mid_drain_is_waited_for() {
    let stage = Stage::set("server-down").await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = stage.through_gateway().await;

    let outcome = broken_at(&stage, &gateway, "create pods/eviction", async || {
        gateway.network().set_mode(Mode::Refuse).await.expect("it refuses");
        gateway.network().reset();
        // The time is the fault: nothing is waited for.
        tokio::time::sleep(DOWN).await;
        gateway.network().set_mode(Mode::Pass).await.expect("it is back");
    })
    .await;

    assert_drained(&outcome, 2);
}

#[tokio::test]
async fn a_network_that_goes_silent_in_mid_drain_is_left_for_a_new_connection() {
    let stage = Stage::set("silent-network").await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let gateway = stage.through_gateway().await;

    let outcome = broken_at(&stage, &gateway, "watch pods", async || {
        gateway.network().set_mode(Mode::BlackHole).await.expect("it is silent");
        // The time is the fault: nothing is waited for.
        tokio::time::sleep(SILENT).await;
        gateway.network().set_mode(Mode::Pass).await.expect("it is back");
    })
    .await;

    assert_drained(&outcome, 2);
    assert!(gateway.network().connections() >= 2);
}

/// Drains two pods though EKS shows another endpoint first, until it is asked again.
async fn drains_past_endpoint(name: &str, endpoint: &str) {
    let stage = Stage::set(name).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = Gateway::before_api_server(stage.world, Rules::default()).expect("a gateway");
    let (aws, key, ca) = (stage.world.aws_side(), stage.lambda.access_key_id(), gateway.ca());
    aws.override_endpoint(key, &stage.world.cluster, Some(endpoint), Some(&ca)).await.expect("EKS shows it");

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
async fn a_name_that_does_not_resolve_is_asked_of_eks_again() {
    drains_past_endpoint("no-such-name", "https://nowhere.invalid").await;
}

#[tokio::test]
async fn an_endpoint_that_accepts_and_says_nothing_is_asked_of_eks_again() {
    // The kernel accepts, and nobody speaks TLS.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("https://{}", mute.local_addr().expect("an address"));
    drains_past_endpoint("mute-endpoint", &endpoint).await;
}

#[tokio::test]
async fn an_authority_that_changes_in_mid_drain_is_asked_of_eks() {
    let stage = Stage::set("rotated-in-mid-drain").await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = stage.through_gateway().await;

    let outcome = broken_at(&stage, &gateway, "create pods/eviction", async || {
        gateway.rotate_authority().expect("a new authority");
        gateway.show(stage.world, stage.lambda.access_key_id()).await.expect("EKS shows it");
        gateway.network().reset();
    })
    .await;

    assert_drained(&outcome, 2);
    let asked = stage.aws_calls().await.into_iter().filter(|call| call == "eks:DescribeCluster").count();
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn what_is_left_at_the_end_is_told_pod_by_pod_with_the_fault() {
    let stage = Stage::set("left").await;
    stage.deploy("web", 3, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    for call in ["create pods/eviction", "delete pods"] {
        gateway.rules().add(Rule::new(call, Which::All, Fault::Answer(Answer::kubernetes(500))));
    }
    // Late, so that the window is short.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - SPOT);

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
