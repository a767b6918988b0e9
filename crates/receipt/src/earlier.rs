//! The invocations that worked on a notice before: they stand in its receipt, and in the event that hands a drain on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

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
    #[serde(deserialize_with = "by_fate")]
    pub pods: BTreeMap<String, usize>,
}

/// Reads how many pods came to which fate. An invocation of 0.1, which may hand a drain on to this version, calls those that
/// remain `left`.
//  For one version: with the one after 0.2 nobody writes that any more.
fn by_fate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, usize>, D::Error> {
    let mut pods = BTreeMap::<String, usize>::deserialize(deserializer)?;
    if let Some(left) = pods.remove("left") {
        let remaining = pods.entry(Fate::Remaining.as_str().to_owned()).or_default();
        *remaining = remaining.saturating_add(left);
    }
    Ok(pods)
}

impl Earlier {
    /// How many of its pods came to that fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> usize {
        self.pods.get(fate.as_str()).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_invocation_of_0_1_left_remains() {
        let written = json!({
            "request_id": "r-1", "from": "2026-11-21T03:12:00Z", "to": "2026-11-21T03:26:00Z",
            "pods": {"clean": 12, "left": 2},
        });
        let earlier: Earlier = serde_json::from_value(written).expect("an earlier invocation");
        assert_eq!(earlier.pods, [("clean".to_owned(), 12), ("remaining".to_owned(), 2)].into());
        assert_eq!((earlier.count(Fate::Remaining), earlier.count(Fate::Lost)), (2, 0));
    }

    #[test]
    fn more_pods_than_a_number_holds_are_as_many_as_it_holds() {
        let written = json!({
            "request_id": "r-1", "from": "2026-11-21T03:12:00Z", "to": "2026-11-21T03:26:00Z",
            "pods": {"left": u64::MAX, "remaining": 1},
        });
        let earlier: Earlier = serde_json::from_value(written).expect("an earlier invocation");
        assert_eq!(earlier.count(Fate::Remaining), usize::MAX);
    }
}
