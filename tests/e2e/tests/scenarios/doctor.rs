//! The doctor finds and names each fault of a cluster, and changes nothing.
//!
//! Each stage examines its own node only: the nodes of other stages are in the same cluster.
//!
//! Reason: whole way, connection, admission, API semantics.

use std::time::Duration;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::WatchParams;
use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Mode;
use spillway_bed::watch::{Objects, until};
use spillway_e2e::{Stage, WAIT, answer, owned};

async fn set(name: &str) -> Stage {
    set_with(name, LambdaOptions::default()).await
}

async fn set_with(name: &str, options: LambdaOptions) -> Stage {
    let env = owned(&[("SPILLWAY_NODE_SELECTOR", &format!("stage={name}"))]);
    Stage::set(name).await.with_function(LambdaOptions { env, ..options }).await
}

/// Runs the doctor on a cluster; returns the cluster's checks.
async fn examine(stage: &Stage, cluster: &str) -> Vec<Value> {
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": cluster}});
    let outcome = stage.lambda.invoke(&order).await;
    let lines = outcome.logs.iter().filter(|line| line.contains("\"self_test\":"));
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let logged: Vec<Value> = lines.flat_map(|line| line["checks"].as_array().expect("checks").clone()).collect();
    let checks = answer(&outcome)["checks"].as_array().expect("checks");
    assert_eq!(&logged, checks, "log and report have the same checks");
    checks.iter().filter(|check| check["cluster"] == cluster).cloned().collect()
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

/// A text of a check's first finding.
fn text<'a>(checks: &'a [Value], id: &str, key: &str) -> &'a str {
    check(checks, id)["findings"][0][key].as_str().expect("a text")
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

    let checks = examine(&stage, &stage.world.cluster).await;

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
async fn policy_that_refuses_the_cordon_is_found() {
    let stage = set("doctor-cordon").await;
    stage.refuse_changes_of_node(Some("Forbidden")).await;

    let checks = examine(&stage, &stage.world.cluster).await;

    assert_eq!(findings(&checks), [format!("fail cordon-refused Node {}", stage.node.name)]);
    let what = text(&checks, "cordon", "what");
    assert!(what.contains("no cordons here"), "{what}");
}

#[tokio::test]
async fn unreachable_webhook_on_nodes_is_named() {
    let stage = set("doctor-webhook").await;
    stage.add_unreachable_webhook().await;

    let checks = examine(&stage, &stage.world.cluster).await;

    assert_eq!(findings(&checks), [format!("fail cordon-refused Node {}", stage.node.name)]);
    let what = text(&checks, "cordon", "what");
    assert!(what.contains(r#"failed calling webhook "nodes.example.com""#), "{what}");
}

#[tokio::test]
async fn missing_access_entry_gets_the_command_that_enrolls() {
    let stage = set("doctor-no-entry").await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("create selfsubjectreviews", Which::All, Fault::Answer(Answer::kubernetes(401))));

    let cluster = &stage.world.cluster;
    let checks = examine(&stage, cluster).await;

    assert_eq!(findings(&checks), [format!("fail no-access-entry cluster {cluster}")]);
    assert_eq!(check(&checks, "in-cluster")["status"], "skipped");
    let command = text(&checks, "sign-in", "command");
    assert!(command.starts_with("tools/spillway enroll "), "{command}");
    assert!(command.ends_with(&format!(" --cluster {cluster}")), "{command}");
}

#[tokio::test]
async fn certificate_of_another_authority_is_found() {
    let stage = set("doctor-authority").await;
    let gateway = stage.through_gateway().await;
    gateway.rotate_authority().expect("a new authority");

    let cluster = &stage.world.cluster;
    assert_eq!(
        findings(&examine(&stage, cluster).await),
        [format!("fail wrong-certificate-authority cluster {cluster}")]
    );
}

#[tokio::test]
async fn endpoint_that_refuses_connections_is_found() {
    let stage = set("doctor-network").await;
    let proxy = stage.through_proxy().await;
    proxy.set_mode(Mode::Refuse).await.expect("the proxy refuses");

    let cluster = &stage.world.cluster;
    assert_eq!(findings(&examine(&stage, cluster).await), [format!("fail no-network cluster {cluster}")]);
}

#[tokio::test]
async fn cluster_that_eks_does_not_know_is_found() {
    let stage = set("doctor-no-cluster").await;

    let checks = examine(&stage, "no-such-cluster").await;

    assert_eq!(findings(&checks), ["fail unknown-cluster cluster no-such-cluster"]);
}

#[tokio::test]
async fn budgets_of_pods_without_a_scale_are_named_with_the_cause() {
    let stage = set("doctor-not-calculated").await;
    let client = stage.client();
    let shape = PodShape::default().on_node(&stage.node.name);
    pods::create(&client, &pods::job(&stage.name, "job", &shape)).await.expect("a job");
    pods::create(&client, &pods::bare_pod(&stage.name, "bare", &shape)).await.expect("a pod");
    for name in ["bare", "job"] {
        pods::until_running_of(&client, &stage.name, name, 1).await.expect("its pod runs");
    }
    stage.budget("bare", 1, 1).await;
    let of_job = pods::budget_of_unavailable(&stage.name, "job", 1);
    pods::create(&client, &of_job).await.expect("the budget is new");
    until_not_calculated(&stage, "job").await;

    let checks = examine(&stage, &stage.world.cluster).await;

    let budget = |name| format!("fail budget-allows-no-disruptions PodDisruptionBudget doctor-not-calculated/{name}");
    assert_eq!(findings(&checks), ["bare", "job"].map(budget));
    for (at, cause) in [
        (0, "cannot calculate how many pods may be disrupted: no controller makes its pods."),
        (1, "does not implement the scale subresource"),
    ] {
        let what = check(&checks, "nodes")["findings"][at]["what"].as_str().expect("a sentence");
        assert!(what.contains(cause), "{what}");
    }
}

/// Waits until the budget's controller has reported that it cannot calculate.
async fn until_not_calculated(stage: &Stage, name: &str) {
    let selected = WatchParams::default().fields(&format!("metadata.name={name}"));
    let failed = |budgets: &Objects<PodDisruptionBudget>| {
        let status = budgets.values().next().and_then(|budget| budget.status.as_ref()).ok_or("no status")?;
        let failed = |condition: &Condition| condition.reason == "SyncFailed";
        if status.conditions.iter().flatten().any(failed) { Ok(()) } else { Err(format!("{status:?}")) }
    };
    until(&stage.budgets(), &selected, "a failed sync", WAIT, failed).await.expect("the sync fails");
}

#[tokio::test]
async fn doctor_ends_within_its_invocation_and_names_the_open_check() {
    let timeout = Duration::from_mins(1);
    let stage = set_with("doctor-silence", LambdaOptions { timeout, ..LambdaOptions::default() }).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("list pods", Which::All, Fault::Silence));

    let checks = examine(&stage, &stage.world.cluster).await;

    let nodes = check(&checks, "nodes");
    assert_eq!(nodes["status"], "unknown", "{checks:#?}");
    assert_eq!(nodes["findings"][0]["id"], "not-all-pods-listed", "{checks:#?}");
    assert_eq!(check(&checks, "kubernetes-rights")["status"], "ok", "{checks:#?}");
}
