//! The stand-in for Karpenter: with Karpenter's own definitions, a deleted NodeClaim goes the way that Karpenter takes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use jiff::{Timestamp, Unit};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::karpenter::Karpenter;
use spillway_bed::node_claim::{NodeClaim, TERMINATION_TIMESTAMP, node_claims};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, TestNode, World, nodes};
use tokio::sync::OnceCell;

async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD.get_or_init(|| async { World::start().await.unwrap() }).await
}

/// A pool with one node, and a deployment that runs on any node of the pool.
struct Stage {
    world: &'static World,
    karpenter: Karpenter,
    claim: NodeClaim,
    node: TestNode,
    pods: Vec<Pod>,
}

impl Stage {
    async fn set(name: &str, replicas: usize, shape: PodShape) -> Self {
        let world = world().await;
        let client = world.admin();
        let karpenter = Karpenter::start(world, name).await.unwrap();
        let claim = karpenter.claim().await.unwrap();
        let options = NodeOptions { node_claim: Some(claim.clone()), ..NodeOptions::default() };
        let node = world.add_node(options).await.unwrap();
        pods::create_namespace(&client, name).await.unwrap();
        let shape = shape.with(json!({"spec": {"nodeSelector": {"karpenter.sh/nodepool": name}}}));
        pods::create(&client, &pods::deployment(name, "web", replicas.try_into().unwrap(), &shape)).await.unwrap();
        let pods = pods::until_running_of(&client, name, "web", replicas).await.unwrap();
        Self { world, karpenter, claim, node, pods }
    }

    async fn delete_claim(&self) {
        let claims = node_claims(&self.world.admin());
        claims.delete(&self.claim.name_any(), &DeleteParams::default()).await.unwrap();
    }

    /// What was asked of these pods, and of nodes.
    fn requests(&self) -> Vec<Request> {
        let pods: Vec<String> = self.pods.iter().map(ResourceExt::name_any).collect();
        let mut audit = AuditLog::of_user(&self.world.audit_log, "bed-admin");
        let requests = audit.requests().unwrap().into_iter();
        requests.filter(|request| request.resource == "nodes" || pods.contains(&request.name)).collect()
    }
}

#[tokio::test]
async fn a_deleted_claim_moves_its_pods_to_a_replacement_that_is_there_first_and_goes_with_its_node() {
    let stage = Stage::set("moves", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let client = stage.world.admin();

    stage.delete_claim().await;
    stage.karpenter.until_gone(&stage.claim).await.unwrap();

    nodes::until_gone(&client, &stage.node.name).await.unwrap();
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.unwrap();
    assert_eq!(instance.state, "terminated");
    let moved = pods::until_running_of(&client, "moves", "web", 2).await.unwrap();
    let replacement = moved[0].spec.as_ref().unwrap().node_name.clone().unwrap();
    assert_ne!(replacement, stage.node.name);
    let owners = Api::<Node>::all(client).get(&replacement).await.unwrap().metadata.owner_references.unwrap();
    assert_eq!((owners[0].kind.as_str(), owners[0].api_version.as_str()), ("NodeClaim", "karpenter.sh/v1"));

    let requests = stage.requests();
    let first = |wanted: &dyn Fn(&Request) -> bool| requests.iter().position(wanted).unwrap();
    let replaced =
        first(&|request| request.verb == "create" && request.uri.contains("/nodes") && request.name == replacement);
    let asked = first(&|request| request.subresource == "eviction");
    assert!(replaced < asked, "the replacement is there before the first pod is asked to leave: {requests:#?}");
}

#[tokio::test]
async fn a_pod_that_its_budget_holds_is_deleted_with_its_whole_grace_when_the_termination_timestamp_nears() {
    let grace = Duration::from_secs(3);
    let stage = Stage::set("held", 1, PodShape::default().grace(3).exits_after(grace)).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget("held", "web", 1)).await.unwrap();
    pods::until_budget_sees(&client, "held", "web", 1).await.unwrap();

    stage.delete_claim().await;
    let mut audit = AuditLog::of_user(&stage.world.audit_log, "bed-admin");
    let in_vain =
        |requests: &[Request]| requests.iter().any(|it| it.subresource == "eviction" && it.namespace == "held");
    audit.wait_until("an eviction", Duration::from_mins(1), in_vain).await.unwrap();
    let deadline = (Timestamp::now() + Duration::from_secs(8)).round(Unit::Second).unwrap();
    let annotation = Patch::Merge(json!({"metadata": {"annotations": {TERMINATION_TIMESTAMP: deadline.to_string()}}}));
    let claims = node_claims(&client);
    claims.patch(&stage.claim.name_any(), &PatchParams::default(), &annotation).await.unwrap();
    stage.karpenter.until_gone(&stage.claim).await.unwrap();

    let requests = stage.requests();
    let evictions = requests.iter().filter(|request| request.subresource == "eviction");
    assert!(
        evictions.clone().count() > 0 && evictions.clone().all(|eviction| eviction.code == Some(429)),
        "{requests:#?}"
    );
    let deletion = requests.iter().find(|request| request.verb == "delete" && request.resource == "pods").unwrap();
    assert_eq!(deletion.code, Some(200));
    assert!(deletion.received > deadline - grace, "not before its time: {deletion:?}, deadline {deadline}");
}
