//! Events of a drain: on the bus, and in Kubernetes as `kubectl describe` shows them.
//!
//! Reason: whole way, API semantics.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use spillway_bed::aws::Hook;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, answer, receipt};

#[tokio::test]
async fn receipt_is_published_last_with_the_nodes_labels() {
    let stage = Stage::set_in_group("published-receipt", Hook::terminate("spillway")).await;
    stage.deploy("web", 2, PodShape::default()).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let [mut published]: [Value; 1] = stage.published("Spillway Receipt").await.try_into().expect("one receipt");
    let labels = published.as_object_mut().and_then(|receipt| receipt.remove("node_labels")).expect("labels");
    assert_eq!(labels["stage"], stage.name);
    assert_eq!(published, receipt(&outcome));
    let place = ["account", "region", "zone", "auto_scaling_group"].map(|field| published[field].clone());
    let world = stage.world;
    assert_eq!(json!(place), json!([world.account, world.region, stage.node.zone, stage.name]));
    assert!(published["instance_type"].is_string(), "{published:#}");
    let calls = stage.aws_calls().await;
    let completed = calls.iter().position(|call| call == "autoscaling:CompleteLifecycleAction");
    let last = calls.iter().rposition(|call| call == "events:PutEvents");
    assert!(completed.is_some() && completed < last && last == Some(calls.len() - 1), "{calls:?}");
}

/// Longer than the answer to an eviction: an unanswered eviction has no event.
const SLOW: Duration = Duration::from_secs(3);

/// Spillway's events by `type reason`. The kubelet and the node controller write others.
async fn events(api: Api<Event>, selector: &str) -> Vec<(String, Event)> {
    let listed = api.list(&ListParams::default().fields(selector)).await.expect("a list").items;
    let ours = listed.into_iter().filter(|event| event.action.as_deref() == Some("Drain"));
    let name = |event: &Event| format!("{} {}", text(event.type_.as_ref()), text(event.reason.as_ref()));
    let mut events: Vec<_> = ours.map(|event| (name(&event), event)).collect();
    events.sort_by(|(one, _), (other, _)| one.cmp(other));
    events
}

fn text(field: Option<&String>) -> &str {
    field.map(String::as_str).unwrap_or_default()
}

#[tokio::test]
async fn kubectl_describe_shows_a_drain_on_the_node_and_on_each_pod() {
    let stage = Stage::set("described").await.with_settings(&[("SPILLWAY_NODE_EVENTS", "true")]).await;
    stage.deploy("web", 2, PodShape::default().exits_after(SLOW)).await;
    stage.deploy("stubborn", 1, PodShape::default().grace(600).exits_after(SLOW)).await;

    let outcome = stage.drain().await;

    assert_eq!(answer(&outcome)["ending"], "drained", "{outcome:#?}");
    let node = &stage.node.name;
    // The selector of `kubectl describe node`.
    let selector = format!("involvedObject.kind=Node,involvedObject.name={node},involvedObject.uid={node}");
    let of_node: BTreeMap<_, _> = events(Api::all(stage.client()), &selector).await.into_iter().collect();
    assert_eq!(of_node.keys().collect::<Vec<_>>(), ["Normal Drained", "Normal Draining"]);
    let drained = &of_node["Normal Drained"];
    let note = format!("spot interruption: all 3 pods that had to leave node {node} have gone; 1 clamped");
    assert_eq!(text(drained.message.as_ref()), note);
    assert_eq!(text(drained.reporting_component.as_ref()), "spillway");
    assert_eq!(text(drained.reporting_instance.as_ref()), receipt(&outcome)["request_id"]);
    let begins = format!("spot interruption: instance {} goes at 2", stage.node.instance_id);
    assert!(text(of_node["Normal Draining"].message.as_ref()).starts_with(&begins), "{of_node:#?}");

    let of_pods = events(Api::namespaced(stage.client(), &stage.name), "involvedObject.kind=Pod").await;
    let names: Vec<_> = of_pods.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Normal Evicted", "Normal Evicted", "Warning EvictedWithLessGrace"]);
    let clamped = &of_pods[2].1;
    let note = text(clamped.message.as_ref());
    assert!(note.starts_with(&format!("drain of node {node} (spot interruption): evicted, with 1")), "{note}");
    assert!(note.contains(" s of its grace period of 600 s; gone after "), "{note}");
    let receipt = receipt(&outcome);
    let mut pods = receipt["pods"].as_array().expect("pods").iter();
    let record = pods.find(|pod| pod["fate"] == "clamped").expect("a clamped pod");
    assert_eq!(text(clamped.involved_object.uid.as_ref()), record["uid"], "the key of kubectl describe");
    assert!(!outcome.logs.iter().any(|line| line.contains("Kubernetes events were not written")), "{outcome:#?}");
}
