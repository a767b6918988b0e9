//! Messages about drains: one when it begins, one when it ends, one for a storm; and none of it costs the drain anything.
//!
//! Reason: whole way, process.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::Webhook;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::webhook::{Answer, SECRET_PATH};
use spillway_e2e::announcing::{announcer_as_deployed, announcer_of, assert_untold, drained, kept};
use spillway_e2e::{Stage, receipt};

/// Longer than anybody waits.
const NEVER: Duration = Duration::from_hours(1);

/// Whoever waits for such pods to shut down waits in vain: they get as much grace as there is.
fn stubborn() -> PodShape {
    PodShape::default().grace(600).exits_after(NEVER)
}

/// Takes the stage's pods away, as if they had shut down.
async fn take_pods(stage: &Stage) {
    for pod in pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("the pods are there") {
        let api: Api<Pod> = Api::namespaced(stage.world.admin(), &stage.name);
        api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await.expect("it goes");
    }
}

#[tokio::test]
async fn a_spot_drain_makes_one_slack_message_when_it_begins_and_one_when_it_ends() {
    let stage = Stage::set("two-messages").await.that_announces().await;
    stage.deploy("web", 1, stubborn()).await;
    let webhook = Webhook::start().await.expect("a webhook");
    let announcer = announcer_of(
        &stage,
        &[("Webhook", &kept(&stage.name, &json!({"url": webhook.url(), "format": "slack"})).await)],
    )
    .await;

    let notice = stage.interrupt(Duration::from_secs(120)).await;
    let until_told = async {
        webhook.until_posted(1).await.expect("it is told while the drain waits");
        take_pods(&stage).await;
    };
    let (outcome, ()) = tokio::join!(stage.lambda.invoke(notice), until_told);

    assert_eq!(receipt(&outcome)["ending"], "drained", "{outcome:#?}");
    let outcomes = announcer.until_invoked(2).await.expect("one invocation for each message");
    let told: Vec<Value> = webhook.posts().iter().map(spillway_bed::webhook::Post::json).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    for message in &told {
        let text = message["text"].as_str().expect("Slack shows it in its notification");
        assert!(text.contains(&stage.node.name), "{message:#}");
        assert_eq!(message["blocks"][0]["type"], "header", "{message:#}");
    }
    assert_ne!(told[0]["text"], told[1]["text"]);
    assert_eq!(webhook.posts()[0].headers["content-type"], "application/json");
    assert_untold(&[SECRET_PATH], &[outcomes, vec![outcome]].concat());
}

#[tokio::test]
async fn a_storm_of_a_hundred_nodes_is_one_message_by_cluster_and_zone() {
    let webhook = Webhook::start().await.expect("a webhook");
    let document = kept("storm-of-100", &json!({"url": webhook.url(), "format": "slack"})).await;
    let announcer = announcer_as_deployed("storm-of-100", &[("Webhook", &document)]).await;

    let receipts: Vec<Value> = (0..100)
        .map(|n| {
            let mut receipt = drained(n);
            receipt["detail"]["zone"] = json!(if n < 40 { "us-east-1a" } else { "us-east-1b" });
            if n == 0 {
                receipt["detail"]["ending"] = json!("failed");
            }
            receipt
        })
        .collect();
    announcer.send(&receipts).await.expect("the queue takes them");

    let outcomes = announcer.until_invoked(1).await.expect("the window ends");
    assert!(outcomes[0].result.is_ok(), "{outcomes:#?}");
    let [message] = &*webhook.posts() else { panic!("one message: {} came", webhook.posts().len()) };
    let message = message.json();
    assert_eq!(message["text"], "100 nodes of prod: 99 drained, 1 failed", "{message:#}");
    let told = message["blocks"][1]["text"]["text"].as_str().expect("Slack shows it");
    let zones =
        "*prod, us-east-1a*\n39 drained, 1 failed\n*prod, us-east-1b*\n60 drained\n*ip-10-0-0-0.ec2.internal of prod*";
    assert!(told.starts_with(zones), "{told}");
    let blocks = message["blocks"].to_string();
    assert!(blocks.contains("#logsV2:logs-insights$3F") && blocks.contains("|receipt>"), "{message:#}");
}

#[tokio::test]
async fn a_message_that_fails_for_good_is_kept_after_five_attempts_and_costs_the_drain_nothing() {
    let stage = Stage::set("undelivered").await.that_announces().await;
    stage.deploy("web", 1, stubborn()).await;
    let webhook = Webhook::start().await.expect("a webhook");
    webhook.answers([], Answer::Status(404));
    let announcer = announcer_of(
        &stage,
        &[("Webhook", &kept(&stage.name, &json!({"url": webhook.url(), "format": "slack"})).await)],
    )
    .await;

    let notice = stage.interrupt(Duration::from_secs(120)).await;
    let until_given_up = async {
        let kept = announcer.until_undelivered(1).await.expect("the queue gives up");
        assert_eq!(webhook.posts().len(), 5, "each receive is one attempt: to ask again at once would not help");
        take_pods(&stage).await;
        kept
    };
    let (outcome, kept) = tokio::join!(stage.lambda.invoke(notice), until_given_up);

    assert_eq!(kept.len(), 1, "{kept:#?}");
    assert_eq!(kept[0]["detail-type"], "Spillway Drain Begun");
    let receipt = receipt(&outcome);
    assert_eq!(receipt["ending"], "drained", "{receipt:#}");

    let kept = announcer.until_undelivered(2).await.expect("the queue gives up");
    assert!(kept.iter().any(|event| event["detail-type"] == "Spillway Receipt"), "{kept:#?}");
    assert_eq!(webhook.posts().len(), 10);
    let outcomes = announcer.until_invoked(10).await.expect("it was invoked for each");
    let written: Vec<&String> = outcomes.iter().flat_map(|outcome| &outcome.logs).collect();
    assert!(written.iter().any(|line| line.contains("404")), "the log says why: {written:#?}");
    assert_untold(&[SECRET_PATH], &outcomes);
}
