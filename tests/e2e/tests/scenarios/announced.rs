//! Events on the bus: the begin of a drain, after the answers to its first evictions, and its receipt, last of all. Neither
//! delays the drain.
//!
//! Reason: whole way, connection.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::aws::Hook;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, assert_drained, receipt};

const BEGUN: &str = "Spillway Drain Begun";
const RECEIPT: &str = "Spillway Receipt";

#[tokio::test]
async fn receipt_is_published_last_with_the_nodes_labels() {
    let stage = Stage::set_in_group("published-receipt", Hook::terminate("spillway")).await;
    stage.deploy("web", 2, PodShape::default()).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let [mut published]: [Value; 1] = stage.published(RECEIPT).await.try_into().expect("one receipt");
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

/// A drain's requests to the API server up to the last eviction, sorted by name, without the Kubernetes events, which follow the
/// evictions that they are about.
async fn requests_up_to_the_last_eviction(name: &str, settings: &[(&str, &str)]) -> (Stage, Vec<String>) {
    let mut stage = Stage::set(name).await.with_settings(settings).await;
    stage.deploy_quick("web", 12).await;
    // Evicted after the others. Critical pods may only live in kube-system.
    let dns = PodShape::default().exits_after(Duration::from_secs(1)).on_node(&stage.node.name);
    let (dns, app) = (dns.priority_class("system-cluster-critical"), format!("{name}-dns"));
    pods::run_deployment(&stage.client(), "kube-system", &app, 1, &dns).await.expect("its pod runs");

    assert_drained(&stage.drain().await, 13);

    let requests = stage.requests();
    let last = requests.iter().rposition(Request::is_eviction).expect("evictions");
    let made = requests[..=last].iter().filter(|request| request.resource != "events");
    let made = made.map(|request| format!("{} {} {}", request.verb, request.resource, request.subresource));
    let mut made: Vec<String> = made.collect();
    made.sort();
    // The API server ends a watch whose reader does not keep up with a burst of changes, and the watch is made again.
    made.dedup_by(|one, other| one == other && one.starts_with("watch"));
    (stage, made)
}

#[tokio::test]
async fn node_events_add_no_request_before_the_last_eviction() {
    let settings = ["true", "false"].map(|value| [("SPILLWAY_NODE_EVENTS", value)]);

    let ((mut with, made_with), (mut without, made_without)) = tokio::join!(
        requests_up_to_the_last_eviction("speed-with", &settings[0]),
        requests_up_to_the_last_eviction("speed-without", &settings[1])
    );

    assert_eq!(made_with, made_without);
    let evictions = made_without.iter().filter(|made| *made == "create pods eviction").count();
    assert_eq!((evictions, made_without.len()), (13, 13 + 3), "a claim, a list and a watch beside: {made_without:#?}");
    let posted = |stage: &mut Stage| stage.requests().iter().filter(|made| made.resource == "events").count();
    assert!(posted(&mut with) > 0 && posted(&mut without) == 0, "{:#?}", with.request_lines());
    for stage in [&with, &without] {
        assert_eq!((stage.published(BEGUN).await.len(), stage.published(RECEIPT).await.len()), (1, 1));
    }
}
