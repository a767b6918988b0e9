//! Reads the environment: every problem is noted, and reading goes on.

use super::PREFIX;
use super::table::{SCHEDULES, SETTINGS, Setting};

pub(super) struct Reader {
    variables: Vec<(String, String)>,
    /// The settings whose value is not accepted.
    refused: Vec<&'static str>,
    pub(super) problems: Vec<String>,
}

impl Reader {
    pub(super) fn new(variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut reader = Self {
            variables: variables.filter(|(name, _)| name.starts_with(PREFIX)).collect(),
            refused: Vec::new(),
            problems: Vec::new(),
        };
        reader.report_unknown_names();
        reader
    }

    fn report_unknown_names(&mut self) {
        let known = SETTINGS.map(|setting| setting.name);
        let is_known = |name: &str| name == SCHEDULES.name || known.contains(&name);
        for (name, _) in self.variables.iter().filter(|(name, _)| !is_known(name)) {
            self.problems.push(format!("{name} is no setting: docs/settings.md has all that there are"));
        }
    }

    /// A value that is not accepted is noted, and the default stands in so that reading goes on.
    pub(super) fn read<T>(&mut self, setting: Setting, parse: fn(&str) -> Option<T>) -> T {
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
    pub(super) fn contradict(&mut self, settings: [(Setting, String); 2], why: &str) {
        let [(one, its), (other, others)] = settings;
        if ![one.name, other.name].iter().any(|name| self.refused.contains(name)) {
            self.problems.push(format!("{} is {its} and {} is {others}: {why}", one.name, other.name));
        }
    }
}
