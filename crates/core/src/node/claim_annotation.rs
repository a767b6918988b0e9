//! The annotation: the annotation that says who claimed the node, for what, until when, and what they left on
//! it. What it does not name is not ours to take away. Pure.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spillway_notice::Kind;

/// The annotation's name.
pub const ANNOTATION: &str = "spillway/claim";

/// What the annotation holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimAnnotation {
    /// The id of the event that made the claim.
    pub event: String,
    /// The invocation that holds it: Lambda's request id, the same for all attempts at a delivery.
    pub request: String,
    /// The kind of notice.
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
    /// The maintenance that it is claimed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<String>,
    /// The node's boot id, if the claim is for a reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// What other drains need to know of one that may have to give way, or they to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// The Auto Scaling group of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// When the node was claimed.
    pub claimed: Timestamp,
    /// Whether nothing is evicted, so that others need not wait for it: it waits for its own turn, or is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
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

    /// As the annotation holds it.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("an annotation is plain text and a flag")
    }

    /// The same with a drain that is idle or is not; `None`: it says so already, or nobody waits for that.
    pub fn with_idle(&self, idle: bool) -> Option<Self> {
        let pace = self.pace.as_ref().filter(|pace| pace.idle != idle)?;
        Some(Self { pace: Some(Pace { idle, ..pace.clone() }), ..self.clone() })
    }

    /// Whether a claim of the same instance leaves no time to wait for a turn.
    pub fn allows_no_wait(&self) -> bool {
        self.pace.is_none() && (self.until.is_some() || self.kind().is_some_and(|kind| !kind.may_be_called_off()))
    }

    /// The kind of notice, if it is one that we know.
    pub fn kind(&self) -> Option<Kind> {
        Kind::named(&self.notice)
    }

    /// Whether another claim is for something that leaves less of the node, or begins now while this one waits for its turn.
    pub fn gives_way_to(&self, other: &Self) -> bool {
        let is_idle = self.pace.as_ref().is_some_and(|pace| pace.idle);
        match (self.kind(), other.kind()) {
            (Some(own), Some(others)) => {
                let goes_now = other.pace.is_none() && !others.may_be_called_off();
                own.instance_fate() < others.instance_fate() || (is_idle && goes_now)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim for that, which takes its turn if `idle` says whether it waits for it.
    fn claim(kind: Kind, idle: Option<bool>) -> ClaimAnnotation {
        let pace = idle.map(|idle| Pace { group: None, claimed: Timestamp::UNIX_EPOCH, idle });
        ClaimAnnotation { pace, ..ClaimAnnotation::new("e", "r", kind) }
    }

    #[test]
    fn a_claim_that_waits_for_its_turn_gives_way_to_one_whose_instance_goes_now() {
        let (waits, goes_on) = (claim(Kind::Terminate, Some(true)), claim(Kind::Terminate, Some(false)));
        let now = claim(Kind::Spot, None);
        assert!(waits.gives_way_to(&now));
        assert!(!goes_on.gives_way_to(&now));
        assert!(!waits.gives_way_to(&claim(Kind::Spot, Some(false))), "it may have to wait too");
        assert!(!waits.gives_way_to(&claim(Kind::Rebalance, None)), "the instance may stay");
    }

    #[test]
    fn a_claim_without_a_turn_leaves_no_time_to_wait_if_it_ends_or_its_instance_goes() {
        let ends = |claim| ClaimAnnotation { until: Some(Timestamp::UNIX_EPOCH), ..claim };
        assert!(claim(Kind::Spot, None).allows_no_wait());
        assert!(ends(claim(Kind::Rebalance, None)).allows_no_wait());
        assert!(!claim(Kind::Rebalance, None).allows_no_wait(), "it may be called off");
        assert!(!ends(claim(Kind::Terminate, Some(false))).allows_no_wait(), "it has a turn");
    }
}
