//! Webhooks that behave badly, and the ways to one: each message is delivered in the end, or kept, and nobody's secret told.
//!
//! Reason: connection, process.

use serde_json::{Value, json};
use spillway_bed::Webhook;
use spillway_bed::forward_proxy::ForwardProxy;
use spillway_bed::webhook::{Answer, SECRET_PATH};
use spillway_e2e::announcing::{announcer, announcer_to, assert_untold, drained};
use spillway_e2e::world;

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let webhook = Webhook::start().await.expect("a webhook");
    webhook.answers([], Answer::Endless);
    let announcer = announcer_to("endless", &json!({"url": webhook.url()})).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    let outcomes = announcer.until_invoked(1).await.expect("it ends, though the answer does not");
    assert!(outcomes[0].result.is_ok(), "{outcomes:#?}");
    let memory = announcer.lambda().peak_memory().expect("the process lives");
    assert!(memory < 128 * 1024 * 1024, "{memory} bytes");
}

#[tokio::test]
async fn the_message_goes_through_the_proxy_with_the_headers_that_are_set() {
    let webhook = Webhook::start().await.expect("a webhook");
    let proxy = ForwardProxy::start().await.expect("a proxy");
    let document = json!({
        "url": webhook.url(),
        "proxy": proxy.url(),
        "headers": {"Content-Type": "text/plain", "Authorization": "Bearer header-secret"},
    });
    let announcer = announcer_to("proxied", &document).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    let outcomes = announcer.until_invoked(1).await.expect("it is delivered");
    assert_eq!(proxy.passed(), [format!("CONNECT {}", webhook.address())]);
    let [post] = &*webhook.posts() else { panic!("one post: {:#?}", webhook.posts()) };
    assert_eq!(
        (&*post.headers["content-type"], &*post.headers["authorization"]),
        ("text/plain", "Bearer header-secret")
    );
    assert_untold(&[SECRET_PATH, "header-secret"], &outcomes);
}

/// The message that `docs/announcements.md` has people put into the queue, to see whether anything comes.
fn from_the_page() -> Value {
    let page = include_str!("../../../../docs/announcements.md");
    let line = page.split("--message-body '").nth(1).and_then(|rest| rest.lines().next()).expect("the command");
    let body = line.trim_end_matches('\'').replace("'$account'", "123456789012");
    serde_json::from_str(&body).expect("JSON")
}

#[tokio::test]
async fn the_message_with_which_people_try_it_is_delivered_as_slack_takes_it() {
    let webhook = Webhook::start().await.expect("a webhook");
    let announcer = announcer_to("from-the-page", &json!({"url": webhook.url(), "format": "slack"})).await;
    announcer.send(&[from_the_page()]).await.expect("the queue takes it");

    let posts = webhook.until_posted(1).await.expect("it is delivered");
    assert!(posts[0].body.contains("a test: nothing was touched"), "{posts:#?}");
    assert_eq!(posts[0].json()["blocks"][0]["type"], "header", "{posts:#?}");
}

#[tokio::test]
async fn a_document_that_was_changed_in_secrets_manager_is_read_again() {
    let (old, new) = (Webhook::start().await.expect("a webhook"), Webhook::start().await.expect("another"));
    let aws = world().await.aws_side();
    let document = |webhook: &Webhook, format: &str| json!({"url": webhook.url(), "format": format}).to_string();
    let arn = aws.put_secret("stored/webhook", &document(&old, "slack")).await.expect("it is kept");
    let announcer = announcer("secret", &[("Webhook", &arn)]).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");
    old.until_posted(1).await.expect("it is delivered");

    old.answers([], Answer::Status(404));
    aws.change_secret(&arn, &document(&new, "json")).await.expect("it is changed");
    announcer.send(&[drained(2)]).await.expect("the queue takes it");

    let posts = new.until_posted(1).await.expect("it is delivered to the new address");
    assert!(posts[0].json()["notices"].is_array(), "and in the new format: {posts:#?}");
    assert_untold(&[SECRET_PATH], &announcer.until_invoked(2).await.expect("it ends"));
}
