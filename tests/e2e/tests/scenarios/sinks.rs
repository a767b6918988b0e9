//! Where else messages and receipts go: a topic, Amazon Q by way of it, a bucket; and what the function needs for that.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use spillway_bed::Webhook;
use spillway_e2e::announcing::{announcer, announcer_of, drained, kept};
use spillway_e2e::{Stage, receipt, world};

#[tokio::test]
async fn a_topic_gets_a_text_that_a_person_reads_in_a_mail() {
    let aws = world().await.aws_side();
    let topic = aws.create_topic("mails").await.expect("a topic");
    let announcer = announcer("mails", &[("TopicArn", &topic)]).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    announcer.until_invoked(1).await.expect("it ends");
    let [mail] = &*aws.published("mails").await.expect("it is published") else { panic!("one mail") };
    for part in ["Subject", "Message"] {
        let text = mail[part].as_str().unwrap_or_default();
        assert!(text.contains("ip-10-0-0-1.ec2.internal"), "{mail:#}");
    }
    assert!(mail["Subject"].as_str().is_some_and(|subject| subject.chars().count() < 100), "SNS' limit: {mail:#}");
}

#[tokio::test]
async fn amazon_q_gets_its_own_form_by_the_topic() {
    let aws = world().await.aws_side();
    let topic = aws.create_topic("amazon-q").await.expect("a topic");
    let announcer = announcer("amazon-q", &[("TopicArn", &topic), ("TopicFormat", "amazon-q")]).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    announcer.until_invoked(1).await.expect("it ends");
    let [published] = &*aws.published("amazon-q").await.expect("it is published") else { panic!("one message") };
    let message: Value = serde_json::from_str(published["Message"].as_str().unwrap_or_default()).expect("JSON");
    assert_eq!((&message["version"], &message["source"]), (&"1.0".into(), &"custom".into()), "{message:#}");
    let told = message["content"]["description"].as_str().expect("without it Amazon Q shows nothing");
    assert!(told.contains("ip-10-0-0-1.ec2.internal"), "{message:#}");
}

#[tokio::test]
async fn the_receipt_of_a_drain_is_an_object_in_the_bucket() {
    let stage = Stage::set("kept-receipt").await.that_announces().await;
    let aws = stage.world.aws_side();
    aws.create_bucket("kept-receipts").await.expect("a bucket");
    let announcer = announcer_of(&stage, &[("ReceiptBucket", "kept-receipts")]).await;

    let outcome = stage.lambda.invoke(stage.interrupt(std::time::Duration::from_secs(120)).await).await;

    announcer.until_invoked(1).await.expect("it ends");
    let objects = aws.objects("kept-receipts").await.expect("the bucket is there");
    let [(key, object)] = &*objects.into_iter().collect::<Vec<_>>() else { panic!("one object") };
    assert!(key.contains(&stage.node.name), "found by its node: {key}");
    let mut object: Value = serde_json::from_str(object).expect("JSON");
    object.as_object_mut().expect("a receipt").remove("node_labels");
    assert_eq!(object, receipt(&outcome), "as the log has it");
}

#[tokio::test]
async fn a_bucket_that_is_another_accounts_gets_no_receipt() {
    let aws = world().await.aws_side();
    aws.create_bucket_of("999999999999", "taken-over").await.expect("a bucket");
    let announcer = announcer("taken-over", &[("ReceiptBucket", "taken-over")]).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    let outcomes = announcer.until_invoked(1).await.expect("it ends");

    assert!(aws.objects("taken-over").await.expect("the bucket is there").is_empty());
    let failed = &outcomes[0].result.as_ref().expect("it ends")["batchItemFailures"];
    assert_eq!(failed.as_array().map(Vec::len), Some(1), "the queue keeps it: {outcomes:#?}");
}

#[tokio::test]
async fn the_announcers_role_allows_exactly_the_calls_that_it_was_seen_to_make() {
    let aws = world().await.aws_side();
    let webhook = Webhook::start().await.expect("a webhook");
    let topic = aws.create_topic("announcers-role").await.expect("a topic");
    aws.create_bucket("announcers-role").await.expect("a bucket");
    let document = json!({"url": webhook.url()});
    let parameter = kept("announcers-role", &document).await;
    let secret = aws.put_secret("announcers-role/webhook", &document.to_string()).await.expect("it is kept");
    let mut seen = BTreeSet::new();
    for (name, webhook) in [("role-parameter", &parameter), ("role-secret", &secret)] {
        let parameters = [("Webhook", &**webhook), ("TopicArn", &*topic), ("ReceiptBucket", "announcers-role")];
        let announcer = announcer(name, &parameters).await;
        announcer.send(&[drained(1)]).await.expect("the queue takes it");
        let outcomes = announcer.until_invoked(1).await.expect("it ends");
        assert!(outcomes[0].result.is_ok(), "{outcomes:#?}");
        let calls = aws.calls(Some(announcer.lambda().access_key_id())).await.expect("the journal is there");
        seen.extend(calls.into_iter().map(|call| format!("{}:{}", call.service, call.action)));
    }
    // Parameter Store and Secrets Manager decrypt in the function's name.
    seen.insert("kms:Decrypt".to_owned());
    assert_eq!(seen, allowed());
}

/// What the policies of `AnnouncerRole` in `template.yaml` allow the function itself.
fn allowed() -> BTreeSet<String> {
    let template = include_str!("../../../../template.yaml");
    let role = template.split("\n  AnnouncerRole:\n").nth(1).expect("the role");
    let role = role.split("\n  AnnouncerLogs:\n").next().unwrap_or(role);
    let own = role.split("# What the function itself calls.").nth(1).expect("its own policies");
    let actions = own.lines().filter_map(|line| line.trim().strip_prefix("Action: "));
    actions.map(str::to_owned).collect()
}
