//! Failures in mid-drain that pass: the pods leave in time.
//!
//! Each scenario has a spot notice and two pods. Their evictions are held when the failure begins, so that none precedes it.
//!
//! Reason: connection.

use std::collections::BTreeSet;
use std::pin::pin;

use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Side, Which};
use spillway_bed::lambda::Outcome;
use spillway_bed::pods;
use spillway_bed::proxy::Mode;
use spillway_e2e::{SPOT, Stage, fates, receipt, until};

const PODS: usize = 2;
const EVICT: &str = "create pods/eviction";
const LIST: &str = "list pods";
const DESCRIBE: &str = "eks:DescribeCluster";
/// Calls of a failing service before it works again: one could be the end of a retry.
const CALLS: usize = 3;

async fn set(name: &str) -> (Stage, Gateway) {
    let stage = Stage::set(name).await;
    stage.deploy_quick("web", 2).await;
    let gateway = stage.through_gateway().await;
    (stage, gateway)
}

/// Drains the node. The failure begins and ends while such requests are held: they are lost, and have to be repeated.
async fn drain_past(
    made: &'static str,
    stage: &Stage,
    gateway: &Gateway,
    failure: impl AsyncFnOnce(&Requests<'_>),
) -> Outcome {
    let requests = Requests { made, held: Held::default(), gateway };
    let lost = Fault::Hold(Side::Instead, requests.held.clone());
    gateway.rules().add(Rule::new(made, Which::All, lost));
    let mut drain = pin!(stage.drain());
    tokio::select! {
        outcome = &mut drain => panic!("no {made} was made: {outcome:#?}"),
        () = requests.held.reached() => {}
    }
    tokio::join!(drain, failure(&requests)).0
}

/// Held requests that the API server does not receive.
struct Requests<'a> {
    made: &'static str,
    held: Held,
    gateway: &'a Gateway,
}

impl Requests<'_> {
    /// Loses the requests: each is repeated.
    fn lose(&self) {
        self.gateway.rules().clear();
        self.held.release();
    }

    /// Waits until that many requests have been made, with the lost ones.
    async fn until_made(&self, times: usize) {
        let made = async || self.gateway.rules().calls().iter().filter(|call| *call == self.made).count() >= times;
        until("repeated requests", made).await;
    }

    /// Loses the requests, and has the API server refuse their token.
    fn lose_with_token(&self) {
        self.gateway.rules().clear();
        self.gateway.rules().add(Rule::new(EVICT, Which::Nth(1), Fault::TokenExpires));
        self.held.release();
    }

    /// Loses the requests with their connection. EKS describes the cluster several times, and each answer leads nowhere.
    async fn lose_with_connection(&self, stage: &Stage) {
        self.gateway.network().reset();
        // No request is on the old connection by then.
        stage.until_called(DESCRIBE, 2).await;
        self.lose();
        stage.until_called(DESCRIBE, 1 + CALLS).await;
    }

    /// Loses the requests with their connection, and closes the endpoint.
    async fn lose_with_endpoint(&self, stage: &Stage) {
        self.gateway.network().set_mode(Mode::Refuse).await.expect("the network exists");
        self.lose_with_connection(stage).await;
    }
}

/// Closes the endpoint until EKS has described the cluster again.
async fn interrupt_network(stage: &Stage, gateway: &Gateway, meanwhile: impl FnOnce()) {
    let network = gateway.network();
    network.set_mode(Mode::Refuse).await.expect("the network exists");
    network.reset();
    meanwhile();
    stage.until_called(DESCRIBE, 2).await;
    network.set_mode(Mode::Pass).await.expect("the network exists");
}

/// Asserts that every pod was evicted and left within its grace.
async fn assert_in_time(stage: &mut Stage, outcome: &Outcome) {
    let receipt = receipt(outcome);
    let expected = (&"drained".into(), [("clean".to_owned(), PODS)].into());
    assert_eq!((&receipt["ending"], fates(&receipt)), expected, "{outcome:#?}");
    // A request whose answer comes late is repeated.
    let evicted =
        stage.requests().into_iter().filter(spillway_bed::audit::Request::is_granted_eviction).map(|made| made.name);
    assert_eq!(evicted.collect::<BTreeSet<_>>().len(), PODS, "{outcome:#?}");
    let left = pods::on_node(&stage.client(), &stage.node.name).await.expect("a list");
    assert!(left.is_empty(), "{left:#?}");
}

