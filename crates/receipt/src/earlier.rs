//! The invocations that worked on a notice before: they stand in its receipt, and in the event that hands a drain on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Fate;

/// What an earlier invocation did, in short: its own receipt has it whole.
//  About 300 bytes, so that as many as there may be (199: `MOST_INVOCATIONS` of the drain) fit into an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Earlier {
    /// Lambda's id of it, which finds its receipt.
    pub request_id: String,
    /// When it began.
    pub from: Timestamp,
    /// When it handed on.
    pub to: Timestamp,
    /// The node, if the claim on it was this notice's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many pods came to which fate.
    pub pods: BTreeMap<String, usize>,
}

impl Earlier {
    /// How many of its pods came to that fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> usize {
        self.pods.get(fate.as_str()).copied().unwrap_or_default()
    }
}
