//! Shared parts of the tests of messages: announcers, events for them, and a search for secrets in logs.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_bed::Announcer;
use spillway_bed::lambda::{Lambda, Outcome};

use crate::{Stage, function, world};

/// Short, so that each event is a message of its own.
const WINDOW: Duration = Duration::from_millis(100);

/// The announcer of a stage's function, with these parameters of the template.
pub async fn announcer_of(stage: &Stage, parameters: &[(&str, &str)]) -> Announcer {
    deploy(&stage.name, &stage.lambda, parameters, Some(WINDOW)).await
}

/// An announcer without a drain: the test sends its events.
pub async fn announcer(name: &str, parameters: &[(&str, &str)]) -> Announcer {
    deploy(name, &function(world().await, name, &[]).await, parameters, Some(WINDOW)).await
}

/// An announcer without a drain, with the template's window.
pub async fn announcer_as_deployed(name: &str, parameters: &[(&str, &str)]) -> Announcer {
    deploy(name, &function(world().await, name, &[]).await, parameters, None).await
}

async fn deploy(name: &str, sender: &Lambda, parameters: &[(&str, &str)], window: Option<Duration>) -> Announcer {
    let deployed = Announcer::deploy(world().await, (name, sender), parameters, window).await;
    deployed.unwrap_or_else(|error| panic!("{error}"))
}

/// Puts a webhook's document into Parameter Store; returns its name.
pub async fn put_document(name: &str, document: &Value) -> String {
    let parameter = format!("/{name}/webhook");
    let put = world().await.aws_side().put_parameter(&parameter, &document.to_string()).await;
    put.unwrap_or_else(|error| panic!("{error}"));
    parameter
}

/// The receipt event of drained node `n`, as EventBridge puts it into the queue.
pub fn drained(n: usize) -> Value {
    let (node, instance) = (format!("ip-10-0-0-{n}.ec2.internal"), format!("i-{n:017x}"));
    json!({
        "version": "0", "id": format!("ended-{n}"), "detail-type": "Spillway Receipt", "source": "spillway",
        "account": "123456789012", "time": "2026-11-21T03:12:09Z", "region": "us-east-1", "resources": [],
        "detail": {
            "receipt": 2, "request_id": format!("request-{n}"), "stack": "spillway",
            "notice": {
                "event_id": format!("event-{n}"), "kind": "spot interruption", "time": "2026-11-21T03:12:00Z",
                "deadline": "2026-11-21T03:14:00Z",
            },
            "account": "123456789012", "region": "us-east-1", "zone": "us-east-1a", "instance": instance,
            "instance_type": "m7g.large", "auto_scaling_group": "workers", "managed_by": "self-managed",
            "decision": "drain", "cluster": "prod", "node": node, "node_labels": {"team": "shop"},
            "ending": "drained", "reason": format!("the one pod that had to leave node {node} have gone"),
            "dry_run": false, "pods": [{"pod": format!("shop/web-{n}"), "uid": "u", "fate": "clean"}],
        },
    })
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
