//! The claim annotation: event, notice and deadline of the claim, and the marks that the claim left on the node. Only these marks
//! may be removed. Pure.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spillway_notice::Kind;

pub const ANNOTATION: &str = "spillway/claim";

/// Characters that the API server escapes in its JSON, and their escapes. In our JSON these characters occur only in strings.
const ESCAPED: [(char, &str); 5] =
    [('&', "\\u0026"), ('<', "\\u003c"), ('>', "\\u003e"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimAnnotation {
    pub event: String,
    /// Lambda's request id of the invocation that holds the claim, equal for all attempts of a delivery.
    pub request: String,
    pub notice: String,
    /// Deadline of the drain; absent while a hook holds the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Start of the notice's work, by the clock that dates notices. If a notice that the instance runs is older than this start,
    /// the claim stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Data for other planned drains, if this drain is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// The claim cordoned the node. If `false`, the cordon is somebody else's and stays.
    pub cordoned: bool,
    /// Taints that the claim added, in kubectl's format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<String>,
    /// Id of the maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<String>,
    /// The node's boot id, if the claim is for a reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// Data that other planned drains of the zone read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub claimed: Timestamp,
    /// The drain is over, so other drains need not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
}

impl ClaimAnnotation {
    /// Claim for an event, without marks other than the cordon.
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

    /// Parses an annotation. `None`: unreadable, which counts as no claim.
    pub fn read(annotation: &str) -> Option<Self> {
        serde_json::from_str(annotation).ok()
    }

    /// Text of the annotation, with escapes for five characters. The API server escapes these characters too (Go's
    /// `encoding/json`), and a JSON-patch test compares bytes. Without the escapes, the test of a text with such a character, for
    /// example in a group's name, would always fail.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string(self).expect("an annotation is plain text and a flag");
        for (character, escape) in ESCAPED {
            text = text.replace(character, escape);
        }
        text
    }

    /// Copy of the annotation with a finished drain. `None`: the drain is not planned, or is over already.
    pub fn over(&self) -> Option<Self> {
        let pace = self.pace.as_ref().filter(|pace| !pace.over)?;
        Some(Self { pace: Some(Pace { over: true, ..pace.clone() }), ..self.clone() })
    }

    pub fn kind(&self) -> Option<Kind> {
        Kind::named(&self.notice)
    }

    /// Returns `true` if the other claim replaces this one, because its notice announces a worse fate of the instance.
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
