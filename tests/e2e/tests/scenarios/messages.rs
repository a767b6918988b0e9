//! Messages about drains: one at the begin, one at the end. None delays the drain.
//!
//! Reason: whole way, process.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::webhook::{Answer, Post, SECRET_PATH};
use spillway_bed::{Announcer, Webhook};
use spillway_e2e::announcing::{announcer_of, assert_secret, put_document};
use spillway_e2e::{Stage, ended};

/// A stage with a pod that outlasts the drain, and an announcer with a webhook for Slack.
async fn set(name: &str) -> (Stage, Webhook, Announcer) {
    let stage = Stage::set(name).await.with_announcements().await;
    stage.deploy("web", 1, PodShape::default().grace(600).exits_after(Duration::from_hours(1))).await;
    let webhook = Webhook::start().await.expect("a webhook");
    let document = put_document(name, &json!({"url": webhook.url(), "format": "slack"})).await;
    let announcer = announcer_of(name, &stage.lambda, &[("Webhook", &document)]).await;
    (stage, webhook, announcer)
}

/// Ends the stage's pods.
async fn end_pods(stage: &Stage) {
    for pod in pods::on_node(&stage.client(), &stage.node.name).await.expect("a list") {
        let api: Api<Pod> = Api::namespaced(stage.client(), &stage.name);
        api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await.expect("the pod existed");
    }
}

#[tokio::test]
async fn spot_drain_posts_one_message_at_its_begin_and_one_at_its_end() {
    let (stage, webhook, announcer) = set("two-messages").await;

    let notice = stage.interrupt().await;
    let (outcome, ()) = tokio::join!(stage.lambda.invoke(notice), async {
        webhook.until_posted(1).await.expect("a message while the drain waits");
        end_pods(&stage).await;
    });

    assert_eq!(ended(&outcome).0, "drained", "{outcome:#?}");
    let outcomes = announcer.until_invoked(2).await.expect("an invocation of each message");
    let messages: Vec<Value> = webhook.posts().iter().map(Post::json).collect();
    assert_eq!(messages.len(), 2, "{messages:#?}");
    for message in &messages {
        let text = message["text"].as_str().expect("Slack's notification");
        assert!(text.contains(&stage.node.name), "{message:#}");
        assert_eq!(message["blocks"][0]["type"], "header", "{message:#}");
    }
    assert_ne!(messages[0]["text"], messages[1]["text"]);
    assert_eq!(webhook.posts()[0].headers["content-type"], "application/json");
    assert_secret(&[SECRET_PATH], &[outcomes, vec![outcome]].concat());
}

#[tokio::test]
async fn refused_message_is_kept_after_five_attempts() {
    let (stage, webhook, announcer) = set("undelivered").await;
    webhook.answers(Answer::Status(404));

    let notice = stage.interrupt().await;
    let (outcome, kept) = tokio::join!(stage.lambda.invoke(notice), async {
        let kept = announcer.until_undelivered(1).await.expect("the queue gives up");
        assert_eq!(webhook.posts().len(), 5, "each receive is one attempt");
        end_pods(&stage).await;
        kept
    });

    assert_eq!(kept.len(), 1, "{kept:#?}");
    assert_eq!(kept[0]["detail-type"], "Spillway Drain Begun");
    assert_eq!(ended(&outcome).0, "drained", "{outcome:#?}");

    let kept = announcer.until_undelivered(2).await.expect("the queue gives up");
    assert!(kept.iter().any(|event| event["detail-type"] == "Spillway Receipt"), "{kept:#?}");
    assert_eq!(webhook.posts().len(), 10);
    let outcomes = announcer.until_invoked(10).await.expect("an invocation of each attempt");
    let lines: Vec<&String> = outcomes.iter().flat_map(|outcome| &outcome.logs).collect();
    assert!(lines.iter().any(|line| line.contains("404")), "the log has the cause: {lines:#?}");
    assert_secret(&[SECRET_PATH], &outcomes);
}
