//! Messages to a webhook and to a topic, without secrets in a log.
//!
//! Reason: connection, process, whole way.

use serde_json::json;
use spillway_bed::Webhook;
use spillway_bed::webhook::{Answer, SECRET_PATH};
use spillway_e2e::announcing::{announcer, assert_secret, message_of_the_page, put_document};
use spillway_e2e::world;

#[tokio::test]
async fn test_message_of_the_page_reaches_slack_and_the_topic() {
    let (aws, webhook) = (world().await.aws_side(), Webhook::start().await.expect("a webhook"));
    let topic = aws.create_topic("mails").await.expect("a topic");
    let document = put_document("from-the-page", &json!({"url": webhook.url(), "format": "slack"})).await;
    let announcer = announcer("from-the-page", &[("Webhook", &document), ("TopicArn", &topic)]).await;
    announcer.send(&[message_of_the_page("a-test")]).await.expect("the queue takes it");

    announcer.until_invoked(1).await.expect("an invocation");
    let posts = webhook.posts();
    assert!(posts[0].body.contains("a test: nothing was touched"), "{posts:#?}");
    assert_eq!(posts[0].json()["blocks"][0]["type"], "header", "{posts:#?}");
    let [mail] = &*aws.published("mails").await.expect("the topic answers") else { panic!("one mail") };
    for part in ["Subject", "Message"] {
        let text = mail[part].as_str().unwrap_or_default();
        assert!(text.contains("a-test"), "{mail:#}");
    }
}

#[tokio::test]
async fn changed_secret_is_read_again() {
    let (old, new) = (Webhook::start().await.expect("a webhook"), Webhook::start().await.expect("another"));
    let aws = world().await.aws_side();
    let document = |webhook: &Webhook, format: &str| json!({"url": webhook.url(), "format": format}).to_string();
    let arn = aws.put_secret("stored/webhook", &document(&old, "slack")).await.expect("a secret");
    let announcer = announcer("secret", &[("Webhook", &arn)]).await;
    announcer.send(&[message_of_the_page("first")]).await.expect("the queue takes it");
    old.until_posted(1).await.expect("a post");

    old.answers(Answer::Status(404));
    aws.change_secret(&arn, &document(&new, "json")).await.expect("the secret changes");
    announcer.send(&[message_of_the_page("second")]).await.expect("the queue takes it");

    let posts = new.until_posted(1).await.expect("a post to the new URL");
    assert!(posts[0].json()["notices"].is_array(), "in the new format: {posts:#?}");
    assert_secret(&[SECRET_PATH], &announcer.until_invoked(2).await.expect("two invocations"));
}
