//! Reads the settings from the environment: every problem is noted, and reading goes on.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

/// What each setting's name begins with.
pub const PREFIX: &str = "SPILLWAY_";

/// One setting, as the documents and the template show it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// The value when it is unset or empty.
    pub default: &'static str,
    /// The values it takes, in words.
    pub accepted: &'static str,
    /// What it is for, in words.
    pub meaning: &'static str,
}

impl Setting {
    /// The template's parameter that sets it: `SPILLWAY_DRY_RUN` by `DryRun`.
    #[must_use]
    pub fn parameter(&self) -> String {
        let words = self.name.trim_start_matches(PREFIX).split('_');
        words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect()
    }

    /// Its row in `docs/settings.md`.
    #[must_use]
    pub fn row(&self) -> String {
        let Self { name, default, accepted, meaning } = self;
        let default = if default.is_empty() { "nothing".to_owned() } else { format!("`{default}`") };
        format!("| `{}` | `{name}` | {default} | {accepted} | {meaning} |\n", self.parameter())
    }
}

/// Everything that is wrong with the environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SettingsError(Vec<String>);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.join("; "))
    }
}

/// Reads settings one by one.
#[derive(Debug)]
pub struct Reader {
    /// Some hold secrets.
    variables: Vec<(String, SecretString)>,
    /// The settings whose value is not accepted.
    refused: Vec<&'static str>,
    problems: Vec<String>,
    /// The variables of ours that are not known.
    unknown: Vec<String>,
}

impl Reader {
    /// Reads from variables of the environment; those that are not ours are passed over. One of ours that is not known is
    /// no problem: Lambda changes code and variables in two steps, so that for a moment one of them is another version's.
    pub fn new(variables: impl Iterator<Item = (String, String)>, known: &[Setting]) -> Self {
        let variables: Vec<(String, SecretString)> =
            variables.filter(|(name, _)| name.starts_with(PREFIX)).map(|(name, value)| (name, value.into())).collect();
        let is_known = |name: &str| known.iter().any(|setting| setting.name == name);
        let names = variables.iter().map(|(name, _)| name.clone());
        let unknown = names.filter(|name| !is_known(name)).collect();
        Self { variables, refused: Vec::new(), problems: Vec::new(), unknown }
    }

    /// The variables of ours that this version does not know.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// A value that is not accepted is noted, and the default stands in so that reading goes on.
    pub fn read<T>(&mut self, setting: Setting, parse: fn(&str) -> Option<T>) -> T {
        self.read_or_explain(setting, |value| parse(value).ok_or_else(|| shown(value)))
    }

    /// The same for a value that may be a secret, or too long for a line of the log: `parse` says what is wrong with it.
    pub fn read_or_explain<T>(&mut self, setting: Setting, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let given = self.variables.iter().find(|(name, _)| name == setting.name);
        if let Some((_, value)) = given
            && !value.expose_secret().is_empty()
        {
            match parse(value.expose_secret()) {
                Ok(parsed) => return parsed,
                Err(why) => self.problems.push(format!("{} {why}; it takes {}", setting.parameter(), setting.accepted)),
            }
            self.refused.push(setting.name);
        }
        parse(setting.default).expect("a default is accepted, which a test checks")
    }

    /// Notes that two settings contradict each other; a value that is refused by itself does not.
    pub fn contradict(&mut self, settings: [(Setting, String); 2], why: &str) {
        let [(one, its), (other, others)] = settings;
        if ![one.name, other.name].iter().any(|name| self.refused.contains(name)) {
            self.problems.push(format!("{} is {its} and {} is {others}: {why}", one.parameter(), other.parameter()));
        }
    }

    /// What was read, or every problem there was with it. The log has a warning of each variable that is not known.
    pub fn finish<T>(self, settings: T) -> Result<T, SettingsError> {
        for name in &self.unknown {
            tracing::warn!(
                "{name} is no setting of this version, and changes nothing: docs/settings.md has all there are"
            );
        }
        if self.problems.is_empty() { Ok(settings) } else { Err(SettingsError(self.problems)) }
    }
}

/// A value that is not accepted, as people are told of it. An address in the wrong place may be a webhook's, a secret.
#[must_use]
pub fn shown(value: &str) -> String {
    if value.contains("://") { "is an address".to_owned() } else { format!("is {value:?}") }
}
