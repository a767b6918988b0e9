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

/// Others have no nodes there.
const ZONE: &str = "us-east-1d";
/// The API server escapes this character in its JSON, and compares texts by their bytes.
const GROUP: &str = "blue & green";

async fn patch(stage: &Stage, node: &str, change: Value) {
    let nodes = Api::<Node>::all(stage.world.admin());
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(change)).await.expect("it is patched");
}

#[tokio::test]
async fn sixth_node_waits_with_a_taint_until_one_of_five_is_over() {
    let in_zone = || NodeOptions { zone: ZONE.to_owned(), group: Some(GROUP.to_owned()), ..NodeOptions::default() };
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
        last = stage.world.add_node(in_zone()).await.expect("it joins").name;
        patch(&stage, &last, claimed.clone()).await;
    }
    let notice = Maintenance::of(&stage.node.instance_id, starts).notice("sixth");

    let waiting = stage.notify(&notice).await;

    let (ending, reason) = ended(&waiting);
    assert_eq!(ending, "continued", "{reason}");
    assert!(reason.ends_with("5 other nodes of its group and zone are being drained"), "{reason}");
    assert!(
        stage.taints().await.iter().any(|taint| taint.starts_with("spillway/planned")),
        "{:?}",
        stage.taints().await
    );
    assert!(!stage.is_cordoned().await);
    let schedules = stage.world.aws_side().schedules(stage.lambda.access_key_id()).await.expect("Scheduler is there");
    let schedule =
        schedules.into_iter().find(|one| one.input.get("spillway-continuation").is_some()).expect("its turn");
    assert!(in_s(120) < schedule.at && schedule.at < in_s(245), "{schedule:?}");

    patch(
        &stage,
        &last,
        json!({"metadata": {"annotations": {"spillway/claim": null}}, "spec": {"unschedulable": null}}),
    )
    .await;
    let drained = stage.lambda.invoke(schedule.input).await;

    assert_eq!(ended(&drained).0, "drained", "{drained:#?}");
    let node = stage.node_now().await;
    assert!(
        !stage.taints().await.iter().any(|taint| taint.starts_with("spillway/planned")),
        "{:?}",
        stage.taints().await
    );
    let claim = &node.annotations()["spillway/claim"];
    assert!(claim.contains(r#""over":true"#), "{claim}");
}
