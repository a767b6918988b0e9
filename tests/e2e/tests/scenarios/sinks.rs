//! Messages to a topic, and the rights of the announcer's role.
//!
//! Reason: whole way.

use std::collections::BTreeSet;

use serde_json::json;
use spillway_bed::Webhook;
use spillway_e2e::announcing::{announcer, drained, put_document};
use spillway_e2e::world;

#[tokio::test]
async fn topic_gets_a_mail_with_subject_and_text() {
    let aws = world().await.aws_side();
    let topic = aws.create_topic("mails").await.expect("a topic");
    let announcer = announcer("mails", &[("TopicArn", &topic)]).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    announcer.until_invoked(1).await.expect("an invocation");
    let [mail] = &*aws.published("mails").await.expect("the topic answers") else { panic!("one mail") };
    for part in ["Subject", "Message"] {
        let text = mail[part].as_str().unwrap_or_default();
        assert!(text.contains("ip-10-0-0-1.ec2.internal"), "{mail:#}");
    }
    assert!(mail["Subject"].as_str().is_some_and(|subject| subject.chars().count() < 100), "SNS' limit: {mail:#}");
}

#[tokio::test]
async fn announcer_role_allows_exactly_the_calls_that_it_makes() {
    let aws = world().await.aws_side();
    let webhook = Webhook::start().await.expect("a webhook");
    let topic = aws.create_topic("announcers-role").await.expect("a topic");
    let document = json!({"url": webhook.url()});
    let parameter = put_document("announcers-role", &document).await;
    let secret = aws.put_secret("announcers-role/webhook", &document.to_string()).await.expect("a secret");
    let mut made = BTreeSet::new();
    for (name, webhook) in [("role-parameter", &parameter), ("role-secret", &secret)] {
        let announcer = announcer(name, &[("Webhook", webhook), ("TopicArn", &topic)]).await;
        announcer.send(&[drained(1)]).await.expect("the queue takes it");
        let outcomes = announcer.until_invoked(1).await.expect("an invocation");
        assert!(outcomes[0].result.is_ok(), "{outcomes:#?}");
        let calls = aws.calls(Some(announcer.lambda().access_key_id())).await.expect("the journal exists");
        made.extend(calls.into_iter().map(|call| format!("{}:{}", call.service, call.action)));
    }
    // Parameter Store and Secrets Manager decrypt in the function's name.
    made.insert("kms:Decrypt".to_owned());
    assert_eq!(made, allowed());
}

/// Actions that the policies of `AnnouncerRole` in `template.yaml` allow the function itself.
fn allowed() -> BTreeSet<String> {
    let template = include_str!("../../../../template.yaml");
    let role = template.split("\n  AnnouncerRole:\n").nth(1).expect("the role");
    let role = role.split("\n  AnnouncerLogs:\n").next().unwrap_or(role);
    let own = role.split("# What the function itself calls.").nth(1).expect("its own policies");
    let actions = own.lines().filter_map(|line| line.trim().strip_prefix("Action: "));
    actions.map(str::to_owned).collect()
}
