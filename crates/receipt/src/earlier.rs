//! Summary of an earlier invocation for the same notice.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Fate;

/// Summary of an earlier invocation. The earlier invocation has its own receipt.
//  About 300 bytes. An event has room for 199 summaries, the maximum of a drain (`MOST_INVOCATIONS`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Earlier {
    /// Lambda's request id.
    pub request_id: String,
    /// Start of the invocation.
    pub from: Timestamp,
    /// End of the invocation.
    pub to: Timestamp,
    /// Name of the node, if the node was claimed for this notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Number of pods by fate.
    pub pods: BTreeMap<String, usize>,
}

impl Earlier {
    /// Returns the number of pods with the fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> usize {
        self.pods.get(fate.as_str()).copied().unwrap_or_default()
    }
}
