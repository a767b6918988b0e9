//! What stops working in mid-drain, and works again later. The pods leave in time.
//!
//! Each has a spot notice and two pods. Their evictions stand still when the fault begins, so that none is over before it. A webhook
//! is slow from the start.
//!
//! Reason: connection.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use spillway_bed::aws::Fault as AwsFault;
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, fates, receipt};
use tokio::time::{sleep, timeout};

const SPOT: Duration = Duration::from_secs(120);
const PODS: usize = 2;
const EVICT: &str = "create pods/eviction";
const LIST: &str = "list pods";
const DESCRIBE: &str = "eks:DescribeCluster";
/// How often a service that answers no is asked until it answers well: once could be the end of a retry.
const ASKED: usize = 3;

async fn stage(name: &str) -> Stage {
    let stage = Stage::set(name).await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    stage
}

/// Drains the node. The fault begins, and ends, while its evictions are under way: they are lost, and have to be made again.
async fn drain_past(stage: &Stage, gateway: &Gateway, fault: impl AsyncFnOnce(&Requests<'_>)) -> Outcome {
    drain_past_at(EVICT, stage, gateway, fault).await
}

/// The same, while such requests are under way.
async fn drain_past_at(
    made: &'static str,
    stage: &Stage,
    gateway: &Gateway,
    fault: impl AsyncFnOnce(&Requests<'_>),
) -> Outcome {
    let requests = Requests { made, held: Held::default(), gateway };
    let lost = Fault::Hold(Side::Instead, requests.held.clone());
    gateway.rules().add(Rule::new(made, Which::All, lost));
    let mut drain = pin!(stage.lambda.invoke(stage.interrupt(SPOT).await));
    tokio::select! {
        outcome = &mut drain => panic!("no {made} was made: {outcome:#?}"),
        () = requests.held.reached() => {}
    }
    tokio::join!(drain, fault(&requests)).0
}

/// Requests that have been made, and that the API server has not seen.
struct Requests<'a> {
    made: &'static str,
    held: Held,
    gateway: &'a Gateway,
}

impl Requests<'_> {
    /// Loses them: each is made again.
    fn lose(&self) {
        self.gateway.rules().clear();
        self.held.release();
    }

    /// Waits until so many have been made, with those that are lost.
    async fn until_made(&self, times: usize) {
        let made = async {
            while self.gateway.rules().calls().iter().filter(|call| *call == self.made).count() < times {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(SPOT, made).await.expect("they are made again");
    }

    /// Loses them, and the API server takes their token no more.
    fn lose_with_token(&self) {
        self.gateway.rules().clear();
        self.gateway.rules().add(Rule::new(EVICT, Which::Nth(1), Fault::TokenExpires));
        self.held.release();
    }

    /// Loses them with their connection. EKS is asked where the API server is, again and again: nothing of what it says leads
    /// there.
    async fn lose_with_connection(&self, stage: &Stage) {
        self.gateway.network().reset();
        // No request is on the old connection by then.
        stage.until_called(DESCRIBE, 2).await;
        self.lose();
        stage.until_called(DESCRIBE, 1 + ASKED).await;
    }

    /// The same, and nobody is at the endpoint any more.
    async fn lose_with_endpoint(&self, stage: &Stage) {
        self.gateway.network().set_mode(Mode::Refuse).await.expect("the network is there");
        self.lose_with_connection(stage).await;
    }
}

/// Every pod was evicted, and had gone before the instance did.
async fn assert_in_time(stage: &mut Stage, outcome: &Outcome) {
    let told = receipt(outcome);
    assert_eq!(
        (&told["ending"], fates(&told)),
        (&"drained".into(), [("clean".to_owned(), PODS)].into()),
        "{outcome:#?}"
    );
    let evicted = stage.audit.requests().expect("the audit log").into_iter();
    // An answer that comes late is asked for again, and may be the same.
    let evicted = evicted.filter(|made| made.subresource == "eviction" && made.code == Some(201)).map(|made| made.name);
    assert_eq!(evicted.collect::<BTreeSet<_>>().len(), PODS, "{outcome:#?}");
    let left = pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("the API server answers");
    assert!(left.is_empty(), "{left:#?}");
}

/// AWS says of such calls of the function's that the credentials they are signed with are too old.
async fn expire_credentials(stage: &Stage, service: &str, action: &str, code: &str) {
    let fault = AwsFault {
        status: Some(403),
        code: Some(code.to_owned()),
        message: Some("The security token included in the request is expired".to_owned()),
        ..AwsFault::of(stage.lambda.access_key_id(), service, action)
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");
}

/// Waits until EKS has described the cluster so often.
async fn until_eks_has_answered(stage: &Stage, times: usize) {
    let aws = stage.world.aws_side();
    let answered = async || {
        let calls = aws.calls(Some(stage.lambda.access_key_id())).await.expect("the journal is there");
        calls.iter().filter(|call| call.action == "DescribeCluster" && call.status == 200).count()
    };
    let enough = async {
        while answered().await < times {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(SPOT, enough).await.expect("EKS answers");
}

async fn take_credentials_again(stage: &Stage) {
    stage.world.aws_side().clear_faults(stage.lambda.access_key_id()).await.expect("no fault");
}

#[tokio::test]
async fn a_token_that_aws_calls_expired_in_mid_drain_is_signed_again_until_it_is_taken() {
    let mut stage = stage("token-expired").await;
    let gateway = stage.through_gateway().await;

    let outcome = drain_past(&stage, &gateway, async |evictions| {
        // The API server takes a token for 10 s without asking whose it is. Of a new one the authenticator asks STS, and the API
        // server answers 401.
        expire_credentials(&stage, "sts", "GetCallerIdentity", "ExpiredToken").await;
        evictions.lose_with_token();
        evictions.until_made(PODS + ASKED * PODS).await;
        take_credentials_again(&stage).await;
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
    let told = receipt(&outcome);
    assert!(told.to_string().contains("\"unauthorized\""), "{told:#}");
}

/// Where the API server can be found from now on, when EKS shows it.
fn another_endpoint(stage: &Stage) -> Gateway {
    Gateway::before_api_server(stage.world, Rules::default()).expect("a gateway")
}

#[tokio::test]
async fn eks_that_calls_the_credentials_expired_in_mid_drain_is_asked_for_the_endpoint_again() {
    let mut stage = stage("credentials-expired").await;
    let (gateway, moved) = (stage.through_gateway().await, another_endpoint(&stage));

    let outcome = drain_past(&stage, &gateway, async |evictions| {
        expire_credentials(&stage, "eks", "DescribeCluster", "ExpiredTokenException").await;
        moved.show(stage.world, stage.lambda.access_key_id()).await.expect("EKS shows it");
        evictions.lose_with_endpoint(&stage).await;
        take_credentials_again(&stage).await;
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
}

#[tokio::test]
async fn eks_that_says_nothing_keeps_no_pod_of_a_cluster_that_was_out_of_reach_for_a_moment() {
    let mut stage = stage("eks-silent-meanwhile").await;
    let gateway = stage.through_gateway().await;
    let silent = AwsFault {
        delay_ms: Some(u64::try_from(SPOT.as_millis()).expect("it is short")),
        ..AwsFault::of(stage.lambda.access_key_id(), "eks", "DescribeCluster")
    };

    let outcome = drain_past_at(LIST, &stage, &gateway, async |lists| {
        stage.world.aws_side().add_fault(&silent).await.expect("a fault");
        let network = gateway.network();
        network.set_mode(Mode::Refuse).await.expect("the network is there");
        network.reset();
        lists.lose();
        stage.until_called(DESCRIBE, 2).await;
        network.set_mode(Mode::Pass).await.expect("the network is there");
    })
    .await;

    let said = |text: &str| outcome.logs.iter().position(|line| line.contains(text));
    let not_connected = said("cannot connect to the API server").expect("it was out of reach");
    let eks_given_up = said("cannot renew the description of cluster").unwrap_or(usize::MAX);
    assert!(not_connected < eks_given_up, "EKS was waited for: {outcome:#?}");
    assert_in_time(&mut stage, &outcome).await;
}

#[tokio::test]
async fn a_cluster_that_has_not_moved_keeps_the_connection_that_came_about_while_eks_was_asked() {
    let mut stage = stage("has-not-moved").await;
    let gateway = stage.through_gateway().await;
    let slow =
        AwsFault { delay_ms: Some(3000), ..AwsFault::of(stage.lambda.access_key_id(), "eks", "DescribeCluster") };

    let outcome = drain_past(&stage, &gateway, async |evictions| {
        stage.world.aws_side().add_fault(&slow).await.expect("a fault");
        let network = gateway.network();
        network.set_mode(Mode::Refuse).await.expect("the network is there");
        network.reset();
        stage.until_called(DESCRIBE, 2).await;
        network.set_mode(Mode::Pass).await.expect("the network is there");
        // Over a connection that comes about before EKS answers.
        evictions.until_made(2 * PODS).await;
        until_eks_has_answered(&stage, 2).await;
        evictions.lose();
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
    assert_eq!(gateway.network().connections(), 2, "one before it was out of reach, and one since: {outcome:#?}");
}

#[tokio::test]
async fn an_endpoint_whose_new_name_dns_does_not_know_yet_is_asked_of_eks_until_it_is_found() {
    let mut stage = stage("no-name").await;
    let (gateway, moved) = (stage.through_gateway().await, another_endpoint(&stage));
    let (aws, key, ca) = (stage.world.aws_side(), stage.lambda.access_key_id(), moved.ca());

    let outcome = drain_past(&stage, &gateway, async |evictions| {
        // No name of the top-level domain `invalid` exists (RFC 2606).
        let shown = aws.override_endpoint(key, &stage.world.cluster, Some("https://moved.invalid"), Some(&ca)).await;
        shown.expect("EKS shows it");
        evictions.lose_with_endpoint(&stage).await;
        moved.show(stage.world, key).await.expect("EKS shows it");
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
}

#[tokio::test]
async fn a_certificate_of_an_authority_that_eks_does_not_show_yet_is_trusted_when_it_does() {
    let mut stage = stage("rotated-meanwhile").await;
    let gateway = stage.through_gateway().await;

    let outcome = drain_past(&stage, &gateway, async |evictions| {
        // What EKS shows is the old one.
        gateway.rotate_authority().expect("a new authority");
        evictions.lose_with_connection(&stage).await;
        gateway.show(stage.world, stage.lambda.access_key_id()).await.expect("EKS shows it");
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
}
