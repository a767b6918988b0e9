//! What became of the lifecycle hook.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many heartbeats a receipt shows: a hook may be held for two days, and the receipt is to be read.
const MOST_HEARTBEATS: usize = 50;

/// The lifecycle hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookRecord {
    pub group: String,
    pub name: String,
    pub state: HookState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<LifecycleResult>,
    /// When heartbeats were sent, in milliseconds from the notice; the first fifty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeats_ms: Vec<i64>,
}

/// What became of the hook, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HookState {
    /// Not touched: it is left to its owner, or to its own timeout.
    Left,
    /// Held for a later invocation.
    Held,
    /// Completed by us.
    Completed,
    /// Nobody waited any more: it had been completed, or its time had passed.
    AlreadyOver,
    /// Completing it failed; Auto Scaling ends it by its timeout.
    Failed,
}

/// What Auto Scaling is told when a lifecycle action is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum LifecycleResult {
    /// Go on.
    Continue,
    /// At a termination: skip the remaining hooks; in a group that retains abandoned instances, keep
    /// this one. At a launch: end the instance.
    Abandon,
}

impl HookRecord {
    /// The record with as many heartbeats as a receipt shows, in milliseconds from the notice.
    #[must_use]
    pub fn with_heartbeats(self, at_ms: impl Iterator<Item = i64>) -> Self {
        Self { heartbeats_ms: at_ms.take(MOST_HEARTBEATS).collect(), ..self }
    }
}

impl LifecycleResult {
    /// The result as Auto Scaling spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "CONTINUE",
            Self::Abandon => "ABANDON",
        }
    }
}

/// What became of the hook, in words.
impl fmt::Display for HookRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lifecycle hook {} of group {} ", self.name, self.group)?;
        match self.state {
            HookState::Left | HookState::Failed => f.write_str("is left to its own timeout"),
            HookState::Held => f.write_str("is held for a later invocation"),
            HookState::Completed => write!(f, "got {}", self.result.map_or("its answer", LifecycleResult::as_str)),
            HookState::AlreadyOver => f.write_str("waited no longer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hook(state: HookState, result: Option<LifecycleResult>) -> HookRecord {
        HookRecord { group: "workers".to_owned(), name: "drain".to_owned(), state, result, heartbeats_ms: Vec::new() }
    }

    #[test]
    fn what_became_of_a_hook_is_told_with_its_answer() {
        for (state, result, told) in [
            (HookState::Completed, Some(LifecycleResult::Continue), "got CONTINUE"),
            (HookState::Completed, None, "got its answer"),
            (HookState::Held, None, "is held for a later invocation"),
            (HookState::Failed, Some(LifecycleResult::Abandon), "is left to its own timeout"),
            (HookState::AlreadyOver, None, "waited no longer"),
        ] {
            assert_eq!(hook(state, result).to_string(), format!("lifecycle hook drain of group workers {told}"));
        }
    }

    #[test]
    fn an_answer_has_one_name() {
        for result in [LifecycleResult::Continue, LifecycleResult::Abandon] {
            assert_eq!(json!(result), result.as_str());
        }
    }

    #[test]
    fn a_hook_that_is_held_for_days_shows_its_first_heartbeats() {
        let shown = hook(HookState::Held, None).with_heartbeats(1..1_000).heartbeats_ms;
        assert_eq!((shown.first(), shown.last()), (Some(&1), Some(&50)));
    }
}
