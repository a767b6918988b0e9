//! The lifecycle hook in the receipt.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum number of heartbeats in a receipt.
const MOST_HEARTBEATS: usize = 50;

/// Lifecycle hook of the notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookRecord {
    pub group: String,
    pub name: String,
    pub state: HookState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<LifecycleResult>,
    /// Times of the first fifty heartbeats, in milliseconds from the notice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeats_ms: Vec<i64>,
}

/// State of the hook when the receipt was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HookState {
    /// Spillway did not complete the hook. Another program completes the hook, or the hook times out.
    Left,
    /// Spillway sent a heartbeat, so that the hook does not time out before a later invocation.
    Held,
    /// Spillway has completed the hook.
    Completed,
    /// The hook was already completed by another client, or had timed out.
    AlreadyOver,
    /// Spillway's attempt to complete the hook failed.
    Failed,
}

/// Result with which a lifecycle action is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum LifecycleResult {
    /// Lets the termination or the launch continue.
    Continue,
    /// At a launch, terminates the instance. At a termination, skips the other hooks. Some groups then keep the instance.
    Abandon,
}

impl HookRecord {
    /// Sets the times of the first fifty heartbeats, in milliseconds from the notice.
    #[must_use]
    pub fn with_heartbeats(self, at_ms: impl Iterator<Item = i64>) -> Self {
        Self { heartbeats_ms: at_ms.take(MOST_HEARTBEATS).collect(), ..self }
    }
}

impl LifecycleResult {
    /// Returns the name of the result in the Auto Scaling API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "CONTINUE",
            Self::Abandon => "ABANDON",
        }
    }
}

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
    use super::*;

    #[test]
    fn record_keeps_the_first_fifty_heartbeats() {
        let (group, name) = ("workers".to_owned(), "drain".to_owned());
        let hook = HookRecord { group, name, state: HookState::Held, result: None, heartbeats_ms: Vec::new() };
        let shown = hook.with_heartbeats(1..1_000).heartbeats_ms;
        assert_eq!((shown.first(), shown.last()), (Some(&1), Some(&50)));
    }
}
