//! The doctor finds and names each fault of a cluster, and changes nothing.
//!
//! Each stage examines its own node only: the nodes of other stages are in the same cluster.
//!
//! Reason: whole way, connection, admission.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::gateway::{Fault, Rule, Which};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, answer, owned};

async fn set(name: &str) -> Stage {
    let (env, timeout) = (owned(&[("SPILLWAY_NODE_SELECTOR", &format!("stage={name}"))]), Duration::from_mins(1));
    Stage::set(name).await.with_function(LambdaOptions { env, timeout, ..LambdaOptions::default() }).await
}

/// Runs the doctor on the world's cluster; returns the cluster's checks.
async fn examine(stage: &Stage) -> Vec<Value> {
    let cluster = &stage.world.cluster;
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": cluster}});
    let outcome = stage.lambda.invoke(&order).await;
    let lines = outcome.logs.iter().filter(|line| line.contains("\"self_test\":"));
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let logged: Vec<Value> = lines.flat_map(|line| line["checks"].as_array().expect("checks").clone()).collect();
    let checks = answer(&outcome)["checks"].as_array().expect("checks");
    assert_eq!(&logged, checks, "log and report have the same checks");
    checks.iter().filter(|check| check["cluster"] == *cluster).cloned().collect()
}

/// Findings above `info`, as `severity id object`.
fn findings(checks: &[Value]) -> Vec<String> {
    let findings = checks.iter().flat_map(|check| check["findings"].as_array().into_iter().flatten());
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let findings = findings.filter(|finding| finding["severity"] != "info").map(|finding| {
        assert!(!text(finding, "to_do").is_empty(), "a finding has a remedy: {finding:#}");
        format!("{} {} {}", text(finding, "severity"), text(finding, "id"), text(finding, "object"))
    });
    findings.collect()
}

fn check<'a>(checks: &'a [Value], id: &str) -> &'a Value {
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no check {id} in {checks:#?}"))
}

/// Returns `true` if the request can change anything.
fn is_change(request: &Request) -> bool {
    let dry = request.uri.contains("?&dryRun=All");
    let is_review = matches!(request.resource.as_str(), "selfsubjectreviews" | "selfsubjectaccessreviews");
    !dry && !is_review && !matches!(request.verb.as_str(), "get" | "list" | "watch")
}

#[tokio::test]
async fn healthy_cluster_has_no_finding_and_is_not_changed() {
    let mut stage = set("doctor-healthy").await;
    stage.deploy("web", 3, PodShape::default()).await;
    stage.budget("web", 1, 3).await;

    let checks = examine(&stage).await;

    assert_eq!(findings(&checks), Vec::<String>::new(), "{checks:#?}");
    assert!(checks.iter().all(|check| check["status"] == "ok"), "{checks:#?}");
    let nodes = check(&checks, "nodes")["what"].as_str().expect("a sentence");
    assert!(nodes.starts_with("1 of "), "{nodes}");
    assert!(nodes.ends_with("; each of them could be drained in two minutes right now"), "{nodes}");
    let requests = stage.requests();
    assert!(requests.iter().any(Request::is_eviction), "an eviction of a budgeted pod is tried");
    let changed: Vec<_> = requests.iter().filter(|request| is_change(request)).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn unreachable_webhook_on_nodes_is_named() {
    let stage = set("doctor-webhook").await;
    stage.add_unreachable_webhook().await;

    let checks = examine(&stage).await;

    assert_eq!(findings(&checks), [format!("fail cordon-refused Node {}", stage.node.name)]);
    let what = check(&checks, "cordon")["findings"][0]["what"].as_str().expect("a text");
    assert!(what.contains(r#"failed calling webhook "nodes.example.com""#), "{what}");
}

#[tokio::test]
async fn certificate_of_another_authority_is_found() {
    let stage = set("doctor-authority").await;
    let gateway = stage.through_gateway().await;
    gateway.rotate_authority().expect("a new authority");

    let cluster = &stage.world.cluster;
    assert_eq!(findings(&examine(&stage).await), [format!("fail wrong-certificate-authority cluster {cluster}")]);
}

#[tokio::test]
async fn doctor_ends_within_its_invocation_and_names_the_open_check() {
    let stage = set("doctor-silence").await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("list pods", Which::All, Fault::Silence));

    let checks = examine(&stage).await;

    let nodes = check(&checks, "nodes");
    assert_eq!(nodes["status"], "unknown", "{checks:#?}");
    assert_eq!(nodes["findings"][0]["id"], "not-all-pods-listed", "{checks:#?}");
    assert_eq!(check(&checks, "kubernetes-rights")["status"], "ok", "{checks:#?}");
}
