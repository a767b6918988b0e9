//! The doctor: what is broken in a cluster is found and named, one thing at a time, and nothing is touched.
//!
//! Each stage looks at its own node only: the others' are in the same cluster.
//!
//! Reason: whole way, connection, admission, API semantics.

use std::time::Duration;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use kube::api::WatchParams;
use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Mode;
use spillway_bed::watch::{Objects, until};
use spillway_e2e::Stage;

/// A stage whose function looks at the stage's own node.
async fn set(name: &str) -> Stage {
    set_with(name, LambdaOptions::default()).await
}

async fn set_with(name: &str, options: LambdaOptions) -> Stage {
    let env = [("SPILLWAY_NODE_SELECTOR".to_owned(), format!("stage={name}"))].into();
    Stage::set(name).await.with_function(LambdaOptions { env, ..options }).await
}

/// Asks the doctor about the stage's cluster; answers the checks of the cluster.
async fn examined(stage: &Stage) -> Vec<Value> {
    examined_by_name(stage, &stage.world.cluster).await
}

async fn examined_by_name(stage: &Stage, cluster: &str) -> Vec<Value> {
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": cluster}});
    let outcome = stage.lambda.invoke(&order).await;
    let report = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error} {outcome:#?}"));
    let lines = outcome.logs.iter().filter(|line| line.contains("\"self_test\":"));
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let told: Vec<&Value> = lines.iter().flat_map(|line| line["checks"].as_array().expect("checks")).collect();
    assert_eq!(told, report["checks"].as_array().expect("checks").iter().collect::<Vec<_>>(), "the log says the same");
    let checks = report["checks"].as_array().expect("checks");
    checks.iter().filter(|check| check["cluster"] == cluster).cloned().collect()
}

/// Every finding that is worse than worth knowing, as `severity id object`.
fn findings(checks: &[Value]) -> Vec<String> {
    let findings = checks.iter().flat_map(|check| check["findings"].as_array().into_iter().flatten());
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let told = findings.filter(|finding| finding["severity"] != "info").map(|finding| {
        assert!(!text(finding, "to_do").is_empty(), "it says what to do: {finding:#}");
        format!("{} {} {}", text(finding, "severity"), text(finding, "id"), text(finding, "object"))
    });
    told.collect()
}

fn check<'a>(checks: &'a [Value], id: &str) -> &'a Value {
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no check {id} in {checks:#?}"))
}

/// Whether a request can have changed anything.
fn changes(request: &Request) -> bool {
    let dry = request.uri.contains("?&dryRun=All");
    let asks = matches!(request.resource.as_str(), "selfsubjectreviews" | "selfsubjectaccessreviews");
    !dry && !asks && !matches!(request.verb.as_str(), "get" | "list" | "watch")
}

