//! What is told on the event bus: that a drain has begun, once its first evictions are answered, and its receipt, last of
//! all. None of it is worth anything to the drain.
//!
//! Reason: whole way, connection.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::aws::Hook;
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, receipt};

const SPOT: Duration = Duration::from_secs(120);
const BEGUN: &str = "Spillway Drain Begun";
const RECEIPT: &str = "Spillway Receipt";

async fn drained(stage: &Stage) -> Outcome {
    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;
    assert_eq!(receipt(&outcome)["ending"], "drained", "{outcome:#?}");
    outcome
}

/// What has been told so far: how many drains have begun, and how each ended.
async fn told(stage: &Stage) -> (usize, Vec<Value>) {
    let endings = stage.told(RECEIPT).await.into_iter().map(|mut receipt| receipt["ending"].take());
    (stage.told(BEGUN).await.len(), endings.collect())
}

fn is_eviction(request: &Request) -> bool {
    request.subresource == "eviction"
}

#[tokio::test]
async fn the_receipt_is_told_last_of_all_and_is_the_one_in_the_log_with_the_nodes_labels() {
    let stage = Stage::set_in_group("told-receipt", Hook::terminate("spillway")).await;
    stage.deploy("web", 2, PodShape::default()).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let [mut told]: [Value; 1] = stage.told(RECEIPT).await.try_into().expect("it is told once");
    let labels = told.as_object_mut().and_then(|told| told.remove("node_labels")).expect("it has the labels");
    assert_eq!(labels["stage"], stage.name);
    assert_eq!(told, receipt(&outcome));
    let whose = [&told["account"], &told["region"], &told["zone"], &told["auto_scaling_group"]];
    let world = stage.world;
    assert_eq!(whose, [&json!(world.account), &json!(world.region), &json!(stage.node.zone), &json!(stage.name)]);
    assert!(told["instance_type"].is_string(), "{told:#}");
    let calls = stage.aws_calls().await;
    let completed = calls.iter().position(|call| call == "autoscaling:CompleteLifecycleAction");
    let last = calls.iter().rposition(|call| call == "events:PutEvents");
    assert!(completed.is_some() && completed < last && last == Some(calls.len() - 1), "{calls:?}");
}

/// The requests of a drain to the API server up to the last eviction, by their names, without the events that it posts: those go
/// after the evictions that they are about.
async fn asked_up_to_the_last_eviction(name: &str, settings: &[(&str, &str)]) -> (Stage, Vec<String>) {
    let mut stage = Stage::set(name).await.with_settings(settings).await;
    stage.deploy("web", 12, PodShape::default().exits_after(Duration::from_secs(1))).await;
    // It is evicted when the others have gone. Critical pods may only live in kube-system.
    let dns = PodShape::default().exits_after(Duration::from_secs(1)).on_node(&stage.node.name);
    let dns = dns.priority_class("system-cluster-critical");
    let (client, app) = (stage.world.admin(), format!("{name}-dns"));
    pods::run_deployment(&client, "kube-system", &app, 1, &dns).await.expect("it runs");

    drained(&stage).await;

    let requests = stage.audit.requests().expect("the audit log");
    let last = requests.iter().rposition(is_eviction).expect("evictions");
    let asked = requests[..=last].iter().filter(|request| request.resource != "events");
    let asked = asked.map(|request| format!("{} {} {}", request.verb, request.resource, request.subresource));
    let mut asked: Vec<String> = asked.collect();
    // With which of several that are sent side by side the API server begins is chance.
    asked.sort();
    // A watch may end and be made again: the API server ends one whose reader does not keep up with a burst of changes.
    asked.dedup_by(|one, other| one == other && one.starts_with("watch"));
    (stage, asked)
}

#[tokio::test]
async fn with_node_events_no_more_and_nothing_else_is_asked_up_to_the_last_eviction_than_without() {
    let told_to_nodes = [("SPILLWAY_NODE_EVENTS", "true")];
    let nothing = [("SPILLWAY_NODE_EVENTS", "false")];

    let ((mut loud, with_everything), (mut quiet, with_nothing)) = tokio::join!(
        asked_up_to_the_last_eviction("speed-loud", &told_to_nodes),
        asked_up_to_the_last_eviction("speed-quiet", &nothing)
    );

    assert_eq!(with_everything, with_nothing);
    let evictions = with_nothing.iter().filter(|asked| *asked == "create pods eviction").count();
    assert_eq!((evictions, with_nothing.len()), (13, 13 + 3), "a claim, a list and a watch beside: {with_nothing:#?}");
    let posted = |stage: &mut Stage| stage.requests().iter().filter(|asked| asked.starts_with("create events")).count();
    assert!(posted(&mut loud) > 0 && posted(&mut quiet) == 0, "{:#?}", loud.requests());
    assert_eq!((told(&loud).await, told(&quiet).await), ((1, vec![json!("drained")]), (1, vec![json!("drained")])));
}
