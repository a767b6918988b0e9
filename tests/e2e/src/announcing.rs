//! What the tests of messages share: a function that sends them, events for it, and a look for secrets in its log.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_bed::Announcer;
use spillway_bed::lambda::{Lambda, Outcome};

use crate::{Stage, function, world};

/// So short that what does not come together is told apart.
const WINDOW: Duration = Duration::from_millis(100);

/// The announcer of a stage's function, with these parameters of the template.
pub async fn announcer_of(stage: &Stage, parameters: &[(&str, &str)]) -> Announcer {
    deploy((&stage.name, &stage.lambda), parameters, Some(WINDOW)).await
}

/// An announcer without a drain: what it gets, the test sends.
pub async fn announcer(name: &str, parameters: &[(&str, &str)]) -> Announcer {
    deploy((name, &function(world().await, name, &[]).await), parameters, Some(WINDOW)).await
}

/// An announcer without a drain, whose webhook has this document.
pub async fn announcer_to(name: &str, document: &Value) -> Announcer {
    announcer(name, &[("Webhook", &kept(name, document).await)]).await
}

/// Keeps a webhook's document in Parameter Store; answers its name.
pub async fn kept(name: &str, document: &Value) -> String {
    let parameter = format!("/{name}/webhook");
    let put = world().await.aws_side().put_parameter(&parameter, &document.to_string()).await;
    put.unwrap_or_else(|error| panic!("{error}"));
    parameter
}

/// One that has the window that the template gives it.
pub async fn announcer_as_deployed(name: &str, parameters: &[(&str, &str)]) -> Announcer {
    deploy((name, &function(world().await, name, &[]).await), parameters, None).await
}

async fn deploy(sender: (&str, &Lambda), parameters: &[(&str, &str)], window: Option<Duration>) -> Announcer {
    let deployed = Announcer::deploy(world().await, sender, parameters, window).await;
    deployed.unwrap_or_else(|error| panic!("{error}"))
}

/// The event that tells of node `n` that it has been drained, as EventBridge puts it into the queue.
#[must_use]
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

/// Nothing that these invocations wrote has any of the secrets in it.
pub fn assert_untold(secrets: &[&str], outcomes: &[Outcome]) {
    assert!(!outcomes.is_empty(), "there is a log to look at");
    for outcome in outcomes {
        let written = outcome.logs.join("\n");
        for secret in secrets {
            assert!(!written.contains(secret), "{secret} is in the log:\n{written}");
        }
    }
}
