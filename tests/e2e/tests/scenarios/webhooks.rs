//! Webhooks that behave badly, and the ways to one: each message is delivered in the end, or kept, and nobody's secret told.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_bed::Webhook;
use spillway_bed::forward_proxy::ForwardProxy;
use spillway_bed::webhook::{Answer, SECRET_PATH};
use spillway_e2e::announcing::{announcer, announcer_to, assert_untold, drained};
use spillway_e2e::world;

/// Longer than the function waits for any answer.
const TOO_LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn what_passes_is_tried_again_until_the_message_is_delivered() {
    let webhook = Webhook::start().await.expect("a webhook");
    webhook.answers([Answer::Status(500), Answer::RetryAfter(1)], Answer::Ok);
    let announcer = announcer_to("passing", &json!({"url": webhook.url()})).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    let posts = webhook.until_posted(3).await.expect("it is tried again");
    let outcomes = announcer.until_invoked(1).await.expect("it ends");
    assert!(posts.iter().all(|post| post.body == posts[0].body), "{posts:#?}");
    let last = outcomes.last().and_then(|outcome| outcome.result.as_ref().ok()).expect("an answer");
    assert_eq!(last["batchItemFailures"], json!([]), "{last:#}");
    assert_untold(&[SECRET_PATH], &outcomes);
}

#[tokio::test]
async fn a_webhook_that_is_slow_once_gets_the_message_all_the_same() {
    let webhook = Webhook::start().await.expect("a webhook");
    webhook.answers([Answer::Slow(TOO_LONG)], Answer::Ok);
    let announcer = announcer_to("slow-once", &json!({"url": webhook.url()})).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    webhook.until_posted(2).await.expect("it is tried again");
    let outcomes = announcer.until_invoked(1).await.expect("it ends");
    assert_untold(&[SECRET_PATH], &outcomes);
}

#[tokio::test]
async fn a_redirect_is_not_followed_for_it_would_take_the_secrets_elsewhere() {
    let (webhook, elsewhere) = (Webhook::start().await.expect("a webhook"), Webhook::start().await.expect("another"));
    webhook.answers([], Answer::Redirect(elsewhere.url()));
    let announcer = announcer_to("redirected", &json!({"url": webhook.url()})).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    let kept = announcer.until_undelivered(1).await.expect("it is given up");
    assert_eq!(kept, [drained(1)]);
    assert!(elsewhere.posts().is_empty(), "{:#?}", elsewhere.posts());
    assert_untold(&[SECRET_PATH], &announcer.outcomes());
}

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
async fn an_address_at_which_nobody_listens_is_told_as_that_and_not_named() {
    let address = Webhook::refused().await.expect("a free port");
    let announcer = announcer_to("refused", &json!({"url": address})).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    announcer.until_undelivered(1).await.expect("it is given up");
    let outcomes = announcer.outcomes();
    let written: Vec<&String> = outcomes.iter().flat_map(|outcome| &outcome.logs).collect();
    assert!(written.iter().any(|line| line.contains("onnect")), "{written:#?}");
    assert_untold(&[SECRET_PATH], &outcomes);
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
    let announcer = announcer_to("from-the-page", &json!({"url": webhook.url()})).await;
    announcer.send(&[from_the_page()]).await.expect("the queue takes it");

    let posts = webhook.until_posted(1).await.expect("it is delivered");
    assert!(posts[0].body.contains("a test: nothing was touched"), "{posts:#?}");
    assert_eq!(posts[0].json()["blocks"][0]["type"], "header", "{posts:#?}");
}

/// As NTH's users have it in their Helm values: every field that its documents name, conditions, a list, functions.
const OF_NTHS_USERS: &str = concat!(
    r#"{"text":"[NTH][{{ .Region }}/{{ .AccountId }}] {{ .Kind }} - EventID: {{ .EventID }} - "#,
    r#"{{ if .NodeProcessed }}done{{ else if .InProgress }}under way{{ end }} - "#,
    r#"Node: {{ .NodeName }}{{ with .NodeLabels }} of {{ .team | upper }}{{ end }} - "#,
    r#"{{ printf "%s (%s)" .InstanceID .InstanceType }} {{ .ProviderID }} in {{ .AvailabilityZone }}{{ if .AutoScalingGroupName }} of {{ .AutoScalingGroupName }}{{ end }}"#,
    r#" - {{ .Description }} - {{ .StartTime }} to {{ .EndTime }} - "#,
    r#"Pods: {{ range $i, $pod := .Pods }}{{ if $i }}, {{ end }}{{ $pod }}{{ end }} - "#,
    r#"{{ .Monitor }} {{ .IsManaged }} [{{ .State }}{{ .InstanceLifeCycle }}{{ .PublicHostname }}{{ .PublicIP }}{{ .LocalHostname }}{{ .LocalIP }}]"}"#,
);

#[tokio::test]
async fn a_template_of_nths_users_works_unchanged_and_finds_every_field() {
    let webhook = Webhook::start().await.expect("a webhook");
    let announcer = announcer_to("of-nth", &json!({"url": webhook.url(), "template": OF_NTHS_USERS})).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    let posts = webhook.until_posted(1).await.expect("it is delivered");
    assert_eq!(
        posts[0].json()["text"],
        "[NTH][us-east-1/123456789012] SPOT_ITN - EventID: event-1 - done - Node: ip-10-0-0-1.ec2.internal of SHOP - \
         i-00000000000000001 (m7g.large) aws:///us-east-1a/i-00000000000000001 in us-east-1a of workers - \
         the one pod that had to leave node ip-10-0-0-1.ec2.internal have gone - 2026-11-21 03:12:00 +0000 UTC to \
         2026-11-21 03:14:00 +0000 UTC - Pods: shop/web-1 - SQS_MONITOR true []"
    );
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

#[tokio::test]
async fn a_document_that_is_wrong_is_named_with_what_is_accepted_and_the_messages_are_kept() {
    let document = json!({"webhookurl": format!("https://hooks.example{SECRET_PATH}"), "format": "html"});
    let announcer = announcer_to("wrong-document", &document).await;
    announcer.send(&[drained(1)]).await.expect("the queue takes it");

    assert_eq!(announcer.until_undelivered(1).await.expect("it is given up"), [drained(1)]);
    let outcomes = announcer.outcomes();
    let written = outcomes.iter().flat_map(|outcome| outcome.logs.clone()).collect::<Vec<_>>().join("\n");
    for told in
        ["the webhook's document /wrong-document/webhook has ", "webhookurl", "has no ", "it takes a JSON object"]
    {
        assert!(written.contains(told), "{told} is not in the log:\n{written}");
    }
    assert_untold(&[SECRET_PATH], &outcomes);
}
