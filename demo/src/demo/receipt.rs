//! The receipt in words, with what the drain asked of others. Pure.

use std::collections::BTreeMap;
use std::fmt::Display;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use spillway_bed::audit::Request;
use spillway_bed::aws::Call;

use super::screen::wrapped;

/// The first column, and where the text goes on.
const LABELS: usize = 10;
const WIDTH: usize = 98;

/// What the demo reads of a receipt (docs/receipt.md).
#[derive(Debug, Deserialize)]
pub(super) struct Receipt {
    notice: Notice,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    pods: Vec<Pod>,
    hook: Option<Hook>,
    pub(super) ending: String,
    pub(super) reason: String,
}

#[derive(Debug, Deserialize)]
struct Notice {
    time: Option<Timestamp>,
    deadline: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
struct Step {
    step: String,
    at_ms: i64,
}

#[derive(Debug, Deserialize)]
struct Pod {
    #[serde(rename = "pod")]
    name: String,
    uid: String,
    fate: String,
    grace_s: u64,
    given_s: Option<u64>,
    #[serde(default)]
    evictions: u32,
    #[serde(default)]
    answers: BTreeMap<String, u32>,
    blocked_by: Option<String>,
    why: Option<String>,
    gone_ms: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Hook {
    group: String,
    name: String,
    state: String,
    result: Option<String>,
}

impl Receipt {
    /// The last one that the function wrote into its log, and as it was written.
    pub(super) fn last_in(log: &[String]) -> Option<(Self, Value)> {
        let mut lines = log.iter().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let written = lines.find(|line| line.get("receipt").is_some())?;
        Some((Self::deserialize(&written).ok()?, written))
    }

    /// The UIDs of the pods that have gone.
    pub(super) fn gone(&self) -> impl Iterator<Item = &str> {
        self.pods.iter().filter(|pod| pod.gone_ms.is_some()).map(|pod| pod.uid.as_str())
    }

    /// Whether Auto Scaling was told to let the instance go.
    pub(super) fn instance_may_go(&self) -> bool {
        self.hook.as_ref().is_some_and(|hook| hook.state == "completed")
    }

    pub(super) fn in_words(&self) -> Vec<String> {
        let mut pods: Vec<&Pod> = self.pods.iter().collect();
        pods.sort_by_key(|pod| (pod.gone_ms.unwrap_or(i64::MAX), &pod.name));
        let mut lines: Vec<String> =
            pods.iter().map(|pod| format!("{:<LABELS$}{:<34} {}", pod.fate, pod.name, pod.in_words())).collect();
        if let Some(text) = self.steps_in_words() {
            lines.extend(labelled("steps", &text));
        }
        if let Some(text) = self.window() {
            lines.extend(labelled("window", &text));
        }
        if let Some(hook) = &self.hook {
            lines.extend(labelled("hook", &hook.in_words()));
        }
        lines
    }

    fn steps_in_words(&self) -> Option<String> {
        let step = |step: &Step| {
            let what = match step.step.as_str() {
                "begun" => "begun",
                "described" => "EC2 asked whose the instance is",
                "claimed" => "node cordoned",
                "drained" => "drain over",
                "completed" => "hook completed",
                other => other,
            };
            format!("{what} at {}", seconds(step.at_ms))
        };
        let steps: Vec<String> = self.steps.iter().map(step).collect();
        (!steps.is_empty()).then(|| steps.join(" · "))
    }

    fn window(&self) -> Option<String> {
        let drained = self.steps.iter().find(|step| step.step == "drained").map(|step| step.at_ms);
        let whole = self.notice.time.zip(self.notice.deadline).map(|(time, deadline)| deadline.duration_since(time));
        match (whole, drained) {
            (Some(whole), Some(at_ms)) => {
                let whole_ms = i64::try_from(whole.as_millis()).unwrap_or(i64::MAX);
                Some(format!("{} of {} s were left", seconds(whole_ms - at_ms), whole.as_secs()))
            }
            (Some(whole), None) => Some(format!("{} s from the notice", whole.as_secs())),
            (None, _) => {
                self.hook.is_some().then(|| "open: a hook holds the instance while it gets heartbeats".to_owned())
            }
        }
    }
}

impl Pod {
    fn in_words(&self) -> String {
        let gone = self.gone_ms.map(|ms| format!("gone at {}", seconds(ms)));
        let grace = self.gone_ms.map(|_| match self.given_s {
            Some(given) => format!("{given} of {} s of grace", self.grace_s),
            None => format!("all {} s of grace", self.grace_s),
        });
        let refusals = self.answers.get("blocked-by-budget").copied().unwrap_or_default();
        let budget = self.blocked_by.as_ref().map(|budget| match self.fate.as_str() {
            "forced" => format!("past budget {budget}"),
            _ => format!("refused {refusals}× by {budget}"),
        });
        let asked = (self.fate == "lost").then(|| format!("requested {}×", self.evictions));
        [gone, grace, budget, asked, self.why.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Hook {
    fn in_words(&self) -> String {
        let Self { group, name, state, result } = self;
        let result = result.as_deref().unwrap_or("nothing");
        let what = match state.as_str() {
            "completed" => format!("completed with {result}"),
            "already-over" => "nobody waited for it any more".to_owned(),
            "failed" => format!("could not be completed with {result}: Auto Scaling ends it by its timeout"),
            "left" => "not touched".to_owned(),
            other => other.to_owned(),
        };
        format!("{name} of group {group}: {what}")
    }
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
        let (receipt, _) = Receipt::last_in(&log).expect("it is there");
        let words = receipt.in_words().join("\n");
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
        assert_eq!(receipt.gone().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(receipt.instance_may_go());
    }
}
