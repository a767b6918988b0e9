//! Giving a node back among people: what is ours goes, and what somebody did to the node meanwhile stays.
//!
//! Reason: API semantics.

use std::process::Command;

use jiff::{Timestamp, Unit};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_e2e::{Stage, receipt, sample};

const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
const TRACES: [(&str, &str); 2] = [("SPILLWAY_TAINTS", "spillway"), ("SPILLWAY_LOAD_BALANCERS", "exclude")];

/// A node whose function has these settings and leaves all its marks.
async fn stage(name: &str) -> Stage {
    Stage::set(name).await.with_settings(&TRACES).await
}

/// EC2 says that the instance does something; answers the receipt's ending and reason.
async fn says(stage: &Stage, what: &str) -> (String, String) {
    let receipt = receipt(&stage.lambda.invoke(event(stage, what).await).await);
    let text = |field: &str| receipt[field].as_str().unwrap_or_default().to_owned();
    (text("ending"), text("reason"))
}

async fn event(stage: &Stage, what: &str) -> Value {
    let mut notice = sample(&format!("state-change-{what}"));
    notice["id"] = json!(format!("{what}-{}", stage.node.instance_id));
    notice["time"] = json!(Timestamp::now().round(Unit::Second).expect("a time of these days").to_string());
    notice["detail"]["instance-id"] = json!(stage.node.instance_id);
    stage.delivered(&notice).await
}

/// What a person types, on the stage's node.
fn kubectl(stage: &Stage, command: &str) {
    let world = stage.world;
    let mut kubectl = Command::new(&world.kubectl);
    let run = kubectl.arg("--kubeconfig").arg(&world.kubeconfig).args([command, &stage.node.name]).output();
    let output = run.expect("kubectl runs");
    assert!(output.status.success(), "{output:?}");
}

/// Whether it is cordoned, and that nothing of ours is left on it.
async fn is_cordoned_without_marks(stage: &Stage) -> bool {
    let node = stage.node_now().await;
    assert!(!node.annotations().contains_key("spillway/claim"), "{:?}", node.annotations());
    assert!(!node.labels().contains_key(EXCLUDED), "{:?}", node.labels());
    let spec = node.spec.unwrap_or_default();
    let taints = spec.taints.unwrap_or_default();
    assert!(!taints.iter().any(|taint| taint.key.starts_with("spillway/")), "{taints:?}");
    spec.unschedulable.unwrap_or(false)
}

fn nothing_of_ours(stage: &Stage, why: &str) -> (String, String) {
    let node = &stage.node.name;
    ("done".to_owned(), format!("node {node} has no marks of ours left: its instance runs again; {why}"))
}

#[tokio::test]
async fn all_our_marks_go_and_those_of_others_stay() {
    let stage = stage("all-marks").await;
    let theirs = json!([{"key": "team", "value": "shop", "effect": "NoSchedule"}]);
    stage.change_node(&json!({"metadata": {"labels": {"team": "shop"}}, "spec": {"taints": theirs}})).await;
    assert_eq!(says(&stage, "stopping").await.0, "drained");
    let claimed = stage.node_now().await;
    assert_eq!(claimed.labels()[EXCLUDED], "spillway");
    assert!(
        claimed.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).any(|taint| taint.key.contains("stopping"))
    );

    let (ending, reason) = says(&stage, "running").await;

    assert_eq!((ending.as_str(), reason.contains("is given back")), ("done", true), "{reason}");
    assert!(!is_cordoned_without_marks(&stage).await);
    let node = stage.node_now().await;
    assert_eq!(node.labels()["team"], "shop");
    assert!(node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).any(|taint| taint.key == "team"));
}

#[tokio::test]
async fn a_node_that_a_person_has_uncordoned_and_cordoned_again_stays_cordoned() {
    let stage = stage("person-cordons-again").await;
    assert_eq!(says(&stage, "stopping").await.0, "drained");
    kubectl(&stage, "uncordon");
    kubectl(&stage, "cordon");

    let ended = says(&stage, "running").await;

    let why = "it was cordoned again since our claim; the cordon stays";
    assert_eq!(ended, nothing_of_ours(&stage, why));
    assert!(is_cordoned_without_marks(&stage).await);
}

#[tokio::test]
async fn what_a_person_does_between_the_look_and_the_patch_counts() {
    let mut stage = stage("in-between").await;
    let gateway = stage.through_gateway().await;
    assert_eq!(says(&stage, "stopping").await.0, "drained");
    let held = Held::default();
    gateway.rules().add(Rule::new("patch nodes", Which::Nth(1), Fault::Hold(Side::Before, held.clone())));

    let event = event(&stage, "running").await;
    let (undo, ()) = tokio::join!(stage.lambda.invoke(event), async {
        held.reached().await;
        kubectl(&stage, "uncordon");
        kubectl(&stage, "cordon");
        held.release();
    });
    let ended = receipt(&undo);

    assert!(ended["reason"].as_str().is_some_and(|reason| reason.contains("was cordoned again since")), "{ended:#}");
    assert!(is_cordoned_without_marks(&stage).await);
    assert!(stage.node_requests().contains(&"patch 422".to_owned()));
}
