//! Stories: a given plan, the real handler on virtual time, and what follows, line by line. The witnesses hold their invariants in
//! each story as in each drawn world.
//!
//! ```ignore
//! Story::spot()
//!     .pods("web", pods(1).grace(30).blocked())
//!     .tells(["1s evict web 429", "88s delete web 200", "receipt drained forced=1"]);
//! ```

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::plan::{
    Annotation, App, Cause, Command, Fault, Interruption, Kill, ManualChange, Naming, Needs, Outage, Owner, Plan, Side,
};
use crate::run_plan;

/// Tolerance for times: requests, EventBridge and Scheduler take a while.
const TOLERANCE_S: f64 = 3.0;
/// Delay of a notice.
const DELAY: Duration = Duration::from_secs(1);

/// A given plan: one node that is interrupted, its pods, and a second node for their replacements.
#[derive(Debug)]
pub(crate) struct Story(Plan);

/// Lines of a story that was run: the second, and what happened.
#[derive(Debug)]
pub(crate) struct Told {
    lines: Vec<(f64, String)>,
    history: String,
}

/// So many pods of a deployment that ask for 30 s and exit after one.
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

    /// A budget that needs all of them.
    pub(crate) fn blocked(self) -> Self {
        Self { budgets: 1, needs: Needs::MaxUnavailable(0), ..self }
    }

    /// A budget that lets so many be away.
    pub(crate) fn budget(self, away: usize) -> Self {
        Self { budgets: 1, needs: Needs::MaxUnavailable(away), ..self }
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

    pub(crate) fn owned_by(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    /// A StatefulSet's pods, each with a volume.
    pub(crate) fn with_volumes(self) -> Self {
        Self { owner: Owner::StatefulSet, has_volume: true, ..self }
    }
}

impl Story {
    /// An interruption of the first of two nodes at second 0, whose notice comes a second later.
    pub(crate) fn of(cause: Cause) -> Self {
        let interruption = Interruption { node: 0, begins: Duration::ZERO, cause, delay: DELAY };
        let (nodes, names) = (2, vec![Naming::DnsName; 2]);
        Self(Plan { nodes, names, interruptions: vec![interruption], ..Plan::quiet(Vec::new()) })
    }

    /// A Spot Instance that goes at second 120.
    pub(crate) fn spot() -> Self {
        Self::of(Cause::Spot)
    }

    /// An instance that its group terminates, with a hook.
    pub(crate) fn terminate() -> Self {
        Self::of(Cause::Terminate)
    }

    /// Maintenance that reboots the instance at that second.
    pub(crate) fn reboot_at(seconds: u64) -> Self {
        let starts_after = Duration::from_secs(seconds);
        Self::of(Cause::Maintenance { starts_after, reboots: true, called_off_after: None })
    }

    pub(crate) fn pods(mut self, name: &str, mut app: App) -> Self {
        name.clone_into(&mut app.name);
        self.0.apps.push(app);
        self
    }

    /// The delay of the notices of the first interruption.
    pub(crate) fn late(mut self, seconds: u64) -> Self {
        self.0.interruptions[0].delay = Duration::from_secs(seconds);
        self
    }

    /// The same instance is also interrupted in this way, later.
    pub(crate) fn and(mut self, seconds: u64, cause: Cause) -> Self {
        let begins = Duration::from_secs(seconds);
        self.0.interruptions.push(Interruption { node: 0, begins, cause, delay: DELAY });
        self
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.0.settings.push((format!("SPILLWAY_{name}"), value.to_owned()));
        self
    }

    /// The limit of an invocation.
    pub(crate) fn invocations_of(mut self, seconds: u64) -> Self {
        self.0.invocation = Duration::from_secs(seconds);
        self
    }

    /// The timeout of the hook, which a heartbeat begins again.
    pub(crate) fn hook_timeout(mut self, seconds: u64) -> Self {
        self.0.hook_timeout = Duration::from_secs(seconds);
        self
    }

    /// Requests with that text in them go wrong from one second to another.
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

    /// The attempt of that number is killed after so many requests.
    pub(crate) fn killed(mut self, attempt: u32, after_requests: u32) -> Self {
        self.0.kills.push(Kill { attempt, after_requests });
        self
    }

    /// Each event is delivered twice.
    pub(crate) fn delivered_twice(mut self) -> Self {
        self.0.duplicates = 1000;
        self
    }

    /// Runs the story: no invariant is broken.
    pub(crate) fn run(self) -> Told {
        let ran = run_plan(self.0, 1, true);
        assert!(ran.broken.is_empty(), "{}\n{}", ran.history, ran.broken.join("\n"));
        Told { lines: ran.history.lines().skip(1).filter_map(line).collect(), history: ran.history }
    }

    /// Runs the story: it tells these lines in this order.
    pub(crate) fn tells<const N: usize>(self, expected: [&str; N]) -> Told {
        let told = self.run();
        told.in_order(&expected);
        told
    }
}

impl Told {
    /// Number of lines with these words.
    pub(crate) fn count(&self, words: &str) -> usize {
        self.lines.iter().filter(|line| matches(line, words)).count()
    }

    /// No line has these words.
    pub(crate) fn never(self, words: &str) -> Self {
        assert_eq!(self.count(words), 0, "{words}\n{self}");
        self
    }

    /// So many lines have these words.
    pub(crate) fn times(self, times: usize, words: &str) -> Self {
        assert_eq!(self.count(words), times, "{words}\n{self}");
        self
    }

    fn in_order(&self, expected: &[&str]) {
        let mut lines = self.lines.iter();
        for words in expected {
            assert!(lines.any(|line| matches(line, words)), "no line, or none in this order: {words}\n{self}");
        }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if std::env::var_os("HISTORY").is_some() {
            return f.write_str(&self.history);
        }
        self.lines.iter().try_for_each(|(at, line)| writeln!(f, "{at:>9.3}s {line}"))
    }
}

/// Whether a line has all words of an expectation, each as a word or the begin of one; a first word such as `88s` is its time.
fn matches((at, line): &(f64, String), expected: &str) -> bool {
    let time = |word: &str| word.strip_suffix('s')?.parse::<f64>().ok();
    let mut words = expected.split(' ');
    // The reason of a receipt is for people.
    let told = line.split(" : ").next().unwrap_or_default();
    let is_word = |word: &str| told.split(' ').any(|there| there.starts_with(word));
    let first = words.next().unwrap_or_default();
    time(first).map_or_else(|| is_word(first), |time| (time - at).abs() <= TOLERANCE_S) && words.all(is_word)
}

/// A line of the history as a story tells it, unless it is of no interest.
fn line(history: &str) -> Option<(f64, String)> {
    let (at, text) = history.trim_start().split_once(' ')?;
    let (at, text) = (at.parse().ok()?, text.trim_start());
    if let Some((by, receipt)) = text.split_once(" writes ").filter(|(_, receipt)| receipt.starts_with('{')) {
        return Some((at, format!("{by} receipt {}", summary(&serde_json::from_str(receipt).ok()?))));
    }
    if let Some((by, event)) = text.split_once(" begins, ") {
        let what = ["spillway-continuation", "spillway-undo-check"].into_iter().find(|own| event.contains(own));
        return Some((at, format!("{by} begins {}", what.unwrap_or("notice"))));
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
        // The types of our events, without their common first word.
        "PutEvents" => {
            let types = request.split("\"Spillway ").skip(1).filter_map(|rest| rest.split('"').next());
            format!("told {}", types.map(|name| name.trim_start_matches("Drain ")).collect::<Vec<_>>().join(" "))
        }
        _ if second == "prod" => format!("{} {} {code}", verb.to_lowercase(), name.get(2..)?.join("/")),
        _ => format!("{verb} {code}"),
    })
}

/// A receipt in words: the ending, pods by their fates, the hook, and the reason.
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
    for (name, value) in [("hook", &receipt["hook"]["state"]), ("told", &receipt["hook"]["result"])] {
        let _ = value.as_str().map(|value| write!(line, " {name}={value}"));
    }
    let earlier = receipt["earlier"].as_array().map_or(0, Vec::len);
    let _ = write!(line, " earlier={earlier} : {}", text(&receipt["reason"]));
    line
}
