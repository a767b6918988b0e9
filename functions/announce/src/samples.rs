//! Sample events for tests and previews.

use serde_json::{Value, json};

use crate::event::{self, Event};
#[cfg(test)]
use crate::group::{Message, messages};

fn event(id: &str, detail_type: &str, detail: &Value) -> Event {
    let account = "123456789012";
    let body =
        json!({"id": id, "detail-type": detail_type, "source": "spillway", "account": account, "detail": detail});
    event::read(&body.to_string(), account).expect("an event of ours")
}

/// Fields that all events of a drain share.
fn receipt(n: usize) -> Value {
    json!({
        "receipt": 2, "request_id": format!("r-{n}"), "stack": "spillway", "account": "123456789012", "region": "eu-west-1",
        "zone": "eu-west-1a", "instance": format!("i-{n:017x}"), "instance_type": "m7g.large", "managed_by": "self-managed",
        "auto_scaling_group": "workers", "cluster": "prod", "decision": "drain",
        "node": format!("ip-10-0-0-{n}.eu-west-1.compute.internal"), "node_labels": {"team": "shop", "topology.kubernetes.io/zone": "eu-west-1a"},
        "notice": {
            "event_id": format!("e-{n}"), "kind": "spot interruption", "time": "2026-11-21T03:12:00Z",
            "deadline": "2026-11-21T03:14:00Z",
        },
        "reason": "",
    })
}

/// Event of node `n`, whose drain has begun.
pub(crate) fn begun(n: usize) -> Event {
    event(&format!("begun-{n}"), "Spillway Drain Begun", &document_of_beginning(n))
}

fn document_of_beginning(n: usize) -> Value {
    let mut detail = receipt(n);
    let node = &detail["node"].as_str().expect("a node").to_owned();
    detail["reason"] = json!(format!("node {node} is being drained for the spot interruption"));
    detail["pods"] = json!([{"pod": format!("shop/web-{n}")}, {"pod": format!("shop/cart-{n}")}]);
    detail
}

/// Event of node `n`, of which a budget has blocked a pod for a minute.
pub(crate) fn blocked(n: usize) -> Event {
    let mut detail = receipt(n);
    let node = &detail["node"].as_str().expect("a node").to_owned();
    let why = "PodDisruptionBudget cart blocks it until 2026-11-21T03:13:28Z at the latest";
    detail["reason"] = json!(format!("pod shop/cart-{n} cannot leave node {node}: {why}"));
    detail["pods"] = json!([{"pod": format!("shop/cart-{n}"), "fate": "remaining", "blocked_by": "cart", "why": why}]);
    event(&format!("blocked-{n}"), "Spillway Drain Blocked", &detail)
}

/// Event of node `n`, whose pod is no longer blocked.
pub(crate) fn unblocked(n: usize) -> Event {
    let mut detail = receipt(n);
    let node = &detail["node"].as_str().expect("a node").to_owned();
    detail["reason"] = json!(format!("nothing blocks pod shop/cart-{n} of node {node} any more"));
    detail["pods"] = json!([{"pod": format!("shop/cart-{n}")}]);
    event(&format!("unblocked-{n}"), "Spillway Drain Unblocked", &detail)
}

/// Receipt of node `n` with one clean pod.
pub(crate) fn ended(n: usize, ending: &str) -> Event {
    ended_with(n, ending, &json!([{"pod": format!("shop/web-{n}"), "fate": "clean"}]))
}

/// Receipt of node `n` with these pods.
pub(crate) fn ended_with(n: usize, ending: &str, pods: &Value) -> Event {
    let mut detail = receipt(n);
    detail["ending"] = json!(ending);
    detail["pods"] = pods.clone();
    let node = &detail["node"].as_str().expect("a node").to_owned();
    detail["reason"] = json!(match ending {
        "failed" => format!("2 of 6 pods were still on node {node} when the time was up"),
        _ => format!("the one pod that had to leave node {node} has gone"),
    });
    if ending == "failed" {
        detail["error"] = json!("PodsLost");
    }
    event(&format!("ended-{n}"), "Spillway Receipt", &detail)
}

/// Receipt of node `n` with two lost pods of six, one with a reason that needs escaping in Slack.
pub(crate) fn lossy(n: usize) -> Event {
    ended_with(
        n,
        "failed",
        &json!([
            {"pod": format!("shop/cart-{n}"), "fate": "lost", "why": "PodDisruptionBudget cart blocked it"},
            {"pod": format!("shop/queue-{n}"), "fate": "lost", "why": "a webhook said <no> & no more"},
            {"pod": format!("shop/forced-{n}"), "fate": "forced", "why": "PodDisruptionBudget web blocked it"},
            {"pod": format!("shop/clamped-{n}"), "fate": "clamped"},
            {"pod": format!("shop/web-{n}"), "fate": "clean"},
            {"pod": format!("shop/gone-{n}"), "fate": "unconfirmed"},
            {"pod": format!("kube-system/agent-{n}"), "fate": "stayed", "why": "a DaemonSet's pod"},
        ]),
    )
}

/// Receipts of twelve nodes of one cluster in two zones. The first node lost pods.
pub(crate) fn storm() -> Vec<Event> {
    let of = |n| if n == 0 { lossy(n) } else { ended(n, "drained") };
    let in_zone = |n: usize, mut event: Event| {
        event.receipt.zone = Some(if n.is_multiple_of(2) { "eu-west-1a" } else { "eu-west-1b" }.to_owned());
        event
    };
    (0..12).map(|n| in_zone(n, of(n))).collect()
}

pub(crate) const LOG_GROUP: &str = "spillway-DrainLogs-x";

/// The only message about these events.
#[cfg(test)]
pub(crate) fn message<'a>(events: &[&'a Event]) -> Message<'a> {
    let mut all = messages(events, LOG_GROUP);
    assert_eq!(all.len(), 1, "one message");
    all.remove(0)
}

/// Shortens the links of a message, whose addresses have tests of their own.
#[cfg(test)]
pub(crate) fn without_addresses(text: &str) -> String {
    let is_query = |word: &str| word.contains("#logsV2:");
    let words = text.replace(crate::links::PAGES, "PAGES");
    let short = |word: &str| match (is_query(word), word.split_once("https://"), word.split_once('|')) {
        (true, Some((before, _)), Some((_, after))) => format!("{before}QUERY|{after}"),
        (true, Some((before, _)), None) => format!("{before}QUERY"),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(short).collect::<Vec<_>>().join(" ");
    words.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn begun_sample_has_the_fields_of_the_drain_functions_event() {
    const WRITTEN: &str = include_str!(
        "../../../crates/drainer/src/publish/snapshots/spillway_drainer__publish__tests__the_event_of_a_drain_that_has_begun.snap"
    );
    let (_, written) = WRITTEN.split_once("\n---\n").expect("the snapshot has a head");
    let written: Value = serde_json::from_str(written).expect("JSON");
    let sample = document_of_beginning(1);

    let fields = |event: &Value| -> std::collections::BTreeSet<String> {
        let pods = event["pods"].as_array().expect("the pods that have to leave");
        pods.iter().filter_map(Value::as_object).flat_map(|pod| pod.keys().cloned()).collect()
    };
    assert_eq!(fields(&sample), fields(&written));
    let reason = |event: &Value| {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        text(&event["reason"]).replace(&text(&event["node"]), "NODE").replace(&text(&event["notice"]["kind"]), "KIND")
    };
    assert_eq!(reason(&sample), reason(&written));
}
