//! Karpenter's nodes: left to it, or handed to it with the deadline.
//!
//! Reason: API semantics.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::karpenter::{Karpenter, NodeClaim, TERMINATION_TIMESTAMP, node_claims};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, world};

const SPOT: Duration = Duration::from_secs(120);

/// A stage whose node is Karpenter's, of a pool that is named after the stage.
struct OnKarpenter {
    stage: Stage,
    claim: NodeClaim,
}

impl OnKarpenter {
    async fn set(name: &str, setting: &str) -> Self {
        let karpenter = Karpenter::start(world().await, name).await.expect("Karpenter is installed");
        let claim = karpenter.claim().await.expect("it is created");
        let node = NodeOptions { spot: true, node_claim: Some(claim.clone()), ..NodeOptions::default() };
        let env = [("SPILLWAY_KARPENTER".to_owned(), setting.to_owned())].into();
        let stage = Stage::set_with(name, node).await.with_function(LambdaOptions { env, ..LambdaOptions::default() });
        Self { stage: stage.await, claim }
    }

    /// Runs a deployment on any node of the pool.
    async fn deploy(&self, replicas: u32, shape: PodShape) {
        let (client, name) = (self.stage.world.admin(), &self.stage.name);
        let shape = shape.with(json!({"spec": {"nodeSelector": {"karpenter.sh/nodepool": name}}}));
        pods::create(&client, &pods::deployment(name, "web", replicas, &shape)).await.expect("it is created");
        pods::until_running_of(&client, name, "web", replicas as usize).await.expect("its pods run");
    }

    /// The claim as it is now.
    async fn now(&self) -> NodeClaim {
        node_claims(&self.stage.world.admin()).get(&self.claim.name_any()).await.expect("it is still there")
    }

    async fn annotate_claim(&self, deadline: Timestamp) {
        let patch = json!({"metadata": {"annotations": {TERMINATION_TIMESTAMP: deadline.to_string()}}});
        let claims = node_claims(&self.stage.world.admin());
        claims.patch(&self.claim.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.expect("it is there");
    }
}

/// The time by which a notice says that the instance goes.
fn deadline(event: &Value) -> Timestamp {
    let time: Timestamp = event["time"].as_str().expect("a time").parse().expect("RFC 3339");
    time + SPOT
}

fn written(claim: &NodeClaim) -> Option<Timestamp> {
    claim.annotations().get(TERMINATION_TIMESTAMP).and_then(|text| text.parse().ok())
}

#[tokio::test]
async fn nodeclaim_gets_the_deadline_and_is_deleted() {
    let mut on = OnKarpenter::set("handed", "nodeclaim").await;
    on.deploy(2, PodShape::default()).await;
    let event = on.stage.interrupt(SPOT).await;

    let outcome = on.stage.lambda.invoke(&event).await;

    let answer = outcome.result.as_ref().expect("it is handed over");
    assert_eq!(answer["ending"], "done", "{outcome:#?}");
    assert_eq!(answer["node"], on.stage.node.name);
    let claim = on.now().await;
    assert!(claim.metadata.deletion_timestamp.is_some());
    assert_eq!(written(&claim), Some(deadline(&event)));
    let (node, name, until) = (&on.stage.node.name, claim.name_any(), deadline(&event));
    let reason = format!("NodeClaim {name} is deleted: Karpenter replaces node {node} and drains it by {until}");
    assert_eq!(answer["reason"], reason);
    let asked = [
        format!("get nodes {node} → 200"),
        format!("get nodeclaims {name} → 200"),
        format!("patch nodeclaims {name} → 200"),
        format!("delete nodeclaims {name} → 200"),
    ];
    assert_eq!(on.stage.requests(), asked);
}

#[tokio::test]
async fn an_earlier_deadline_that_somebody_writes_in_between_stays_too() {
    let mut on = OnKarpenter::set("karpenter-between", "nodeclaim").await;
    let gateway = on.stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("patch nodeclaims", Which::Nth(1), Fault::Hold(Side::Before, held.clone())));
    let event = on.stage.interrupt(SPOT).await;
    let earlier = deadline(&event) - Duration::from_secs(30);

    let (outcome, ()) = tokio::join!(on.stage.lambda.invoke(&event), async {
        held.reached().await;
        on.annotate_claim(earlier).await;
        held.release();
    });

    assert_eq!(outcome.result.as_ref().expect("it is handed over")["ending"], "done", "{outcome:#?}");
    assert_eq!(written(&on.now().await), Some(earlier));
    let writes: Vec<String> = on.stage.requests().into_iter().filter(|request| request.starts_with("patch")).collect();
    assert_eq!(writes, [format!("patch nodeclaims {} → 409", on.claim.name_any())]);
}
