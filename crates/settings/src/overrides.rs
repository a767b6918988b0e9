//! What a team may set for its own nodes: times by tags of the instance, whether a node is drained by a label of the node.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

use spillway_receipt::OverrideRecord;

use super::{Settings, table, values};

/// The label by which a node says what is to be done with it.
pub const ACTION_LABEL: &str = "spillway/action";

/// What may be overridden, if the settings let it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overridable {
    /// The longest wait of a hook.
    HookMaxWait,
    /// The pace of hooks.
    HooksAtOnce,
    /// The wait for volumes.
    VolumeWait,
    /// The lead of a maintenance drain.
    MaintenanceLead,
    /// The pace of maintenance.
    MaintenanceAtOnce,
    /// Whether the node is drained, cordoned or left.
    Action,
}

/// What the label may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeAction {
    /// Cordon the node and move its pods.
    Drain,
    /// Cordon the node and leave its pods.
    Cordon,
    /// Leave the node as it is.
    Leave,
}

/// What came of tags or a label that override settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// What holds, and where it is from.
    pub taken: Vec<OverrideRecord>,
    /// What is wrong with the others. The stack's values hold.
    pub refused: Vec<String>,
}

/// What a tag of the instance overrides.
struct ByTag {
    what: Overridable,
    /// Without a slash: EC2 refuses one in the key of an instance whose tags are to be seen in its metadata.
    key: &'static str,
    takes: Takes,
}

/// What the tag takes, as its parameter does, and where it goes.
enum Takes {
    Seconds(RangeInclusive<u64>, fn(&mut Settings) -> &mut Duration),
    Nodes(fn(&mut Settings) -> &mut Option<NonZeroUsize>),
}

const BY_TAG: [ByTag; 5] = [
    ByTag {
        what: Overridable::HookMaxWait,
        key: "spillway:hook-max-wait-s",
        takes: Takes::Seconds(table::HOOK_MAX_WAIT_S, |settings| &mut settings.hook_max_wait),
    },
    ByTag {
        what: Overridable::HooksAtOnce,
        key: "spillway:hooks-at-once",
        takes: Takes::Nodes(|settings| &mut settings.hooks_at_once),
    },
    ByTag {
        what: Overridable::VolumeWait,
        key: "spillway:volume-wait-s",
        takes: Takes::Seconds(table::VOLUME_WAIT_S, |settings| &mut settings.volume_wait),
    },
    ByTag {
        what: Overridable::MaintenanceLead,
        key: "spillway:maintenance-lead-s",
        takes: Takes::Seconds(table::MAINTENANCE_LEAD_S, |settings| &mut settings.maintenance_lead),
    },
    ByTag {
        what: Overridable::MaintenanceAtOnce,
        key: "spillway:maintenance-at-once",
        takes: Takes::Nodes(|settings| &mut settings.maintenance_at_once),
    },
];

impl Takes {
    /// Overrides the setting, if the value is accepted.
    fn set(&self, settings: &mut Cow<'_, Settings>, value: &str) -> Option<()> {
        match self {
            Self::Seconds(range, time) => *time(settings.to_mut()) = values::seconds(value, range.clone())?,
            Self::Nodes(nodes) => *nodes(settings.to_mut()) = values::at_once(value)?,
        }
        Some(())
    }

    fn accepted(&self) -> String {
        match self {
            Self::Seconds(range, _) => format!("a whole number of seconds from {} to {}", range.start(), range.end()),
            Self::Nodes(_) => table::HOOKS_AT_ONCE.accepted.to_owned(),
        }
    }
}

impl Overridable {
    pub(super) const ALL: [Self; 6] = [
        Self::HookMaxWait,
        Self::HooksAtOnce,
        Self::VolumeWait,
        Self::MaintenanceLead,
        Self::MaintenanceAtOnce,
        Self::Action,
    ];

    /// The word that names it in the setting.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HookMaxWait => "hook-max-wait",
            Self::HooksAtOnce => "hooks-at-once",
            Self::VolumeWait => "volume-wait",
            Self::MaintenanceLead => "maintenance-lead",
            Self::MaintenanceAtOnce => "maintenance-at-once",
            Self::Action => "action",
        }
    }
}

impl NodeAction {
    /// What the label says, if it is one of the words.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        values::one_of(word, &[("drain", Self::Drain), ("cordon", Self::Cordon), ("leave", Self::Leave)])
    }
}

impl Overrides {
    fn taken(what: Overridable, value: &str, from: String) -> Self {
        let record = OverrideRecord { setting: what.as_str().to_owned(), value: value.to_owned(), from };
        Self { taken: vec![record], refused: Vec::new() }
    }

    fn refused(what: &str, value: &str, accepted: &str) -> Self {
        let refused = format!("the {what} is {value:?}; it takes {accepted}: the stack's setting holds");
        Self { taken: Vec::new(), refused: vec![refused] }
    }

    /// Adds others.
    pub fn extend(&mut self, others: Self) {
        self.taken.extend(others.taken);
        self.refused.extend(others.refused);
    }
}

impl Settings {
    /// Whether that may be overridden.
    #[must_use]
    pub fn lets_override(&self, what: Overridable) -> bool {
        self.overridable.contains(&what)
    }

