//! A drain that something blocks for long is told while it is blocked, once, and once more when that is over.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, fates, spot_notice};

/// Of the two minutes of a spot notice so much is over when it comes: half of the rest is less than a minute.
const LATE: SignedDuration = SignedDuration::from_secs(85);

/// The reasons of our events, each with what it is about.
async fn events(stage: &Stage) -> BTreeSet<String> {
    let listed = Api::<Event>::all(stage.world.admin()).list(&ListParams::default()).await.expect("a list").items;
    let ours = listed.into_iter().filter(|event| {
        let about = &event.involved_object;
        event.action.as_deref() == Some("Drain")
            && (about.namespace.as_ref() == Some(&stage.name) || about.name.as_ref() == Some(&stage.node.name))
    });
    let text = |text: Option<String>| text.unwrap_or_default();
    ours.map(|event| format!("{} {} {}", text(event.type_), text(event.reason), text(event.involved_object.kind)))
        .collect()
}

/// A budget that lets no pod of db go.
async fn budget_of_none(stage: &Stage) {
    let budget = json!({
        "metadata": {"namespace": stage.name, "name": "db"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}},
    });
    let budget: PodDisruptionBudget = serde_json::from_value(budget).expect("it is a budget");
    let client = stage.world.admin();
    pods::create(&client, &budget).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, "db", 1).await.expect("it counts");
}

#[tokio::test]
async fn a_pod_that_a_budget_blocks_is_told_with_its_budget_and_its_time_and_so_is_the_end_of_it() {
    let stage = Stage::set("told-blocked").await.with_settings(&[("SPILLWAY_NODE_EVENTS", "true")]).await;
    stage.deploy("web", 1, PodShape::default()).await;
    // It shuts down for long enough that the drain goes on when its block is over.
    stage.deploy("db", 1, PodShape::default().grace(10).exits_after(Duration::from_secs(3))).await;
    budget_of_none(&stage).await;

    let outcome = stage.notify(&spot_notice(&stage.node.instance_id, Timestamp::now() - LATE)).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(fates(answer), [("clean".to_owned(), 1), ("forced".to_owned(), 1)].into(), "{answer:#}");
    let [blocked] = &stage.told("Spillway Drain Blocked").await[..] else { panic!("it is told once") };
    let node = &stage.node.name;
    let reason = blocked["reason"].as_str().expect("a text");
    assert!(
        reason.contains(&format!("cannot leave node {node}: PodDisruptionBudget db blocks it until 20")),
        "{reason}"
    );
    assert_eq!(blocked["ending"], Value::Null, "it goes on");
    let [pod] = &blocked["pods"].as_array().expect("pods")[..] else { panic!("web has left: {blocked:#}") };
    assert_eq!((&pod["fate"], &pod["blocked_by"]), (&json!("remaining"), &json!("db")));
    let [over] = &stage.told("Spillway Drain Unblocked").await[..] else { panic!("it is told once") };
    assert_eq!(over["reason"], format!("nothing blocks pod {} of node {node} any more", pod["pod"].as_str().unwrap()));
    assert_eq!(over["pods"], json!([{"pod": pod["pod"]}]));
    let told = events(&stage).await;
    for event in
        ["Warning DrainBlocked Node", "Normal DrainUnblocked Node", "Warning Blocked Pod", "Normal Unblocked Pod"]
    {
        assert!(told.contains(event), "{event} is not among {told:?}");
    }
}

#[tokio::test]
async fn a_budget_that_lets_go_in_seconds_is_no_news() {
    let stage = Stage::set("told-not-blocked").await;
    stage.deploy("db", 1, PodShape::default().grace(20)).await;
    budget_of_none(&stage).await;
    let mut refusals = stage.audit.clone();
    let freed = async {
        let refused = |requests: &[Request]| {
            requests.iter().any(|request| request.subresource == "eviction" && request.code == Some(429))
        };
        refusals.wait_until("a refused eviction", Duration::from_mins(1), refused).await.expect("it is refused");
        let budgets = Api::<PodDisruptionBudget>::namespaced(stage.world.admin(), &stage.name);
        budgets.delete("db", &DeleteParams::default()).await.expect("it is deleted");
    };
    let notice = stage.interrupt(Duration::from_secs(120)).await;
    let (outcome, ()) = tokio::join!(stage.lambda.invoke(notice), freed);
    assert_eq!(fates(outcome.result.as_ref().expect("it drains"))["clean"], 1);
    assert_eq!(stage.told("Spillway Drain Blocked").await, Vec::<Value>::new());
    assert_eq!(stage.told("Spillway Drain Unblocked").await, Vec::<Value>::new());
}
