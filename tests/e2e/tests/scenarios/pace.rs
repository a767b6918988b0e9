//! The pace of planned maintenance: of six nodes of one group and zone five drain, and the sixth waits with a taint.
//!
//! Reason: API semantics.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::pods::PodShape;
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, ended, world};

/// A zone of this scenario alone.
const ZONE: &str = "us-east-1d";
/// The API server escapes `&` in its JSON, and compares the bytes of texts.
const GROUP: &str = "blue & green";

async fn patch(stage: &Stage, node: &str, change: Value) {
    let nodes = Api::<Node>::all(stage.client());
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(change)).await.expect("the node changes");
}

async fn is_planned(stage: &Stage) -> bool {
    stage.taints().await.iter().any(|taint| taint.starts_with("spillway/planned"))
}

#[tokio::test]
async fn sixth_node_waits_with_a_taint_until_one_of_five_is_over() {
    let in_zone = || NodeOptions { zone: ZONE.to_owned(), ..NodeOptions::in_group(GROUP) };
    world().await.aws_side().put_group(GROUP, &[]).await.expect("the group is new");
    let stage = Stage::set_with("pace", in_zone()).await;
    let stage = stage.with_settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", "3600")]).await;
    stage.deploy("web", 1, PodShape::default()).await;
    let starts = in_s(1500);
    let claim = json!({"event": "e", "request": "r", "notice": "scheduled maintenance", "cordoned": true, "until": starts,
        "pace": {"group": GROUP, "claimed": Timestamp::now()}});
    let claimed =
        json!({"metadata": {"annotations": {"spillway/claim": claim.to_string()}}, "spec": {"unschedulable": true}});
    let mut last = String::new();
    for _ in 0..5 {
        last = stage.world.add_node(in_zone()).await.expect("the node joins").name;
        patch(&stage, &last, claimed.clone()).await;
    }

    let waiting = stage.notify(&Maintenance::of(&stage.node.instance_id, starts).notice("sixth")).await;

    let (ending, reason) = ended(&waiting);
    assert_eq!(ending, "continued", "{reason}");
    assert!(reason.ends_with("5 other nodes of its group and zone are being drained"), "{reason}");
    assert!(is_planned(&stage).await && !stage.is_cordoned().await);
    let mut schedules = stage.schedules().await.into_iter();
    let turn = schedules.find(|one| one.input.get("spillway-continuation").is_some()).expect("a schedule of its turn");
    assert!(in_s(120) < turn.at && turn.at < in_s(245), "{turn:?}");

    let over = json!({"metadata": {"annotations": {"spillway/claim": null}}, "spec": {"unschedulable": null}});
    patch(&stage, &last, over).await;
    let drained = stage.lambda.invoke(turn.input).await;

    assert_eq!(ended(&drained).0, "drained", "{drained:#?}");
    assert!(!is_planned(&stage).await);
    let node = stage.node_now().await;
    let claim = &node.annotations()["spillway/claim"];
    assert!(claim.contains(r#""over":true"#), "{claim}");
}
