//! What became of the lifecycle hook, as the receipt shows it.

use std::fmt;

use serde::Serialize;

use super::record::HookStatus;
use crate::notice::Hook;
use crate::settings::LifecycleResult;

/// How many heartbeats a receipt shows: a hook may be held for two days, and the receipt is to be read.
const MOST_HEARTBEATS: usize = 50;

/// The lifecycle hook.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HookRecord {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) state: HookState,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<LifecycleResult>,
    /// When heartbeats were sent, in milliseconds from the notice; the first fifty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    heartbeats_ms: Vec<i64>,
}

/// What became of the hook, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HookState {
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

impl HookRecord {
    /// The hook with what became of it, and when it was sent heartbeats, in milliseconds from the notice.
    pub(super) fn of(hook: &Hook, status: HookStatus, heartbeats_ms: impl Iterator<Item = i64>) -> Self {
        let state = match status {
            HookStatus::Left => HookState::Left,
            HookStatus::Held => HookState::Held,
            HookStatus::Completed(_) => HookState::Completed,
            HookStatus::AlreadyOver(_) => HookState::AlreadyOver,
            HookStatus::Failed(_) => HookState::Failed,
        };
        Self {
            group: hook.group.clone(),
            name: hook.name.clone(),
            state,
            result: status.result(),
            heartbeats_ms: heartbeats_ms.take(MOST_HEARTBEATS).collect(),
        }
    }

    /// Whether nobody has touched it.
    pub(super) fn is_left(&self) -> bool {
        self.state == HookState::Left
    }

    /// Whether completing it failed.
    pub(crate) fn is_not_completed(&self) -> bool {
        self.state == HookState::Failed
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
