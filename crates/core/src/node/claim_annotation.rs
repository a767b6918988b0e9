//! Node annotation that records a claim: its event, and the marks to remove when the node is uncordoned. Pure.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spillway_notice::Kind;

pub const ANNOTATION: &str = "spillway/claim";

/// Characters that the API server escapes in JSON strings, and their escapes.
const ESCAPED: [(char, &str); 5] =
    [('&', "\\u0026"), ('<', "\\u003c"), ('>', "\\u003e"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimAnnotation {
    pub event: String,
    /// Request id of the Lambda invocation that holds the claim.
    pub request: String,
    pub notice: String,
    /// Time at which AWS takes the instance, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Time of the notice, or planned start of a postponed drain. An earlier start of the instance does not end the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Data for counting concurrent drains. The field is set only for planned maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// `true`: the claim cordoned the node. `false`: the node was cordoned before the claim, and stays cordoned.
    pub cordoned: bool,
    /// Taints that the claim added, as `key=value:effect`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<String>,
    /// Id of the scheduled maintenance, if the claim is for maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<String>,
    /// The node's boot id at the time of the claim, if the node will reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// Data about a drain for maintenance. Spillway uses the data to limit the number of concurrent drains in a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub claimed: Timestamp,
    /// The drain has ended and no longer counts toward the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
}

impl ClaimAnnotation {
    /// Creates a claim that only cordons the node.
    pub fn new(event: &str, request: &str, kind: Kind) -> Self {
        Self {
            event: event.to_owned(),
            request: request.to_owned(),
            notice: kind.as_str().to_owned(),
            until: None,
            since: None,
            pace: None,
            cordoned: true,
            taints: Vec::new(),
            maintenance: None,
            boot: None,
        }
    }

    /// Parses the annotation. `None`: the text is invalid, and counts as no claim.
    pub fn read(annotation: &str) -> Option<Self> {
        serde_json::from_str(annotation).ok()
    }

    /// Returns the JSON text without the characters that `Operations::test` cannot compare.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string(self).expect("an annotation is plain text and a flag");
        for (character, escape) in ESCAPED {
            text = text.replace(character, escape);
        }
        text
    }

    /// Returns a copy that records the end of the drain. Returns `None` if the drain is not for planned maintenance, or has
    /// already ended.
    pub fn over(&self) -> Option<Self> {
        let pace = self.pace.as_ref().filter(|pace| !pace.over)?;
        Some(Self { pace: Some(Pace { over: true, ..pace.clone() }), ..self.clone() })
    }

    pub fn kind(&self) -> Option<Kind> {
        Kind::named(&self.notice)
    }

    /// Returns `true` if `other` replaces this claim, because the notice of `other` is more severe.
    pub fn gives_way_to(&self, other: &Self) -> bool {
        self.kind().zip(other.kind()).is_some_and(|(own, others)| own.instance_fate() < others.instance_fate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_no_character_that_the_api_server_escapes() {
        let group = "blue & green <1>\u{2028}\u{2029}".to_owned();
        let pace = Pace { group: Some(group), claimed: Timestamp::UNIX_EPOCH, over: false };
        let claim = ClaimAnnotation { pace: Some(pace), ..ClaimAnnotation::new("e", "r", Kind::Maintenance) };
        let text = claim.text();
        assert!(!text.contains(['&', '<', '>', '\u{2028}', '\u{2029}']), "{text}");
        assert_eq!(ClaimAnnotation::read(&text), Some(claim));
    }
}
