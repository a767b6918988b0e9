//! `tools/spillway drains`: its view of a running drain, from a real API server.
//!
//! Reason: whole way.

use kube::api::DeleteParams;
use serde_json::{Value, json};
use spillway_bed::pods::PodShape;
use spillway_bed::setup::{Setup, project_file};
use spillway_e2e::{Stage, WAIT, assert_drained};
use tokio::process::Command;
use tokio::time::timeout;

/// The tool's row of the stage's node.
async fn row(stage: &Stage) -> Value {
    let output = Command::new(Setup::find().expect("the set-up").python)
        .arg(project_file("tools/spillway").expect("the tool"))
        .args(["drains", "-o", "json", "--context", "bed"])
        .env("KUBECONFIG", &stage.world.kubeconfig)
        .env("PATH", stage.world.kubectl.parent().expect("a folder"))
        .output()
        .await
        .expect("a Python");
    let errors = String::from_utf8_lossy(&output.stderr);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    assert!(output.status.success(), "{shown:#} {errors}");
    let mut drains = shown["drains"].as_array().expect("a list").iter();
    drains.find(|drain| drain["node"] == *stage.node.name).cloned().unwrap_or_default()
}

/// Waits for a row with that many gone pods and that state.
async fn row_when(stage: &Stage, gone: u64, state: &str) -> Value {
    let waiting = async {
        loop {
            let row = row(stage).await;
            if row["pods"]["gone"] == gone && row["state"] == state {
                return row;
            }
        }
    };
    timeout(WAIT, waiting).await.unwrap_or_else(|_| panic!("no row has {gone} gone pods and the state {state}"))
}

#[tokio::test]
async fn blocked_drain_is_shown_with_deadline_pods_and_budget() {
    let stage = Stage::set("shown-live").await.with_settings(&[("SPILLWAY_NODE_EVENTS", "true")]).await;
    stage.deploy("web", 2, PodShape::default()).await;
    stage.deploy("db", 1, PodShape::default()).await;
    stage.budget("db", 0, 1).await;
    assert_eq!(row(&stage).await, Value::Null, "the node has no claim");

    let notice = stage.interrupt().await;
    let meanwhile = async {
        let blocked = row_when(&stage, 2, "draining").await;
        stage.budgets().delete("db", &DeleteParams::default()).await.expect("the budget existed");
        blocked
    };
    let (outcome, blocked) = tokio::join!(stage.lambda.invoke(notice.clone()), meanwhile);

    assert_eq!(blocked["cluster"], "bed");
    assert_eq!(blocked["notice"], "spot interruption");
    assert_eq!(blocked["event_id"], notice["id"]);
    assert_eq!(blocked["zone"].as_str().map(str::is_empty), Some(false), "{blocked:#}");
    assert!(blocked["seconds_left"].as_i64().is_some_and(|left| (1..=120).contains(&left)), "{blocked:#}");
    assert_eq!(blocked["pods"], json!({"gone": 2, "left": 1, "leaving": 0, "blocked": 1}));
    assert_eq!(blocked["blocked"][0]["by"], format!("budget {}/db", stage.name));
    assert!(blocked["blocked"][0]["pod"].as_str().is_some_and(|pod| pod.starts_with(&format!("{}/db-", stage.name))));
    assert_drained(&outcome, 3);
    let over = row_when(&stage, 3, "drained").await;
    assert_eq!(over["pods"], json!({"gone": 3, "left": 0, "leaving": 0, "blocked": 0}));
}
