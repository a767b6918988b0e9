//! The settings: environment variables, read and checked once, every problem reported at once.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::interruption::spot;

const PREFIX: &str = "SPILLWAY_";
/// The value of [`HEARTBEAT`] that leaves it to each hook.
const HALF: &str = "half";

/// What to do with a kind of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Cordon the node and move its pods.
    Drain,
    /// Do nothing but say so.
    Ignore,
}

/// What Auto Scaling is told when a lifecycle action is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum LifecycleResult {
    /// Go on with the termination.
    Continue,
    /// Skip the remaining hooks; in a group that retains abandoned instances, keep this one.
    Abandon,
}

/// What becomes of pods that something still holds when a hook's longest wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldPods {
    /// They stay on the node, and the receipt names them.
    Keep,
    /// They are deleted in time to shut down before the wait is over.
    Delete,
}

/// How often a hook is told that its node still drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    /// Twice in the hook's own timeout.
    Half,
    /// After that time, if half of the hook's own timeout is longer.
    After(Duration),
}

/// Everything that the person who deploys can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// What a spot interruption does.
    pub(crate) spot: Action,
    /// What a terminate lifecycle action does.
    pub(crate) terminate: Action,
    /// The result for a hook whose node still has pods when the time is up.
    pub(crate) undrained_result: LifecycleResult,
    /// How long a terminate hook may be held, from its notice.
    pub(crate) hook_max_wait: Duration,
    /// How often a hook gets a heartbeat.
    pub(crate) heartbeat: Heartbeat,
    /// What becomes of pods that are held when a hook's longest wait is over.
    pub(crate) held_pods: HeldPods,
    /// What is kept before the instance goes, so that the kubelet can report its pods' end.
    pub(crate) margin: Duration,
    /// The CloudWatch namespace of the metrics.
    pub(crate) metrics_namespace: String,
}

/// One setting as the documents and the template show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The environment variable.
    pub(crate) name: &'static str,
    /// The value when it is unset or empty.
    pub(crate) default: &'static str,
    /// The values it takes, in words.
    pub(crate) accepted: &'static str,
}

const SPOT: Setting = Setting { name: "SPILLWAY_SPOT", default: "drain", accepted: "drain or ignore" };
const TERMINATE: Setting = Setting { name: "SPILLWAY_TERMINATE", default: "drain", accepted: "drain or ignore" };
const UNDRAINED_RESULT: Setting =
    Setting { name: "SPILLWAY_UNDRAINED_RESULT", default: "CONTINUE", accepted: "CONTINUE or ABANDON" };
const HOOK_MAX_WAIT: Setting = Setting {
    name: "SPILLWAY_HOOK_MAX_WAIT_S",
    // As long as a hook waits by itself, if its group does not say otherwise.
    default: "3600",
    accepted: "a whole number of seconds from 60 to 172800 (48 hours, Auto Scaling's own limit)",
};
const HEARTBEAT: Setting = Setting {
    name: "SPILLWAY_HEARTBEAT_S",
    default: HALF,
    accepted: "half (of the hook's own timeout) or a whole number of seconds from 5 to 3600",
};
const HELD_PODS: Setting = Setting { name: "SPILLWAY_HELD_PODS", default: "keep", accepted: "keep or delete" };
const MARGIN: Setting =
    Setting { name: "SPILLWAY_MARGIN_S", default: "2", accepted: "a whole number of seconds from 0 to 600" };
const METRICS_NAMESPACE: Setting = Setting {
    name: "SPILLWAY_METRICS_NAMESPACE",
    default: "Spillway",
    accepted: "1 to 255 letters, digits and . - _ / # :, not beginning with a colon or AWS/",
};

/// Every setting there is.
pub(crate) const SETTINGS: [Setting; 8] =
    [SPOT, TERMINATE, UNDRAINED_RESULT, HOOK_MAX_WAIT, HEARTBEAT, HELD_PODS, MARGIN, METRICS_NAMESPACE];

/// Everything that is wrong with the environment.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct SettingsError(Vec<String>);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.join("; "))
    }
}

