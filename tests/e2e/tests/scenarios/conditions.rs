//! `NodeConditions`: a node's conditions say that its drain is planned, goes on and is over; and nothing of it stays on a node that is
//! given back.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use serde_json::{Value, json};
use spillway_bed::pods::PodShape;
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, ended, spot_notice};

/// A stage whose function sets conditions.
async fn stage(name: &str) -> Stage {
    Stage::set(name).await.with_settings(&[("SPILLWAY_NODE_CONDITIONS", "true")]).await
}

/// The node's conditions, by type.
async fn conditions(stage: &Stage) -> BTreeMap<String, NodeCondition> {
    let status = stage.node_now().await.status.unwrap_or_default();
    status.conditions.into_iter().flatten().map(|condition| (condition.type_.clone(), condition)).collect()
}

/// The status and the message of one, if the node has it.
fn said<'a>(conditions: &'a BTreeMap<String, NodeCondition>, of_type: &str) -> Option<(&'a str, &'a str)> {
    let condition = conditions.get(of_type)?;
    Some((condition.status.as_str(), condition.message.as_deref().unwrap_or_default()))
}

#[tokio::test]
async fn a_node_says_how_far_it_is_drained_and_that_it_is_drained() {
    let mut stage = stage("conditions").await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let before = conditions(&stage).await;

    let outcome = stage.notify(&spot_notice(&stage.node.instance_id, Timestamp::now())).await;

    assert_eq!(ended(&outcome).0, "drained", "{outcome:#?}");
    let after = conditions(&stage).await;
    assert_eq!(said(&after, "DrainInProgress"), Some(("False", "2 of 2 pods have gone")));
    assert_eq!(said(&after, "Drained"), Some(("True", "2 of 2 pods have gone")));
    assert_eq!(said(&after, "Ready").map(|(status, _)| status), said(&before, "Ready").map(|(status, _)| status));
    let requests = stage.requests();
    let patches = requests.iter().filter(|request| request.starts_with("patch nodes/status"));
    assert_eq!(patches.count(), 2, "how far it has come, and how it ended: {requests:#?}");
}

#[tokio::test]
async fn a_node_says_when_its_drain_begins_until_its_maintenance_is_called_off() {
    let stage = stage("conditions-planned").await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(86_400));
    let outcome = stage.notify(&maintenance.notice("announced")).await;
    let (ending, reason) = ended(&outcome);
    assert_eq!(ending, "continued", "{outcome:#?}");
    let (_, begins) = reason.split_once("its drain is scheduled for ").expect("it says when");
    let begins: Timestamp = begins.parse().expect("a time");
    let planned = format!("its drain begins at {begins:.0}");
    assert_eq!(said(&conditions(&stage).await, "MaintenancePlanned"), Some(("True", planned.as_str())));

    stage.notify(&maintenance.closed("called-off")).await;

    assert_eq!(said(&conditions(&stage).await, "MaintenancePlanned"), None);
}

#[tokio::test]
async fn of_a_nodes_status_the_group_can_set_these_conditions_and_nothing_else() {
    let stage = stage("conditions-admission").await;
    let patch = async |status: Value| {
        let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
        let change = Patch::Strategic(json!({"status": status}));
        let nodes = Request::new("/api/v1/nodes");
        let mut request = nodes.patch_subresource("status", &stage.node.name, &parameters, &change).expect("a request");
        for (header, value) in [("impersonate-user", "thief"), ("impersonate-group", "spillway")] {
            request.headers_mut().insert(header, value.parse().expect("a value"));
        }
        stage.world.admin().request_text(request).await
    };
    let condition =
        |of_type: &str, reason: &str| json!({"conditions": [{"type": of_type, "status": "True", "reason": reason}]});
    for forbidden in [
        condition("Ready", "DrainedBySpillway"),
        condition("MemoryPressure", "DrainedBySpillway"),
        condition("Drained", "SomebodyElse"),
        json!({"conditions": [{"type": "Ready", "$patch": "delete"}]}),
        json!({"capacity": {"cpu": "1000"}}),
        json!({"addresses": [{"type": "ExternalIP", "address": "10.0.0.1"}]}),
    ] {
        let refused = patch(forbidden.clone()).await.expect_err("it is refused").to_string();
        assert!(refused.contains("'spillway-node-conditions'"), "{forbidden}: {refused}");
    }
    patch(condition("Drained", "DrainedBySpillway")).await.expect("it is ours");
}
