//! The receipt in words, with what the drain asked of others. Pure.

use std::fmt::Display;

use serde::Deserialize as _;
use serde_json::Value;
use spillway_bed::audit::Request;
use spillway_bed::aws::Call;
use spillway_receipt::{
    BLOCKED_BY_BUDGET, Fate, HookRecord, HookState, LifecycleResult, PodRecord, Receipt, Step, StepName,
};

use super::screen::wrapped;

/// The first column, and where the text goes on.
const LABELS: usize = 10;
const WIDTH: usize = 98;

/// The last receipt that the function wrote into its log, and as it was written.
pub(super) fn last_in(log: &[String]) -> Option<(Receipt, Value)> {
    let mut lines = log.iter().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let written = lines.find(|line| line.get("receipt").is_some())?;
    Some((Receipt::deserialize(&written).ok()?, written))
}

/// The UIDs of the pods that have gone.
pub(super) fn gone(receipt: &Receipt) -> impl Iterator<Item = &str> {
    receipt.records().filter(|pod| pod.gone_ms.is_some()).map(|pod| pod.uid.as_str())
}

/// Whether Auto Scaling was told to let the instance go.
pub(super) fn instance_may_go(receipt: &Receipt) -> bool {
    receipt.hook.as_ref().is_some_and(|hook| hook.state == HookState::Completed)
}

/// The receipt's parts, a line each.
pub(super) fn in_words(receipt: &Receipt) -> Vec<String> {
    let mut pods: Vec<&PodRecord> = receipt.records().collect();
    pods.sort_by_key(|pod| (pod.gone_ms.unwrap_or(i64::MAX), &pod.pod));
    let pod = |pod: &&PodRecord| format!("{:<LABELS$}{:<34} {}", pod.fate.as_str(), pod.pod, pod_in_words(pod));
    let mut lines: Vec<String> = pods.iter().map(pod).collect();
    if let Some(text) = steps_in_words(receipt) {
        lines.extend(labelled("steps", &text));
    }
    if let Some(text) = window(receipt) {
        lines.extend(labelled("window", &text));
    }
    if let Some(hook) = &receipt.hook {
        lines.extend(labelled("hook", &hook_in_words(hook)));
    }
    lines
}

fn steps_in_words(receipt: &Receipt) -> Option<String> {
    let step = |step: &Step| {
        let what = match step.step {
            StepName::Begun => "begun",
            StepName::Described => "EC2 asked whose the instance is",
            StepName::Claimed => "node cordoned",
            StepName::NodeClaimDeleted => "NodeClaim deleted",
            StepName::Drained => "drain over",
            StepName::Ready => "node Ready",
            StepName::Completed => "hook completed",
            StepName::HandedOn => "handed on",
        };
        format!("{what} at {}", seconds(step.at_ms))
    };
    let steps: Vec<String> = receipt.steps.iter().map(step).collect();
    (!steps.is_empty()).then(|| steps.join(" · "))
}

fn window(receipt: &Receipt) -> Option<String> {
    let notice = &receipt.notice;
    let whole = notice.time.zip(notice.deadline).map(|(time, deadline)| deadline.duration_since(time));
    match (whole, receipt.step_ms(StepName::Drained)) {
        (Some(whole), Some(at_ms)) => {
            let whole_ms = i64::try_from(whole.as_millis()).unwrap_or(i64::MAX);
            Some(format!("{} of {} s were left", seconds(whole_ms - at_ms), whole.as_secs()))
        }
        (Some(whole), None) => Some(format!("{} s from the notice", whole.as_secs())),
        (None, _) => {
            receipt.hook.is_some().then(|| "open: a hook holds the instance while it gets heartbeats".to_owned())
        }
    }
}