/// Has AWS refuse such calls because of the age of their credentials.
async fn expire_credentials(stage: &Stage, service: &str, action: &str, code: &str) {
    stage.refuse_call(service, action, 403, code, "The security token included in the request is expired").await;
}

#[tokio::test]
async fn token_of_expired_credentials_is_signed_again_until_accepted() {
    let (mut stage, gateway) = set("token-expired").await;

    let outcome = drain_past(EVICT, &stage, &gateway, async |evictions| {
        // The API server caches an accepted token for 10 s. The authenticator asks STS about a new one, and the API server
        // answers 401.
        expire_credentials(&stage, "sts", "GetCallerIdentity", "ExpiredToken").await;
        evictions.lose_with_token();
        evictions.until_made(PODS + CALLS * PODS).await;
        stage.clear_faults().await;
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
    let receipt = receipt(&outcome);
    assert!(receipt.to_string().contains("\"unauthorized\""), "{receipt:#}");
}

#[tokio::test]
async fn eks_that_refuses_expired_credentials_is_called_again() {
    let (mut stage, gateway) = set("credentials-expired").await;
    let moved = stage.gateway();

    let outcome = drain_past(EVICT, &stage, &gateway, async |evictions| {
        expire_credentials(&stage, "eks", "DescribeCluster", "ExpiredTokenException").await;
        moved.show(stage.world, stage.lambda.access_key_id()).await.expect("EKS shows the gateway");
        evictions.lose_with_endpoint(&stage).await;
        stage.clear_faults().await;
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
}

#[tokio::test]
async fn silent_eks_keeps_no_pod_of_a_cluster_that_is_back() {
    let (mut stage, gateway) = set("eks-silent-meanwhile").await;

    let outcome = drain_past(LIST, &stage, &gateway, async |lists| {
        stage.delay_call("eks", "DescribeCluster", SPOT).await;
        interrupt_network(&stage, &gateway, || lists.lose()).await;
    })
    .await;

    let line = |text: &str| outcome.logs.iter().position(|line| line.contains(text));
    let not_connected = line("cannot connect to the API server").expect("the cluster was unreachable");
    let eks_given_up = line("cannot renew the description of cluster").unwrap_or(usize::MAX);
    assert!(not_connected < eks_given_up, "the drain waited for EKS: {outcome:#?}");
    assert_in_time(&mut stage, &outcome).await;
}

#[tokio::test]
async fn endpoint_that_dns_does_not_resolve_has_eks_described_again() {
    let (mut stage, gateway) = set("no-name").await;
    let (moved, aws) = (stage.gateway(), stage.aws());

    let outcome = drain_past(EVICT, &stage, &gateway, async |evictions| {
        let (key, cluster) = (stage.lambda.access_key_id(), &stage.world.cluster);
        // No name of the top-level domain `invalid` exists (RFC 2606).
        let shown = aws.override_endpoint(key, cluster, Some("https://moved.invalid"), Some(&moved.ca())).await;
        shown.expect("EKS shows the name");
        evictions.lose_with_endpoint(&stage).await;
        moved.show(stage.world, key).await.expect("EKS shows the gateway");
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
}

#[tokio::test]
async fn new_authority_is_trusted_when_eks_shows_it() {
    let (mut stage, gateway) = set("rotated-meanwhile").await;

    let outcome = drain_past(EVICT, &stage, &gateway, async |evictions| {
        // EKS still shows the old authority.
        gateway.rotate_authority().expect("a new authority");
        evictions.lose_with_connection(&stage).await;
        gateway.show(stage.world, stage.lambda.access_key_id()).await.expect("EKS shows the gateway");
    })
    .await;

    assert_in_time(&mut stage, &outcome).await;
}
