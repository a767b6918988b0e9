//! Reads settings from environment variables and collects all problems.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

pub const PREFIX: &str = "SPILLWAY_";

/// Name, default and description of a setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    /// Value if the variable is unset or empty.
    pub default: &'static str,
    pub accepted: &'static str,
    pub meaning: &'static str,
}

impl Setting {
    /// Returns the name of the parameter in the CloudFormation template: `DryRun` for `SPILLWAY_DRY_RUN`.
    #[must_use]
    pub fn parameter(&self) -> String {
        let words = self.name.trim_start_matches(PREFIX).split('_');
        words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect()
    }

    /// Returns the table row for `docs/settings.md`.
    #[must_use]
    pub fn row(&self) -> String {
        let Self { name, default, accepted, meaning } = self;
        let default = if default.is_empty() { "nothing".to_owned() } else { format!("`{default}`") };
        format!("| `{}` | `{name}` | {default} | {accepted} | {meaning} |\n", self.parameter())
    }
}

/// All problems in the environment variables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SettingsError(Vec<String>);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.join("; "))
    }
}

#[derive(Debug)]
pub struct Reader {
    /// Names and values of the variables. Some values are secrets.
    variables: Vec<(String, SecretString)>,
    refused: Vec<&'static str>,
    problems: Vec<String>,
    unknown: Vec<String>,
}

impl Reader {
    /// Keeps the variables with [`PREFIX`]. Unknown variables are not errors, because Lambda updates code and variables
    /// separately.
    pub fn new(variables: impl Iterator<Item = (String, String)>, known: &[Setting]) -> Self {
        let variables: Vec<(String, SecretString)> =
            variables.filter(|(name, _)| name.starts_with(PREFIX)).map(|(name, value)| (name, value.into())).collect();
        let is_known = |name: &str| known.iter().any(|setting| setting.name == name);
        let names = variables.iter().map(|(name, _)| name.clone());
        let unknown = names.filter(|name| !is_known(name)).collect();
        Self { variables, refused: Vec::new(), problems: Vec::new(), unknown }
    }

    /// Returns the names of the variables with [`PREFIX`] that are not known settings.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Reads a setting. If the value is invalid, records the problem and returns the default.
    pub fn read<T>(&mut self, setting: Setting, parse: fn(&str) -> Option<T>) -> T {
        self.read_or_explain(setting, |value| parse(value).ok_or_else(|| describe(value)))
    }

    /// Reads a setting that may be a secret. Same as [`Self::read`], but `parse` writes the error message, which must not
    /// contain the value.
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
        parse(setting.default).expect("a test parses each default")
    }

    /// Records that the values of two settings contradict each other.
    pub fn contradict(&mut self, settings: [(Setting, String); 2], why: &str) {
        let [(one, its), (other, others)] = settings;
        if ![one.name, other.name].iter().any(|name| self.refused.contains(name)) {
            self.problems.push(format!("{} is {its} and {} is {others}: {why}", one.parameter(), other.parameter()));
        }
    }

    /// Returns the settings or all problems, and logs a warning for each unknown variable.
    pub fn finish<T>(self, settings: T) -> Result<T, SettingsError> {
        for name in &self.unknown {
            tracing::warn!("unknown setting {name} is ignored; docs/settings.md lists all settings");
        }
        if self.problems.is_empty() { Ok(settings) } else { Err(SettingsError(self.problems)) }
    }
}

/// Returns the part of an error message that shows an invalid value. URLs are omitted, because a webhook's URL is a secret.
#[must_use]
pub fn describe(value: &str) -> String {
    if value.contains("://") { "is an address".to_owned() } else { format!("is {value:?}") }
}
