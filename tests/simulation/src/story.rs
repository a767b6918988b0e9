//! Stories: a given plan, the real handler on virtual time, and the expected lines. All laws hold in a story as in a drawn world.
//!
//! ```ignore
//! Story::spot()
//!     .pods("web", pods(1).grace(30).blocked())
//!     .expect(["1s evict web 429", "88s delete web 200", "receipt drained forced=1"]);
//! ```

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::plan::{
    Annotation, App, Cause, Command, Fault, Interruption, Kill, ManualChange, Naming, Outage, Owner, Plan, Side,
};
use crate::run_plan;

/// Tolerance of times: requests, EventBridge and Scheduler take a while.
const TOLERANCE_S: f64 = 3.0;
/// Delay of a notice.
const DELAY: Duration = Duration::from_secs(1);

/// A given plan: one node that is interrupted, its pods, and a second node for their replacements.
#[derive(Debug)]
pub(crate) struct Story(Plan);

/// Lines of a story, with their seconds.
#[derive(Debug)]
pub(crate) struct Transcript {
    lines: Vec<(f64, String)>,
    history: String,
}

/// Pods of a deployment with a grace of 30 s, which exit after one.
pub(crate) fn pods(pods: usize) -> App {
    App { on_first_node: true, ..App::plain(pods) }
}

impl App {
    pub(crate) fn grace(self, grace_s: u64) -> Self {
        Self { grace_s, ..self }
    }

    pub(crate) fn exits_after(self, seconds: u64) -> Self {
        Self { exits_after: Duration::from_secs(seconds), ..self }
    }

    /// A budget that allows no disruption.
    pub(crate) fn blocked(self) -> Self {
        self.budget(0)
    }

    /// A budget with this many allowed disruptions.
    pub(crate) fn budget(self, allowed: usize) -> Self {
        Self { budgets: 1, needs: self.pods - allowed, ..self }
    }

    pub(crate) fn annotated(self, annotation: Annotation) -> Self {
        Self { annotation: Some(annotation), ..self }
    }

    pub(crate) fn critical(self) -> Self {
        Self { is_critical: true, ..self }
    }

    pub(crate) fn tolerant(self) -> Self {
        Self { tolerates: true, ..self }
    }

    /// Pods of a StatefulSet, each with a volume.
    pub(crate) fn with_volumes(self) -> Self {
        Self { owner: Owner::StatefulSet, has_volume: true, ..self }
    }
}

impl Story {
    /// Interruption of the first of two nodes at second 0, with a notice at second 1.
    pub(crate) fn of(cause: Cause) -> Self {
        let interruption = Interruption { node: 0, begins: Duration::ZERO, cause, delay: DELAY };
        let (nodes, names) = (2, vec![Naming::DnsName; 2]);
        Self(Plan { nodes, names, interruptions: vec![interruption], ..Plan::quiet(Vec::new()) })
    }

    /// Spot interruption: the instance ends at second 120.
    pub(crate) fn spot() -> Self {
        Self::of(Cause::Spot)
    }

    /// Termination by the group, with a hook.
    pub(crate) fn terminate() -> Self {
        Self::of(Cause::Terminate)
    }

    /// Maintenance that reboots the instance.
    pub(crate) fn reboot_at(seconds: u64) -> Self {
        let starts_after = Duration::from_secs(seconds);
        Self::of(Cause::Maintenance { starts_after, reboots: true, called_off_after: None })
    }

    pub(crate) fn pods(mut self, name: &str, mut app: App) -> Self {
        name.clone_into(&mut app.name);
        self.0.apps.push(app);
        self
    }

    /// Delays the notices of the first interruption.
    pub(crate) fn late(mut self, seconds: u64) -> Self {
        self.0.interruptions[0].delay = Duration::from_secs(seconds);
        self
    }

    /// Adds a later interruption of the same instance.
    pub(crate) fn and(mut self, seconds: u64, cause: Cause) -> Self {
        let begins = Duration::from_secs(seconds);
        self.0.interruptions.push(Interruption { node: 0, begins, cause, delay: DELAY });
        self
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.0.settings.push((format!("SPILLWAY_{name}"), value.to_owned()));
        self
    }

    /// Sets the timeout of an invocation.
    pub(crate) fn invocations_of(mut self, seconds: u64) -> Self {
        self.0.invocation = Duration::from_secs(seconds);
        self
    }

    /// Sets the timeout of the hook after each heartbeat.
    pub(crate) fn hook_timeout(mut self, seconds: u64) -> Self {
        self.0.hook_timeout = Duration::from_secs(seconds);
        self
    }

    /// Adds a fault of the requests that contain `only`.
    pub(crate) fn fault(mut self, side: Side, only: &str, fault: Fault, seconds: std::ops::Range<u64>) -> Self {
        let [from, until] = [seconds.start, seconds.end].map(Duration::from_secs);
        let only = only.to_owned();
        self.0.outages.push(Outage { side, cluster: None, from, until, fault, of_a_thousand: 1000, only });
        self
    }

    pub(crate) fn person(mut self, seconds: u64, command: Command) -> Self {
        self.0.people.push(ManualChange { at: Duration::from_secs(seconds), node: 0, command });
        self
    }

    /// Kills an attempt after a number of requests.
    pub(crate) fn killed(mut self, attempt: u32, after_requests: u32) -> Self {
        self.0.kills.push(Kill { attempt, after_requests });
        self
    }

    /// Delivers each event twice.
    pub(crate) fn delivered_twice(mut self) -> Self {
        self.0.duplicates = 1000;
        self
    }

