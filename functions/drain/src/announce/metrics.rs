//! The receipt as CloudWatch metrics, in the embedded metric format: a line of the log, no call.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::receipt::{Ending, Fate, HookState, PodRecord, Receipt, StepName};

/// The line, or `None` for an event that never was a notice of ours: it would only dilute the numbers.
pub(super) fn line(receipt: &Receipt, namespace: &str, now: Timestamp) -> Option<String> {
    let ending = receipt.ending?;
    let kind = match (receipt.notice.kind, ending) {
        (Some(kind), _) => kind,
        (None, Ending::Failed) => "unreadable",
        (None, _) => return None,
    };
    let metrics = metrics(receipt).into_iter().filter_map(|(name, unit, value)| Some((name, unit, value?)));
    let metrics: Vec<_> = metrics.collect();
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

/// Every metric by its name and unit, and its value if the receipt has one. docs/metrics.md says what each means.
fn metrics(receipt: &Receipt) -> [(&'static str, &'static str, Option<Value>); 14] {
    const COUNT: &str = "Count";
    const MILLISECONDS: &str = "Milliseconds";
    let count = |count: usize| Some(json!(count));
    let failed = receipt.ending == Some(Ending::Failed);
    let hook_not_completed = receipt.hook.as_ref().is_some_and(|hook| hook.state == HookState::Failed);
    let full_grace = receipt.pods.iter().filter(|pod| pod.had_its_full_grace()).count();
    let held = receipt.pods.iter().filter(|pod| pod.refusals() > 0).count();
    let refusals: u32 = receipt.pods.iter().map(PodRecord::refusals).sum();
    let drained = receipt.step_ms(StepName::Drained);
    let emptied = drained.filter(|_| receipt.count(Fate::Left) == 0);
    let goes = receipt.window.and_then(|window| window.goes_ms);
    // CloudWatch has no percentiles of a metric with a negative value.
    let time_left = goes.zip(drained).map(|(goes, drained)| goes.saturating_sub(drained).max(0));
    [
        ("Notices", COUNT, count(1)),
        ("Failures", COUNT, count(usize::from(failed))),
        ("PodsClean", COUNT, count(receipt.count(Fate::Clean))),
        ("PodsClamped", COUNT, count(receipt.count(Fate::Clamped))),
        ("PodsForced", COUNT, count(receipt.count(Fate::Forced))),
        ("PodsLeft", COUNT, count(receipt.left_for_good())),
        ("PodsUnconfirmed", COUNT, count(receipt.count(Fate::Unconfirmed))),
        ("PodsFullGrace", COUNT, count(full_grace)),
        ("PodsHeld", COUNT, count(held)),
        ("BudgetRefusals", COUNT, Some(json!(refusals))),
        ("HooksNotCompleted", COUNT, count(usize::from(hook_not_completed))),
        ("NoticeToClaim", MILLISECONDS, receipt.step_ms(StepName::Claimed).map(Value::from)),
        ("NoticeToDrained", MILLISECONDS, emptied.map(Value::from)),
        ("TimeLeft", MILLISECONDS, time_left.map(Value::from)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_metrics_names_each_with_its_unit() {
        let page = include_str!("../../../../docs/metrics.md");
        let cells = |row: &'static str| row.split('|').map(str::trim).collect::<Vec<_>>();
        let is_metric = |line: &&str| line.starts_with("| `");
        let rows = page.lines().skip_while(|line| !is_metric(line)).take_while(is_metric).map(cells);
        let documented: Vec<_> = rows.map(|row| (row[1].trim_matches('`'), row[2])).collect();
        let emitted = metrics(&Receipt::without_interruption("r-1", None)).map(|(name, unit, _)| (name, unit));
        assert_eq!(documented, emitted);
    }
}