    /// These settings with what the tags of an instance override of them.
    #[must_use]
    pub fn with_tags(&self, tags: &BTreeMap<String, String>) -> (Cow<'_, Self>, Overrides) {
        let (mut settings, mut overrides) = (Cow::Borrowed(self), Overrides::default());
        for ByTag { what, key, takes } in BY_TAG {
            let Some(value) = tags.get(key).filter(|_| self.lets_override(what)) else { continue };
            overrides.extend(match takes.set(&mut settings, value) {
                Some(()) => Overrides::taken(what, value, format!("tag {key}")),
                None => Overrides::refused(&format!("tag {key}"), value, &takes.accepted()),
            });
        }
        (settings, overrides)
    }

    /// The tags by which something would be overridden, and may not be.
    #[must_use]
    pub fn tags_without_effect(&self, tags: &BTreeMap<String, String>) -> Vec<&'static str> {
        let denied = BY_TAG.into_iter().filter(|by_tag| !self.lets_override(by_tag.what));
        denied.map(|by_tag| by_tag.key).filter(|key| tags.contains_key(*key)).collect()
    }

    /// What the label of a node overrides.
    #[must_use]
    pub fn overridden_by_label(&self, labels: &BTreeMap<String, String>) -> Overrides {
        let Some(value) = labels.get(ACTION_LABEL).filter(|_| self.lets_override(Overridable::Action)) else {
            return Overrides::default();
        };
        let label = format!("label {ACTION_LABEL}");
        match NodeAction::named(value) {
            Some(_) => Overrides::taken(Overridable::Action, value, label),
            None => Overrides::refused(&label, value, "drain, cordon or leave"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(overridable: &str) -> Settings {
        let variable = ("SPILLWAY_OVERRIDABLE".to_owned(), overridable.to_owned());
        Settings::from_variables(std::iter::once(variable))
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_tag_overrides_its_own_time_and_says_so() {
        let tags = map(&[
            ("spillway:hook-max-wait-s", "600"),
            ("spillway:volume-wait-s", "0"),
            ("spillway:maintenance-lead-s", "7200"),
            ("spillway:hooks-at-once", "2"),
            ("spillway:maintenance-at-once", "0"),
            ("team", "shop"),
        ]);
        let stack = settings("hook-max-wait,volume-wait,maintenance-lead,hooks-at-once,maintenance-at-once");
        let (own, overrides) = stack.with_tags(&tags);
        let expected = Settings {
            hook_max_wait: Duration::from_secs(600),
            volume_wait: Duration::ZERO,
            maintenance_lead: Duration::from_secs(7200),
            hooks_at_once: NonZeroUsize::new(2),
            maintenance_at_once: None,
            ..stack.clone()
        };
        assert_eq!((own.as_ref(), overrides.refused.len()), (&expected, 0));
        let taken: Vec<_> =
            overrides.taken.iter().map(|one| (one.setting.as_str(), one.value.as_str(), one.from.as_str())).collect();
        assert_eq!(taken[0], ("hook-max-wait", "600", "tag spillway:hook-max-wait-s"));
        assert_eq!(taken.len(), 5);
    }

    #[test]
    fn by_default_and_for_what_is_not_named_nothing_is_overridden() {
        let tags = map(&[("spillway:hook-max-wait-s", "600"), ("spillway:volume-wait-s", "nonsense")]);
        for allowed in ["", "maintenance-lead,action"] {
            let stack = settings(allowed);
            let (own, overrides) = stack.with_tags(&tags);
            assert_eq!((own.as_ref(), overrides), (&stack, Overrides::default()), "{allowed}");
            assert_eq!(stack.tags_without_effect(&tags), ["spillway:hook-max-wait-s", "spillway:volume-wait-s"]);
        }
        let labels = map(&[(ACTION_LABEL, "leave")]);
        assert_eq!(settings("hook-max-wait").overridden_by_label(&labels), Overrides::default());
        assert_eq!(settings("hook-max-wait,volume-wait").tags_without_effect(&tags), [""; 0]);
    }

    #[test]
    fn a_wrong_value_is_told_and_the_stacks_holds() {
        let stack = settings("hook-max-wait,action");
        for wrong in ["59", "172801", "10m", "", "-60", " 600"] {
            let tags = map(&[("spillway:hook-max-wait-s", wrong)]);
            let (own, overrides) = stack.with_tags(&tags);
            assert_eq!((own.as_ref(), overrides.taken.len()), (&stack, 0), "{wrong}");
            let told = format!(
                "the tag spillway:hook-max-wait-s is {wrong:?}; it takes a whole number of seconds from 60 to 172800: the \
                 stack's setting holds"
            );
            assert_eq!(overrides.refused, [told]);
        }
        let (_, overrides) = settings("hooks-at-once").with_tags(&map(&[("spillway:hooks-at-once", "1001")]));
        let told = "the tag spillway:hooks-at-once is \"1001\"; it takes a whole number from 0 to 1000: the stack's setting holds";
        assert_eq!((overrides.taken.len(), overrides.refused), (0, vec![told.to_owned()]));
        let overrides = stack.overridden_by_label(&map(&[(ACTION_LABEL, "Leave")]));
        let told = "the label spillway/action is \"Leave\"; it takes drain, cordon or leave: the stack's setting holds";
        assert_eq!((overrides.taken.len(), overrides.refused), (0, vec![told.to_owned()]));
    }

    #[test]
    fn a_label_of_a_word_is_told_as_such() {
        for word in ["drain", "cordon", "leave"] {
            let overrides = settings("action").overridden_by_label(&map(&[(ACTION_LABEL, word)]));
            assert_eq!(overrides, Overrides::taken(Overridable::Action, word, "label spillway/action".to_owned()));
        }
    }
}