    /// Runs the story, and asserts all laws.
    pub(crate) fn run(self) -> Transcript {
        let history = run_plan(self.0, 1, true).lawful("story").history;
        Transcript { lines: history.lines().skip(1).filter_map(line).collect(), history }
    }

    /// Runs the story, and asserts that these lines come in this order.
    pub(crate) fn expect<const N: usize>(self, expected: [&str; N]) -> Transcript {
        let outcome = self.run();
        let mut lines = outcome.lines.iter();
        for words in expected {
            assert!(lines.any(|line| matches(line, words)), "no line, or none in this order: {words}\n{outcome}");
        }
        outcome
    }
}

impl Transcript {
    /// Number of lines with these words.
    pub(crate) fn count(&self, words: &str) -> usize {
        self.lines.iter().filter(|line| matches(line, words)).count()
    }

    /// Asserts that no line has these words.
    pub(crate) fn never(self, words: &str) -> Self {
        self.times(0, words)
    }

    /// Asserts the number of lines with these words.
    pub(crate) fn times(self, times: usize, words: &str) -> Self {
        assert_eq!(self.count(words), times, "{words}\n{self}");
        self
    }
}

impl std::fmt::Display for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if std::env::var_os("HISTORY").is_some() {
            return f.write_str(&self.history);
        }
        self.lines.iter().try_for_each(|(at, line)| writeln!(f, "{at:>9.3}s {line}"))
    }
}

/// Returns `true` if a line has words with all these beginnings. A first word such as `88s` is the time.
fn matches((at, line): &(f64, String), expected: &str) -> bool {
    let time = |word: &str| word.strip_suffix('s')?.parse::<f64>().ok();
    let mut words = expected.split(' ');
    // The reason of a receipt is left out.
    let line = line.split(" : ").next().unwrap_or_default();
    let is_word = |word: &str| line.split(' ').any(|there| there.starts_with(word));
    let first = words.next().unwrap_or_default();
    time(first).map_or_else(|| is_word(first), |time| (time - at).abs() <= TOLERANCE_S) && words.all(is_word)
}

/// Converts a line of the history; `None` for lines without interest.
fn line(history: &str) -> Option<(f64, String)> {
    let (at, text) = history.trim_start().split_once(' ')?;
    let (at, text) = (at.parse().ok()?, text.trim_start());
    if let Some((by, receipt)) = text.split_once(" writes ").filter(|(_, receipt)| receipt.starts_with('{')) {
        return Some((at, format!("{by} receipt {}", summary(&serde_json::from_str(receipt).ok()?))));
    }
    if let Some((by, event)) = text.split_once(" begins, ") {
        let own = ["spillway-continuation", "spillway-undo-check"].into_iter().find(|own| event.contains(own));
        return Some((at, format!("{by} begins {}", own.unwrap_or("notice"))));
    }
    match text.strip_prefix("answered ") {
        Some(answer) => Some((at, answered(answer)?)),
        None if text.contains(" Api ") || text.contains(" Aws ") || text.contains("is about to") => None,
        None => Some((at, text.to_owned())),
    }
}

/// A request and the code of its answer: `evict web-0001 429`.
fn answered(answer: &str) -> Option<String> {
    let (answer, request) = answer.split_once(" ← ")?;
    let code: String = answer.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let mut words = request.split(' ');
    let (verb, second) = (words.next()?, words.next().unwrap_or_default());
    let path = words.next().unwrap_or_default();
    let name = path.split('?').next()?.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>();
    Some(match verb {
        "Evict" | "Delete" => {
            let options: Value =
                request.split_once(" {").and_then(|(_, body)| serde_json::from_str(&format!("{{{body}")).ok())?;
            let grace =
                options.pointer("/deleteOptions/gracePeriodSeconds").or_else(|| options.get("gracePeriodSeconds"));
            let grace = grace.map(|grace| format!(" grace={grace}")).unwrap_or_default();
            let pod = name.iter().skip_while(|part| **part != "pods").nth(1)?;
            format!("{} {pod} {code}{grace}", verb.to_lowercase())
        }
        "GET" | "POST" | "PUT" | "DELETE" => format!("{verb} {second} {code}"),
        // Detail types without their common first word.
        "PutEvents" => {
            let types = request.split("\"Spillway ").skip(1).filter_map(|rest| rest.split('"').next());
            format!("published {}", types.map(|name| name.trim_start_matches("Drain ")).collect::<Vec<_>>().join(" "))
        }
        _ if second == "prod" => format!("{} {} {code}", verb.to_lowercase(), name.get(2..)?.join("/")),
        _ => format!("{verb} {code}"),
    })
}

/// Summary of a receipt: ending, pods by fate, hook, reason.
fn summary(receipt: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut line = text(&receipt["ending"]);
    let mut fates = std::collections::BTreeMap::<String, usize>::new();
    for pod in receipt["pods"].as_array().into_iter().flatten() {
        *fates.entry(text(&pod["fate"])).or_default() += 1;
    }
    for (fate, times) in fates {
        let _ = write!(line, " {fate}={times}");
    }
    for (name, value) in [
        ("hook", &receipt["hook"]["state"]),
        ("result", &receipt["hook"]["result"]),
        ("replacement", &receipt["replacement"]),
    ] {
        let _ = value.as_str().map(|value| write!(line, " {name}={value}"));
    }
    let earlier = receipt["earlier"].as_array().map_or(0, Vec::len);
    let _ = write!(line, " earlier={earlier} : {}", text(&receipt["reason"]));
    line
}
