//! Sample events for tests and previews.

use serde_json::{Value, json};

use crate::event::{self, Event};

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

pub(crate) fn document_of_beginning(n: usize) -> Value {
    let mut detail = receipt(n);
    let node = &detail["node"].as_str().expect("a node").to_owned();
    detail["reason"] = json!(format!("node {node} is being drained for the spot interruption"));
    detail["pods"] = json!([{"pod": format!("shop/web-{n}")}, {"pod": format!("shop/cart-{n}")}]);
    detail
}

/// Event of node `n`, on which a `PodDisruptionBudget` blocks the eviction of a pod.
pub(crate) fn blocked(n: usize) -> Event {
    let mut detail = receipt(n);
    let node = &detail["node"].as_str().expect("a node").to_owned();
    let why = "PodDisruptionBudget cart blocks it until 2026-11-21T03:13:28Z at the latest";
    detail["reason"] = json!(format!("pod shop/cart-{n} cannot leave node {node}: {why}"));
    detail["pods"] = json!([{"pod": format!("shop/cart-{n}"), "fate": "remaining", "blocked_by": "cart", "why": why}]);
    event(&format!("blocked-{n}"), "Spillway Drain Blocked", &detail)
}

/// Event of node `n`, on which the eviction of a pod is no longer blocked.
pub(crate) fn unblocked(n: usize) -> Event {
    let mut detail = receipt(n);
    let node = &detail["node"].as_str().expect("a node").to_owned();
    detail["reason"] = json!(format!("nothing blocks pod shop/cart-{n} of node {node} any more"));
    detail["pods"] = json!([{"pod": format!("shop/cart-{n}")}]);
    event(&format!("unblocked-{n}"), "Spillway Drain Unblocked", &detail)
}

/// Receipt of node `n` with one pod, whose fate is `clean`.
pub(crate) fn ended(n: usize, ending: &str) -> Event {
    ended_with(n, ending, &json!([{"pod": format!("shop/web-{n}"), "fate": "clean"}]))
}

/// Receipt of node `n` with the given pods.
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

/// Receipt of node `n` with two lost pods. One pod's reason contains `<`, `>` and `&`.
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

/// Receipts of twelve nodes in two zones of one cluster. The first node lost pods.
pub(crate) fn storm() -> Vec<Event> {
    let of = |n| if n == 0 { lossy(n) } else { ended(n, "drained") };
    let in_zone = |n: usize, mut event: Event| {
        event.receipt.zone = Some(if n.is_multiple_of(2) { "eu-west-1a" } else { "eu-west-1b" }.to_owned());
        event
    };
    (0..12).map(|n| in_zone(n, of(n))).collect()
}

pub(crate) const LOG_GROUP: &str = "spillway-DrainLogs-x";