#[tokio::test]
async fn a_healthy_cluster_has_no_finding_and_nothing_is_touched() {
    let mut stage = set("doctor-healthy").await;
    let client = stage.world.admin();
    stage.deploy("web", 3, PodShape::default()).await;
    pods::create(&client, &pods::budget_of_one_away(&stage.name, "web")).await.expect("the budget is new");
    pods::until_budget_sees(&client, &stage.name, "web", 3).await.expect("it counts");

    let checks = examined(&stage).await;

    assert_eq!(findings(&checks), Vec::<String>::new(), "{checks:#?}");
    assert!(checks.iter().all(|check| check["status"] == "ok"), "{checks:#?}");
    let nodes = check(&checks, "nodes")["what"].as_str().expect("a sentence");
    assert!(nodes.starts_with("1 of "), "{nodes}");
    assert!(nodes.ends_with("; each of them could be drained in two minutes right now"), "{nodes}");
    let requests = stage.audit.requests().expect("the audit log");
    assert!(requests.iter().any(|request| request.subresource == "eviction"), "a pod of the budget is asked for");
    let changed: Vec<_> = requests.iter().filter(|request| changes(request)).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn a_policy_that_refuses_the_cordon_is_found() {
    let stage = set("doctor-cordon").await;
    stage.refuse_changes_of_node(Some("Forbidden")).await;

    let checks = examined(&stage).await;

    assert_eq!(findings(&checks), [format!("fail cordon-refused Node {}", stage.node.name)]);
    let what = check(&checks, "cordon")["findings"][0]["what"].as_str().expect("a sentence");
    assert!(what.contains("nobody cordons here"), "{what}");
}

#[tokio::test]
async fn a_webhook_that_is_down_and_is_asked_about_nodes_is_named() {
    let stage = set("doctor-webhook").await;
    stage.ask_webhook_that_is_down().await;

    let checks = examined(&stage).await;

    assert_eq!(findings(&checks), [format!("fail cordon-refused Node {}", stage.node.name)]);
    let what = check(&checks, "cordon")["findings"][0]["what"].as_str().expect("a sentence");
    assert!(what.contains(r#"failed calling webhook "nodes.example.com""#), "{what}");
}

#[tokio::test]
async fn who_has_no_access_entry_is_told_how_to_get_one() {
    let stage = set("doctor-no-entry").await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("create selfsubjectreviews", Which::All, Fault::Answer(Answer::kubernetes(401))));

    let checks = examined(&stage).await;

    assert_eq!(findings(&checks), [format!("fail no-access-entry cluster {}", stage.world.cluster)]);
    assert_eq!(check(&checks, "in-cluster")["status"], "skipped");
    let command = check(&checks, "sign-in")["findings"][0]["command"].as_str().expect("a command");
    assert!(command.starts_with("tools/spillway enroll "), "{command}");
    assert!(command.ends_with(&format!(" --cluster {}", stage.world.cluster)), "{command}");
}

#[tokio::test]
async fn an_endpoint_with_a_certificate_of_another_authority_is_found() {
    let stage = set("doctor-authority").await;
    let gateway = stage.through_gateway().await;
    gateway.rotate_authority().expect("a new authority");

    let checks = examined(&stage).await;

    let cluster = &stage.world.cluster;
    assert_eq!(findings(&checks), [format!("fail wrong-certificate-authority cluster {cluster}")]);
}

#[tokio::test]
async fn an_endpoint_that_nobody_answers_is_found() {
    let stage = set("doctor-network").await;
    let proxy = stage.through_proxy().await;
    proxy.set_mode(Mode::Refuse).await.expect("it listens no more");

    let checks = examined(&stage).await;

    assert_eq!(findings(&checks), [format!("fail no-network cluster {}", stage.world.cluster)]);
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_found() {
    let stage = set("doctor-no-cluster").await;

    let checks = examined_by_name(&stage, "no-such-cluster").await;

    assert_eq!(findings(&checks), ["fail unknown-cluster cluster no-such-cluster"]);
}

#[tokio::test]
async fn budgets_whose_controller_cannot_calculate_are_named_with_why() {
    let stage = set("doctor-not-calculated").await;
    let client = stage.world.admin();
    let here = PodShape::default().on_node(&stage.node.name);
    // A Job says nobody how many pods it is to have; of a bare pod there is nobody to ask.
    pods::create(&client, &pods::job(&stage.name, "job", &here)).await.expect("it is created");
    pods::create(&client, &pods::bare_pod(&stage.name, "bare", &here)).await.expect("it is created");
    for name in ["bare", "job"] {
        pods::until_running_of(&client, &stage.name, name, 1).await.expect("it runs");
        pods::create(&client, &pods::budget_of_one_away(&stage.name, name)).await.expect("the budget is new");
    }
    pods::until_budget_sees(&client, &stage.name, "bare", 1).await.expect("it counts");
    until_not_calculated(&stage, "job").await;

    let checks = examined(&stage).await;

    let budget = |name| format!("fail budget-allows-no-disruptions PodDisruptionBudget doctor-not-calculated/{name}");
    let expected = [budget("bare"), budget("job")];
    assert_eq!(findings(&checks), expected);
    let what = |at: usize| check(&checks, "nodes")["findings"][at]["what"].as_str().expect("a sentence");
    assert!(
        what(0).contains("cannot calculate how many pods may be disrupted: no controller makes its pods."),
        "{}",
        what(0)
    );
    assert!(what(1).contains("does not implement the scale subresource"), "{}", what(1));
}

/// Waits until the budget's controller has said that it cannot calculate.
async fn until_not_calculated(stage: &Stage, name: &str) {
    let budgets = Api::<PodDisruptionBudget>::namespaced(stage.world.admin(), &stage.name);
    let own = WatchParams::default().fields(&format!("metadata.name={name}"));
    let failed = |budgets: &Objects<PodDisruptionBudget>| {
        let status = budgets.values().next().and_then(|budget| budget.status.as_ref()).ok_or("it has no status")?;
        let failed = |condition: &Condition| condition.reason == "SyncFailed";
        if status.conditions.iter().flatten().any(failed) { Ok(()) } else { Err(format!("{status:?}")) }
    };
    until(&budgets, &own, "a budget that cannot be calculated", Duration::from_mins(1), failed)
        .await
        .expect("it fails");
}

#[tokio::test]
async fn the_doctor_ends_before_the_invocation_does_and_says_what_it_could_not_look_at() {
    let timeout = Duration::from_mins(1);
    let stage = set_with("doctor-silence", LambdaOptions { timeout, ..LambdaOptions::default() }).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("list pods", Which::All, Fault::Silence));

    let checks = examined(&stage).await;

    let nodes = check(&checks, "nodes");
    assert_eq!(nodes["status"], "unknown", "{checks:#?}");
    assert_eq!(nodes["findings"][0]["id"], "not-all-pods-listed", "{checks:#?}");
    assert_eq!(check(&checks, "kubernetes-rights")["status"], "ok", "{checks:#?}");
}
