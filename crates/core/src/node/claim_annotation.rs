//! The annotation: the annotation that says who claimed the node, for what, until when, and what they left on
//! it. What it does not name is not ours to take away. Pure.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spillway_notice::Kind;

pub const ANNOTATION: &str = "spillway/claim";

/// The characters that the API server escapes in its JSON, and their escapes. In our JSON they stand only in strings.
const ESCAPED: [(char, &str); 5] =
    [('&', "\\u0026"), ('<', "\\u003c"), ('>', "\\u003e"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimAnnotation {
    pub event: String,
    /// The invocation that holds it: Lambda's request id, the same for all attempts at a delivery.
    pub request: String,
    pub notice: String,
    /// The deadline; absent while a hook holds the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// From when on the instance was to go, by the clock that dates notices: an older notice that it runs is about a time
    /// before the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Its place among the drains that wait for one another, if it is one of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Whether it was we who cordoned the node: only then may we uncordon it.
    pub cordoned: bool,
    /// The taints that we put on it, as kubectl writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<String>,
    /// The node's boot id, if the claim is for a reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// What other drains need to know of one that may have to give way, or they to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub claimed: Timestamp,
    /// Whether the drain is over, so that others need not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
}

impl ClaimAnnotation {
    /// A claim of that event for such a notice, which cordons the node and does nothing else.
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

    /// The annotation in an annotation; one that cannot be read counts as none.
    pub fn read(annotation: &str) -> Option<Self> {
        serde_json::from_str(annotation).ok()
    }

    /// The text of the annotation. The API server writes these five characters as escapes (Go's `encoding/json`) and compares the
    /// bytes of texts in a JSON patch test. A text that has them, such as a group's name, would never pass one.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string(self).expect("an annotation is plain text and a flag");
        for (character, escape) in ESCAPED {
            text = text.replace(character, escape);
        }
        text
    }

    /// The same with a drain that is over. `None`: the claim has no pace, or says so already.
    pub fn over(&self) -> Option<Self> {
        let pace = self.pace.as_ref().filter(|pace| !pace.over)?;
        Some(Self { pace: Some(Pace { over: true, ..pace.clone() }), ..self.clone() })
    }

    /// The kind of notice, if it is one that we know.
    pub fn kind(&self) -> Option<Kind> {
        Kind::named(&self.notice)
    }

    /// Whether another claim is for something that leaves less of the node.
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