impl Settings {
    /// Reads the settings from environment variables; those that are not ours are passed over.
    pub(crate) fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Result<Self, SettingsError> {
        let mut reader = Reader {
            variables: variables.filter(|(name, _)| name.starts_with(PREFIX)).collect(),
            refused: Vec::new(),
            problems: Vec::new(),
        };
        reader.report_unknown_names();
        let settings = Self {
            spot: reader.read(SPOT, action),
            terminate: reader.read(TERMINATE, action),
            undrained_result: reader.read(UNDRAINED_RESULT, lifecycle_result),
            hook_max_wait: reader.read(HOOK_MAX_WAIT, |value| seconds(value, 60..=172_800)),
            heartbeat: reader.read(HEARTBEAT, heartbeat),
            held_pods: reader.read(HELD_PODS, held_pods),
            margin: reader.read(MARGIN, |value| seconds(value, 0..=600)),
            metrics_namespace: reader.read(METRICS_NAMESPACE, metrics_namespace),
        };
        settings.report_contradictions(&mut reader);
        if reader.problems.is_empty() { Ok(settings) } else { Err(SettingsError(reader.problems)) }
    }

    /// Each value may be good by itself, and two of them still make no sense together.
    fn report_contradictions(&self, reader: &mut Reader) {
        let (max_wait, margin) = (self.hook_max_wait, self.margin);
        if let Heartbeat::After(heartbeat) = self.heartbeat
            && heartbeat >= max_wait
        {
            reader.contradict(
                [(HEARTBEAT, heartbeat.as_secs().to_string()), (HOOK_MAX_WAIT, max_wait.as_secs().to_string())],
                "no hook is held long enough for a heartbeat",
            );
        }
        if self.spot == Action::Drain && margin >= spot::NOTICE.unsigned_abs() {
            reader.contradict(
                [(MARGIN, margin.as_secs().to_string()), (SPOT, "drain".to_owned())],
                "nothing of a spot notice's 120 s would be left for the drain",
            );
        }
        if self.held_pods == HeldPods::Delete && margin >= max_wait {
            reader.contradict(
                [(MARGIN, margin.as_secs().to_string()), (HOOK_MAX_WAIT, max_wait.as_secs().to_string())],
                "nothing of a hook's wait would be left for the drain",
            );
        }
    }
}

struct Reader {
    variables: Vec<(String, String)>,
    /// The settings whose value is not accepted.
    refused: Vec<&'static str>,
    problems: Vec<String>,
}

impl Reader {
    fn report_unknown_names(&mut self) {
        let known = SETTINGS.map(|setting| setting.name);
        for (name, _) in self.variables.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
            self.problems.push(format!("{name} is no setting; there are {}", known.join(", ")));
        }
    }

    /// A value that is not accepted is noted, and the default stands in so that reading goes on.
    fn read<T>(&mut self, setting: Setting, parse: fn(&str) -> Option<T>) -> T {
        let given = self.variables.iter().find(|(name, value)| name == setting.name && !value.is_empty());
        if let Some((name, value)) = given {
            if let Some(parsed) = parse(value) {
                return parsed;
            }
            self.refused.push(setting.name);
            self.problems.push(format!("{name} is {value:?}; it takes {}", setting.accepted));
        }
        parse(setting.default).expect("a default is accepted, which a test checks")
    }

    /// Notes that two settings contradict each other; a value that is refused by itself does not.
    fn contradict(&mut self, settings: [(Setting, String); 2], why: &str) {
        let [(one, its), (other, others)] = settings;
        if ![one.name, other.name].iter().any(|name| self.refused.contains(name)) {
            self.problems.push(format!("{} is {its} and {} is {others}: {why}", one.name, other.name));
        }
    }
}

fn action(value: &str) -> Option<Action> {
    match value {
        "drain" => Some(Action::Drain),
        "ignore" => Some(Action::Ignore),
        _ => None,
    }
}

fn lifecycle_result(value: &str) -> Option<LifecycleResult> {
    match value {
        "CONTINUE" => Some(LifecycleResult::Continue),
        "ABANDON" => Some(LifecycleResult::Abandon),
        _ => None,
    }
}

