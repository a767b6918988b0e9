//! What became of the lifecycle hook.

use std::fmt;

use serde::Serialize;

use crate::aws::lifecycle::Completion;
use crate::notice::Hook;
use crate::settings::LifecycleResult;

/// A hook may be held for two days, and the receipt is to be read.
pub(super) const MOST_HEARTBEATS: usize = 50;

/// The lifecycle hook.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HookRecord {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) state: HookState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<LifecycleResult>,
    /// When heartbeats were sent, in milliseconds from the notice; the first fifty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) heartbeats_ms: Vec<i64>,
}

/// What became of the hook.
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
    /// A hook that nobody has touched yet.
    pub(super) fn of(hook: &Hook) -> Self {
        Self {
            group: hook.group.clone(),
            name: hook.name.clone(),
            state: HookState::Left,
            result: None,
            heartbeats_ms: Vec::new(),
        }
    }

    pub(super) fn answered(&mut self, completion: Result<Completion, ()>, result: LifecycleResult) {
        self.result = Some(result);
        self.state = match completion {
            Ok(Completion::Completed) => HookState::Completed,
            Ok(Completion::AlreadyOver) => HookState::AlreadyOver,
            Err(()) => HookState::Failed,
        };
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