fn pod_in_words(pod: &PodRecord) -> String {
    let gone = pod.gone_ms.map(|ms| format!("gone at {}", seconds(ms)));
    let grace = pod.gone_ms.map(|_| match pod.given_s {
        Some(given) => format!("{given} of {} s of grace", pod.grace_s),
        None => format!("all {} s of grace", pod.grace_s),
    });
    let refusals = pod.answers.get(BLOCKED_BY_BUDGET).copied().unwrap_or_default();
    let budget = pod.blocked_by.as_ref().map(|budget| match pod.fate {
        Fate::Forced => format!("past budget {budget}"),
        _ => format!("refused {refusals}× by {budget}"),
    });
    let is_there = matches!(pod.fate, Fate::Lost | Fate::Remaining);
    let asked = is_there.then(|| format!("requested {}×", pod.evictions));
    [gone, grace, budget, asked, pod.why.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn hook_in_words(hook: &HookRecord) -> String {
    let result = hook.result.map_or("nothing", LifecycleResult::as_str);
    let what = match hook.state {
        HookState::Completed => format!("completed with {result}"),
        HookState::AlreadyOver => "nobody waited for it any more".to_owned(),
        HookState::Failed => format!("could not be completed with {result}: Auto Scaling ends it by its timeout"),
        HookState::Left => "not touched".to_owned(),
        HookState::Held => "held".to_owned(),
    };
    format!("{} of group {}: {what}", hook.name, hook.group)
}

/// What was asked of AWS and of the API server.
pub(super) fn calls_in_words(calls: &[Call], requests: &[Request]) -> Vec<String> {
    let action = |call: &Call| {
        let refused = call.error_code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
        format!("{}:{}{refused}", call.service, call.action)
    };
    let aws = listed("call", "to AWS", calls.iter().map(action));
    let kubernetes = listed("request", "to the API server", requests.iter().map(kind));
    [labelled("calls", &aws), labelled("", &kubernetes)].concat()
}

fn kind(request: &Request) -> &'static str {
    match (request.verb.as_str(), request.resource.as_str(), request.subresource.as_str()) {
        ("patch", "nodes", _) => "claim",
        ("get", "nodes", _) => "look at a node",
        ("list", "nodes", _) => "list of nodes",
        ("list", "pods", _) => "list of its pods",
        ("watch", "pods", _) => "watch of its pods",
        ("create", "pods", "eviction") if request.code == Some(429) => "refused eviction",
        ("create", "pods", "eviction") => "eviction",
        ("delete", "pods", _) => "deletion past a budget",
        _ => "other",
    }
}

/// How many in all, and each with how often, in the order in which they came.
fn listed<T: PartialEq + Display>(one: &str, whom: &str, all: impl Iterator<Item = T>) -> String {
    let mut counts: Vec<(T, usize)> = Vec::new();
    for one in all {
        match counts.iter_mut().find(|(known, _)| *known == one) {
            Some((_, count)) => *count += 1,
            None => counts.push((one, 1)),
        }
    }
    let words = |(what, count): &(T, usize)| if *count == 1 { what.to_string() } else { format!("{count}× {what}") };
    let each = counts.iter().map(words).collect::<Vec<_>>().join(", ");
    match counts.iter().map(|(_, count)| count).sum() {
        0 => format!("no {one} {whom}"),
        1 => format!("1 {one} {whom}: {each}"),
        many => format!("{many} {one}s {whom}: {each}"),
    }
}

fn seconds(milliseconds: i64) -> String {
    let tenths = milliseconds.unsigned_abs().saturating_add(50) / 100;
    let sign = if milliseconds < 0 && tenths > 0 { "-" } else { "" };
    format!("{sign}{}.{} s", tenths / 10, tenths % 10)
}

fn labelled(label: &str, text: &str) -> Vec<String> {
    let lines = wrapped(text, WIDTH - LABELS).into_iter().enumerate();
    lines.map(|(index, line)| format!("{:<LABELS$}{line}", if index == 0 { label } else { "" })).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One pod of each fate, as docs/receipt.md has them.
    fn written() -> String {
        let pod = |name: &str, fate: &str, more: Value| {
            let mut pod =
                json!({"pod": format!("shop/{name}"), "uid": name, "fate": fate, "grace_s": 30, "evictions": 1});
            pod.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            pod
        };
        json!({
            "receipt": 2,
            "notice": {"kind": "spot interruption", "time": "2026-11-21T03:12:00Z", "deadline": "2026-11-21T03:14:00Z"},
            "steps": [{"step": "claimed", "at_ms": 802}, {"step": "drained", "at_ms": 43017}],
            "pods": [
                pod("a", "clean", json!({"evictions": 6, "answers": {"blocked-by-budget": 5, "evicted": 1}, "blocked_by": "web", "gone_ms": 9120})),
                pod("b", "clamped", json!({"given_s": 17, "gone_ms": 41880})),
                pod("c", "forced", json!({"given_s": 20, "answers": {"blocked-by-budget": 9, "deleted": 1}, "blocked_by": "web", "gone_ms": 43012})),
                pod("d", "stayed", json!({"evictions": 0, "why": "a DaemonSet's pod"})),
                pod("e", "lost", json!({"why": "it was still shutting down"})),
            ],
            "hook": {"group": "workers", "name": "drain", "state": "completed", "result": "CONTINUE"},
            "ending": "drained",
            "reason": "all have gone",
        })
        .to_string()
    }

    #[test]
    fn every_fate_has_its_words() {
        let log = ["not JSON".to_owned(), written(), json!({"metrics": true}).to_string()];
        let (receipt, _) = last_in(&log).expect("it is there");
        let words = in_words(&receipt).join("\n");
        for sentence in [
            "gone at 9.1 s, all 30 s of grace, refused 5× by web",
            "gone at 41.9 s, 17 of 30 s of grace",
            "gone at 43.0 s, 20 of 30 s of grace, past budget web",
            "a DaemonSet's pod",
            "requested 1×, it was still shutting down",
            "node cordoned at 0.8 s · drain over at 43.0 s",
            "77.0 s of 120 s were left",
            "drain of group workers: completed with CONTINUE",
        ] {
            assert!(words.contains(sentence), "{sentence} is not in\n{words}");
        }
        assert_eq!(gone(&receipt).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(instance_may_go(&receipt));
    }
}
