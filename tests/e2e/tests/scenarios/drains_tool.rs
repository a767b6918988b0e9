//! `tools/spillway drains`: what it shows of a drain that goes on, as a real API server tells it.
//!
//! Reason: whole way.

use std::time::Duration;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::setup::{Setup, project_file};
use spillway_e2e::{Stage, fates};
use tokio::process::Command;
use tokio::time::timeout;

const SPOT: Duration = Duration::from_secs(120);
const WAIT: Duration = Duration::from_mins(1);

/// What the tool shows of the stage's node.
async fn shown(stage: &Stage) -> Value {
    let tool = project_file("tools/spillway").expect("it is there");
    let path = stage.world.kubectl.parent().expect("a folder");
    let output = Command::new(Setup::find().expect("the set-up").python)
        .arg(tool)
        .args(["drains", "-o", "json", "--context", "bed"])
        .env("KUBECONFIG", &stage.world.kubeconfig)
        .env("PATH", path)
        .output()
        .await
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(output.status.success(), "{shown:#} {said}");
    let mut drains = shown["drains"].as_array().expect("a list").iter();
    drains.find(|drain| drain["node"] == *stage.node.name).cloned().unwrap_or_default()
}

/// Looks until that many pods have gone, and the drain is in that state.
async fn shown_when(stage: &Stage, gone: u64, how_it_stands: &str) -> Value {
    let looking = async {
        loop {
            let shown = shown(stage).await;
            if shown["pods"]["gone"] == gone && shown["state"] == how_it_stands {
                return shown;
            }
        }
    };
    timeout(WAIT, looking)
        .await
        .unwrap_or_else(|_| panic!("{gone} pods are not shown as gone, nor the drain as {how_it_stands}"))
}

#[tokio::test]
async fn a_blocked_drain_is_shown_with_its_time_its_pods_and_its_budget() {
    let stage = Stage::set("shown-live").await.with_settings(&[("SPILLWAY_NODE_EVENTS", "true")]).await;
    stage.deploy("web", 2, PodShape::default()).await;
    stage.deploy("db", 1, PodShape::default()).await;
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": {"namespace": stage.name, "name": "db"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}},
    }))
    .expect("it is a budget");
    let client = stage.world.admin();
    pods::create(&client, &budget).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, "db", 1).await.expect("it counts");
    assert_eq!(shown(&stage).await, Value::Null, "nobody has claimed the node");

    let notice = stage.interrupt(SPOT).await;
    let meanwhile = async {
        let blocked = shown_when(&stage, 2, "draining").await;
        Api::<PodDisruptionBudget>::namespaced(client.clone(), &stage.name)
            .delete("db", &DeleteParams::default())
            .await
            .expect("it is deleted");
        blocked
    };
    let (outcome, blocked) = tokio::join!(stage.lambda.invoke(notice.clone()), meanwhile);

    assert_eq!(blocked["cluster"], "bed");
    assert_eq!(blocked["notice"], "spot interruption");
    assert_eq!(blocked["event_id"], notice["id"]);
    assert_eq!(blocked["zone"].as_str().map(str::is_empty), Some(false), "{blocked:#}");
    assert!(blocked["seconds_left"].as_i64().is_some_and(|left| left <= 120), "{blocked:#}");
    assert_eq!(blocked["pods"], json!({"gone": 2, "left": 1, "leaving": 0, "blocked": 1}));
    assert_eq!(blocked["blocked"][0]["by"], format!("budget {}/db", stage.name));
    assert!(blocked["blocked"][0]["pod"].as_str().is_some_and(|pod| pod.starts_with(&format!("{}/db-", stage.name))));
    assert_eq!(fates(outcome.result.as_ref().expect("it drains"))["clean"], 3);
    let over = shown_when(&stage, 3, "drained").await;
    assert_eq!(over["pods"], json!({"gone": 3, "left": 0, "leaving": 0, "blocked": 0}));
}
