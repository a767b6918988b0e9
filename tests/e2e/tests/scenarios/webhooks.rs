//! Messages to a webhook, without its secrets in a log.
//!
//! Reason: connection, process.

use serde_json::{Value, json};
use spillway_bed::Webhook;
use spillway_bed::webhook::{Answer, SECRET_PATH};
use spillway_e2e::announcing::{announcer, assert_secret, drained, put_document};
use spillway_e2e::world;

/// The message of `docs/announcements.md` for a first try.
fn from_the_page() -> Value {
    let page = include_str!("../../../../docs/announcements.md");
    let line = page.split("--message-body '").nth(1).and_then(|rest| rest.lines().next()).expect("the command");
    let body = line.trim_end_matches('\'').replace("'$account'", "123456789012");
    serde_json::from_str(&body).expect("JSON")
}

#[tokio::test]
async fn test_message_of_the_page_is_posted_for_slack() {
    let webhook = Webhook::start().await.expect("a webhook");
    let document = put_document("from-the-page", &json!({"url": webhook.url(), "format": "slack"})).await;
    let announcer = announcer("from-the-page", &[("Webhook", &document)]).await;
    announcer.send(&[from_the_page()]).await.expect("the queue takes it");

    let posts = webhook.until_posted(1).await.expect("a post");
    assert!(posts[0].body.contains("a test: nothing was touched"), "{posts:#?}");
    assert_eq!(posts[0].json()["blocks"][0]["type"], "header", "{posts:#?}");
}

#[tokio::test]
async fn changed_secret_is_read_again() {
    let (old, new) = (Webhook::start().await.expect("a webhook"), Webhook::start().await.expect("another"));
    let aws = world().await.aws_side();
    let document = |webhook: &Webhook, format: &str| json!({"url": webhook.url(), "format": format}).to_string();
    let arn = aws.put_secret("stored/webhook", &document(&old, "slack")).await.expect("a secret");
    let announcer = announcer("secret", &[("Webhook", &arn)]).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");
    old.until_posted(1).await.expect("a post");

    old.answers(Answer::Status(404));
    aws.change_secret(&arn, &document(&new, "json")).await.expect("the secret changes");
    announcer.send(&[drained(2)]).await.expect("the queue takes it");

    let posts = new.until_posted(1).await.expect("a post to the new URL");
    assert!(posts[0].json()["notices"].is_array(), "in the new format: {posts:#?}");
    assert_secret(&[SECRET_PATH], &announcer.until_invoked(2).await.expect("two invocations"));
}
