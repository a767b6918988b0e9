//! Kubernetes events: what people see of a drain by `kubectl describe`, and what it may cost.
//!
//! Reason: API semantics.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, receipt};

const SPOT: Duration = Duration::from_secs(120);
/// How long pods take to exit: an eviction has been answered by then. Of one that has not, no event tells.
const SLOWLY: Duration = Duration::from_secs(3);

/// The node's events as `kubectl describe node` selects them, by reason.
async fn of_node(stage: &Stage) -> BTreeMap<String, Event> {
    let node = &stage.node.name;
    let fields = format!("involvedObject.kind=Node,involvedObject.name={node},involvedObject.uid={node}");
    let listed = Api::<Event>::all(stage.world.admin()).list(&ListParams::default().fields(&fields)).await;
    // The kubelet's and the node controller's are there too.
    let ours = listed.expect("a list").items.into_iter().filter(|event| event.action.as_deref() == Some("Drain"));
    ours.map(|event| (event.reason.clone().expect("it has one"), event)).collect()
}

/// The events of the stage's pods, each with its type and reason.
async fn of_pods(stage: &Stage) -> Vec<(String, Event)> {
    let events = Api::<Event>::namespaced(stage.world.admin(), &stage.name);
    let listed = events.list(&ListParams::default().fields("involvedObject.kind=Pod")).await.expect("a list").items;
    let ours = listed.into_iter().filter(|event| event.action.as_deref() == Some("Drain"));
    let line = |event: &Event| format!("{} {}", text(event.type_.as_ref()), text(event.reason.as_ref()));
    ours.map(|event| (line(&event), event)).collect()
}

fn text(field: Option<&String>) -> &str {
    field.map(String::as_str).unwrap_or_default()
}

fn said_of_events(outcome: &Outcome) -> Vec<&String> {
    outcome.logs.iter().filter(|line| line.contains("Kubernetes events were not written")).collect()
}

#[tokio::test]
async fn kubectl_describe_tells_of_a_drain_on_the_node_and_on_each_pod() {
    let stage = Stage::set("told").await.with_settings(&[("SPILLWAY_NODE_EVENTS", "true")]).await;
    stage.deploy("web", 2, PodShape::default().exits_after(SLOWLY)).await;
    stage.deploy("stubborn", 1, PodShape::default().grace(600).exits_after(SLOWLY)).await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    assert_eq!(outcome.result.as_ref().expect("it drains")["ending"], "drained", "{outcome:#?}");
    let of_node = of_node(&stage).await;
    assert_eq!(of_node.keys().collect::<Vec<_>>(), ["Drained", "Draining"]);
    let drained = &of_node["Drained"];
    assert_eq!(text(drained.type_.as_ref()), "Normal");
    let note = format!("spot interruption: all 3 pods that had to leave node {} have gone; 1 clamped", stage.node.name);
    assert_eq!(text(drained.message.as_ref()), note);
    assert_eq!(text(drained.reporting_component.as_ref()), "spillway");
    assert_eq!(text(drained.reporting_instance.as_ref()), receipt(&outcome)["request_id"]);
    let begins = format!("spot interruption: instance {} goes at 2", stage.node.instance_id);
    assert!(text(of_node["Draining"].message.as_ref()).starts_with(&begins), "{of_node:#?}");

    let mut of_pods = of_pods(&stage).await;
    of_pods.sort_by(|(one, _), (other, _)| one.cmp(other));
    let lines: Vec<_> = of_pods.iter().map(|(line, _)| line.as_str()).collect();
    assert_eq!(lines, ["Normal Evicted", "Normal Evicted", "Warning EvictedWithLessGrace"]);
    let (_, clamped) = &of_pods[2];
    let note = text(clamped.message.as_ref());
    assert!(
        note.starts_with(&format!("drain of node {} (spot interruption): evicted, with 1", stage.node.name)),
        "{note}"
    );
    assert!(note.contains(" s of its grace period of 600 s; gone after "), "{note}");
    let record = receipt(&outcome)["pods"].as_array().expect("pods").clone();
    let record = record.iter().find(|pod| pod["fate"] == "clamped").expect("one was clamped");
    assert_eq!(text(clamped.involved_object.uid.as_ref()), record["uid"], "by which kubectl describe finds it");
    assert!(said_of_events(&outcome).is_empty());
}
