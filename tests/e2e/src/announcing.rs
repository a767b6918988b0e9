//! Shared parts of the tests of messages: announcers, events for them, and a search for secrets in logs.

use serde_json::{Value, json};
use spillway_bed::Announcer;
use spillway_bed::lambda::{Lambda, Outcome};

use crate::{function, world};

/// The announcer of a function's events, with these parameters of the template.
pub async fn announcer_of(name: &str, sender: &Lambda, parameters: &[(&str, &str)]) -> Announcer {
    let deployed = Announcer::deploy(world().await, (name, sender), parameters).await;
    deployed.unwrap_or_else(|error| panic!("{error}"))
}

/// An announcer without a drain: the test sends its events.
pub async fn announcer(name: &str, parameters: &[(&str, &str)]) -> Announcer {
    announcer_of(name, &function(world().await, name, &[]).await, parameters).await
}

/// Puts a webhook's document into Parameter Store; returns its name.
pub async fn put_document(name: &str, document: &Value) -> String {
    let parameter = format!("/{name}/webhook");
    let put = world().await.aws_side().put_parameter(&parameter, &document.to_string()).await;
    put.unwrap_or_else(|error| panic!("{error}"));
    parameter
}

/// The message of `docs/announcements.md` for a first try, about this node.
pub fn message_of_the_page(node: &str) -> Value {
    let page = include_str!("../../../docs/announcements.md");
    let line = page.split("--message-body '").nth(1).and_then(|rest| rest.lines().next()).expect("the command");
    let body = line.trim_end_matches('\'').replace("'$account'", "123456789012");
    let mut message: Value = serde_json::from_str(&body).expect("JSON");
    message["id"] = json!(node);
    (message["detail"]["node"], message["detail"]["request_id"]) = (json!(node), json!(node));
    message
}

/// Asserts that no log has one of these secrets.
pub fn assert_secret(secrets: &[&str], outcomes: &[Outcome]) {
    assert!(!outcomes.is_empty(), "there are logs to search");
    for outcome in outcomes {
        let written = outcome.logs.join("\n");
        for secret in secrets {
            assert!(!written.contains(secret), "{secret} is in the log:\n{written}");
        }
    }
}