fn held_pods(value: &str) -> Option<HeldPods> {
    match value {
        "keep" => Some(HeldPods::Keep),
        "delete" => Some(HeldPods::Delete),
        _ => None,
    }
}

/// The longest timeout of a hook is two hours, so more than one is never the shorter.
fn heartbeat(value: &str) -> Option<Heartbeat> {
    if value == HALF { Some(Heartbeat::Half) } else { seconds(value, 5..=3600).map(Heartbeat::After) }
}

fn seconds(value: &str, accepted: RangeInclusive<u64>) -> Option<Duration> {
    let seconds: u64 = value.parse().ok()?;
    accepted.contains(&seconds).then(|| Duration::from_secs(seconds))
}

fn metrics_namespace(value: &str) -> Option<String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || ".-_/#:".contains(c);
    let fits = (1..=255).contains(&value.len()) && value.chars().all(legal);
    (fits && !value.starts_with(':') && !value.starts_with("AWS/")).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from_variables(variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
    }

    #[test]
    fn without_variables_the_defaults_hold() {
        let settings = read(&[("PATH", "/bin"), ("SPILLWAY_SPOT", "")]).unwrap();
        assert_eq!(
            settings,
            Settings {
                spot: Action::Drain,
                terminate: Action::Drain,
                undrained_result: LifecycleResult::Continue,
                hook_max_wait: Duration::from_hours(1),
                heartbeat: Heartbeat::Half,
                held_pods: HeldPods::Keep,
                margin: Duration::from_secs(2),
                metrics_namespace: "Spillway".to_owned(),
            }
        );
    }

    #[test]
    fn every_setting_can_be_set() {
        let settings = read(&[
            ("SPILLWAY_SPOT", "ignore"),
            ("SPILLWAY_TERMINATE", "ignore"),
            ("SPILLWAY_UNDRAINED_RESULT", "ABANDON"),
            ("SPILLWAY_HOOK_MAX_WAIT_S", "60"),
            ("SPILLWAY_HEARTBEAT_S", "20"),
            ("SPILLWAY_HELD_PODS", "delete"),
            ("SPILLWAY_MARGIN_S", "5"),
            ("SPILLWAY_METRICS_NAMESPACE", "Team/Nodes"),
        ])
        .unwrap();
        assert_eq!(
            settings,
            Settings {
                spot: Action::Ignore,
                terminate: Action::Ignore,
                undrained_result: LifecycleResult::Abandon,
                hook_max_wait: Duration::from_mins(1),
                heartbeat: Heartbeat::After(Duration::from_secs(20)),
                held_pods: HeldPods::Delete,
                margin: Duration::from_secs(5),
                metrics_namespace: "Team/Nodes".to_owned(),
            }
        );
    }

    #[test]
    fn all_problems_are_told_at_once_with_name_value_and_what_is_accepted() {
        let error = read(&[
            ("SPILLWAY_SPOT", "Drain"),
            ("SPILLWAY_HOOK_MAX_WAIT_S", "172801"),
            ("SPILLWAY_HEARTBEAT_S", "0"),
            ("SPILLWAY_HELD_PODS", "drop"),
            ("SPILLWAY_MARGIN_S", "-1"),
            ("SPILLWAY_METRICS_NAMESPACE", "AWS/Lambda"),
            ("SPILLWAY_TREMINATE", "drain"),
        ])
        .unwrap_err();
        insta::assert_snapshot!(error.to_string().replace("; ", ";\n"), @r#"
        SPILLWAY_TREMINATE is no setting;
        there are SPILLWAY_SPOT, SPILLWAY_TERMINATE, SPILLWAY_UNDRAINED_RESULT, SPILLWAY_HOOK_MAX_WAIT_S, SPILLWAY_HEARTBEAT_S, SPILLWAY_HELD_PODS, SPILLWAY_MARGIN_S, SPILLWAY_METRICS_NAMESPACE;
        SPILLWAY_SPOT is "Drain";
        it takes drain or ignore;
        SPILLWAY_HOOK_MAX_WAIT_S is "172801";
        it takes a whole number of seconds from 60 to 172800 (48 hours, Auto Scaling's own limit);
        SPILLWAY_HEARTBEAT_S is "0";
        it takes half (of the hook's own timeout) or a whole number of seconds from 5 to 3600;
        SPILLWAY_HELD_PODS is "drop";
        it takes keep or delete;
        SPILLWAY_MARGIN_S is "-1";
        it takes a whole number of seconds from 0 to 600;
        SPILLWAY_METRICS_NAMESPACE is "AWS/Lambda";
        it takes 1 to 255 letters, digits and . - _ / # :, not beginning with a colon or AWS/
        "#);
    }

    #[test]
    fn settings_that_contradict_each_other_are_told_together_and_both_are_named() {
        let error = read(&[
            ("SPILLWAY_SPOT", "drian"),
            ("SPILLWAY_HOOK_MAX_WAIT_S", "60"),
            ("SPILLWAY_HEARTBEAT_S", "60"),
            ("SPILLWAY_HELD_PODS", "delete"),
            ("SPILLWAY_MARGIN_S", "120"),
        ])
        .unwrap_err();
        insta::assert_snapshot!(error.to_string().replace("; ", ";\n"), @r#"
        SPILLWAY_SPOT is "drian";
        it takes drain or ignore;
        SPILLWAY_HEARTBEAT_S is 60 and SPILLWAY_HOOK_MAX_WAIT_S is 60: no hook is held long enough for a heartbeat;
        SPILLWAY_MARGIN_S is 120 and SPILLWAY_HOOK_MAX_WAIT_S is 60: nothing of a hook's wait would be left for the drain
        "#);
        let error = read(&[("SPILLWAY_MARGIN_S", "120")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "SPILLWAY_MARGIN_S is 120 and SPILLWAY_SPOT is drain: \
             nothing of a spot notice's 120 s would be left for the drain"
        );
        for good in [
            [("SPILLWAY_MARGIN_S", "120"), ("SPILLWAY_SPOT", "ignore")],
            [("SPILLWAY_MARGIN_S", "119"), ("SPILLWAY_SPOT", "drain")],
            [("SPILLWAY_HEARTBEAT_S", "59"), ("SPILLWAY_HOOK_MAX_WAIT_S", "60")],
            [("SPILLWAY_HEARTBEAT_S", "half"), ("SPILLWAY_HOOK_MAX_WAIT_S", "60")],
        ] {
            read(&good).unwrap();
        }
    }

    /// A file of the repository.
    fn file(name: &str) -> String {
        std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// Every word of a text that looks like a setting, in order.
    fn named_in(text: &str) -> Vec<&str> {
        let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        words.filter(|word| word.len() > PREFIX.len() && word.starts_with(PREFIX)).collect()
    }

    #[test]
    fn the_readme_has_a_row_for_each_setting_with_its_default_and_what_it_takes() {
        let readme = file("README.md");
        let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `SPILLWAY_")).collect();
        assert_eq!(rows.len(), SETTINGS.len());
        for (row, Setting { name, default, accepted }) in rows.iter().zip(SETTINGS) {
            assert!(row.starts_with(&format!("| `{name}` | `{default}` | {accepted} |")), "{row}");
        }
    }

    #[test]
    fn the_template_sets_each_setting_by_a_parameter_with_the_same_default() {
        let template = file("template.yaml");
        let variables = template.split("Variables:").nth(1).unwrap().split("Events:").next().unwrap();
        assert_eq!(named_in(variables), SETTINGS.map(|setting| setting.name));
        for Setting { name, default, .. } in SETTINGS {
            let parameter = variables.split(&format!("{name}: !Ref ")).nth(1).unwrap().lines().next().unwrap();
            let definition = template.split(&format!("\n  {parameter}:\n")).nth(1).unwrap();
            let given = definition.split("Default: ").nth(1).unwrap().lines().next().unwrap();
            assert_eq!(given, default, "{parameter}");
        }
    }
}
