//! The receipt: a line for each pod, and a page for a browser.

use std::path::PathBuf;

use serde_json::Value;
use spillway_bed::BedError;
use spillway_bed::setup::cached;

use crate::tools;

/// Last receipt in a log.
pub(super) fn last_in(log: &[String]) -> Option<Value> {
    let mut lines = log.iter().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.find(|line| line.get("receipt").is_some())
}

/// Prints a receipt, and writes it as a page by `tools/spillway show`. Replaces the page of an earlier demo of the rule.
pub(super) async fn show(receipt: &Value, rule: &str) -> Result<(), BedError> {
    let text = |field: &str| receipt[field].as_str().unwrap_or_default();
    println!("\n  The receipt: {}: {}", text("ending"), text("reason"));
    for line in pods(receipt) {
        println!("  {line}");
    }
    let file = page_of(rule)?;
    println!("  As a page, for a browser:");
    tools::show("show", &["--output=html".as_ref(), "--to".as_ref(), file.as_os_str()], receipt).await.map(drop)
}

fn page_of(rule: &str) -> Result<PathBuf, BedError> {
    let file = cached(&format!("demo/{rule}.html"));
    let folder = file.parent().expect("a file has a folder");
    std::fs::create_dir_all(folder).map_err(BedError::io(format!("make {}", folder.display())))?;
    Ok(file)
}

/// A line for each pod, in the order of their ends.
fn pods(receipt: &Value) -> Vec<String> {
    let mut pods: Vec<&Value> = receipt["pods"].as_array().into_iter().flatten().collect();
    pods.sort_by_key(|pod| pod["gone_ms"].as_u64().unwrap_or(u64::MAX));
    pods.into_iter().map(pod_in_words).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a drain has fewer milliseconds than would lose one")]
fn pod_in_words(pod: &Value) -> String {
    let text = |field: &str| pod[field].as_str();
    let gone = pod["gone_ms"].as_u64().map(|ms| format!("gone at {:.1} s", ms as f64 / 1e3));
    let grace = pod["given_s"].as_u64().map(|given| format!("{given} of {} s of grace", pod["grace_s"]));
    let budget = text("blocked_by").map(|budget| format!("blocked by budget {budget}"));
    let words: Vec<String> = [gone, grace, budget, text("why").map(str::to_owned)].into_iter().flatten().collect();
    let (fate, pod) = (text("fate").unwrap_or_default(), text("pod").unwrap_or_default());
    format!("{fate:<9} {pod:<34} {}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn last_receipt_has_a_line_for_each_pod_in_order() {
        let receipt = json!({"receipt": 2, "pods": [
            {"pod": "shop/d", "fate": "stayed", "why": "a DaemonSet's pod"},
            {"pod": "shop/b", "fate": "clamped", "gone_ms": 41_880, "grace_s": 30, "given_s": 17},
            {"pod": "shop/a", "fate": "clean", "gone_ms": 9_120, "grace_s": 30, "blocked_by": "web"},
        ]});
        let log = [json!({"receipt": 1}).to_string(), receipt.to_string(), json!({"metrics": true}).to_string()];
        let found = last_in(&log).expect("a receipt");
        let lines: Vec<String> =
            pods(&found).iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "clean shop/a gone at 9.1 s, blocked by budget web",
                "clamped shop/b gone at 41.9 s, 17 of 30 s of grace",
                "stayed shop/d a DaemonSet's pod",
            ]
        );
    }
}
