//! The settings: environment variables, read and checked once, every problem reported at once.

use std::fmt;
use std::time::Duration;

const PREFIX: &str = "SPILLWAY_";

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
    // Inside the third attempt, the last that Lambda makes: 3 × 15 minutes, 1 and 2 between them.
    default: "2700",
    accepted: "a whole number of seconds from 60 to 172800 (48 hours, Auto Scaling's own limit)",
};
const METRICS_NAMESPACE: Setting = Setting {
    name: "SPILLWAY_METRICS_NAMESPACE",
    default: "Spillway",
    accepted: "1 to 255 letters, digits and . - _ / # :, not beginning with a colon or AWS/",
};

/// Every setting there is.
pub(crate) const SETTINGS: [Setting; 5] = [SPOT, TERMINATE, UNDRAINED_RESULT, HOOK_MAX_WAIT, METRICS_NAMESPACE];

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
            problems: Vec::new(),
        };
        reader.report_unknown_names();
        let settings = Self {
            spot: reader.read(SPOT, action),
            terminate: reader.read(TERMINATE, action),
            undrained_result: reader.read(UNDRAINED_RESULT, lifecycle_result),
            hook_max_wait: reader.read(HOOK_MAX_WAIT, hook_max_wait),
            metrics_namespace: reader.read(METRICS_NAMESPACE, metrics_namespace),
        };
        if reader.problems.is_empty() { Ok(settings) } else { Err(SettingsError(reader.problems)) }
    }
}

struct Reader {
    variables: Vec<(String, String)>,
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
            self.problems.push(format!("{name} is {value:?}; it takes {}", setting.accepted));
        }
        parse(setting.default).expect("a default is accepted, which a test checks")
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

fn hook_max_wait(value: &str) -> Option<Duration> {
    let seconds: u64 = value.parse().ok()?;
    (60..=172_800).contains(&seconds).then(|| Duration::from_secs(seconds))
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
                hook_max_wait: Duration::from_mins(45),
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
                metrics_namespace: "Team/Nodes".to_owned(),
            }
        );
    }

    #[test]
    fn all_problems_are_told_at_once_with_name_value_and_what_is_accepted() {
        let error = read(&[
            ("SPILLWAY_SPOT", "Drain"),
            ("SPILLWAY_HOOK_MAX_WAIT_S", "172801"),
            ("SPILLWAY_METRICS_NAMESPACE", "AWS/Lambda"),
            ("SPILLWAY_TREMINATE", "drain"),
        ])
        .unwrap_err();
        insta::assert_snapshot!(error.to_string().replace("; ", ";\n"), @r#"
        SPILLWAY_TREMINATE is no setting;
        there are SPILLWAY_SPOT, SPILLWAY_TERMINATE, SPILLWAY_UNDRAINED_RESULT, SPILLWAY_HOOK_MAX_WAIT_S, SPILLWAY_METRICS_NAMESPACE;
        SPILLWAY_SPOT is "Drain";
        it takes drain or ignore;
        SPILLWAY_HOOK_MAX_WAIT_S is "172801";
        it takes a whole number of seconds from 60 to 172800 (48 hours, Auto Scaling's own limit);
        SPILLWAY_METRICS_NAMESPACE is "AWS/Lambda";
        it takes 1 to 255 letters, digits and . - _ / # :, not beginning with a colon or AWS/
        "#);
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
