//! The receipt as CloudWatch metrics, in the embedded metric format: a line of the log, no call.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::receipt::{Ending, Fate, HookState, Receipt, StepName};

/// The line, or `None` for an event that never was a notice of ours: it would only dilute the numbers.
pub(super) fn line(receipt: &Receipt, namespace: &str, now: Timestamp) -> Option<String> {
    let ending = receipt.ending?;
    let kind = match (receipt.notice.kind, ending) {
        (Some(kind), _) => kind,
        (None, Ending::Failed) => "unreadable",
        (None, _) => return None,
    };
    let metrics = metrics(receipt);
    let definitions: Vec<Value> = metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit})).collect();
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), json!(now));
    line.insert("level".to_owned(), json!("INFO"));
    line.insert(
        "_aws".to_owned(),
        json!({
            "Timestamp": now.as_millisecond(),
            "CloudWatchMetrics": [{
                "Namespace": namespace,
                "Dimensions": [[], ["Cluster", "Notice", "Ending"]],
                "Metrics": definitions,
            }],
        }),
    );
    line.insert("Notice".to_owned(), json!(kind));
    line.insert("Ending".to_owned(), json!(ending));
    line.insert("Cluster".to_owned(), json!(receipt.cluster.as_deref().unwrap_or("none")));
    for (name, _, value) in metrics {
        line.insert(name.to_owned(), value);
    }
    Some(Value::Object(line).to_string())
}

fn metrics(receipt: &Receipt) -> Vec<(&'static str, &'static str, Value)> {
    let failed = usize::from(receipt.ending == Some(Ending::Failed));
    let hook_not_completed = receipt.hook.as_ref().is_some_and(|hook| hook.state == HookState::Failed);
    let mut metrics = vec![
        ("Notices", "Count", json!(1)),
        ("Failures", "Count", json!(failed)),
        ("PodsClean", "Count", json!(receipt.count(Fate::Clean))),
        ("PodsClamped", "Count", json!(receipt.count(Fate::Clamped))),
        ("PodsForced", "Count", json!(receipt.count(Fate::Forced))),
        ("PodsLeft", "Count", json!(receipt.left_for_good())),
        ("PodsHeld", "Count", json!(receipt.pods.iter().filter(|pod| pod.budget.is_some()).count())),
        ("HooksNotCompleted", "Count", json!(usize::from(hook_not_completed))),
    ];
    let claimed = receipt.step_ms(StepName::Claimed).map(|ms| ("NoticeToClaim", "Milliseconds", json!(ms)));
    let drained = receipt.step_ms(StepName::Drained).map(|ms| ("NoticeToDrained", "Milliseconds", json!(ms)));
    metrics.extend(claimed.into_iter().chain(drained));
    metrics
}
