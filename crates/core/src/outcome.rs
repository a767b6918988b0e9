//! Result of an invocation, and the sentence about the result in the receipt. Pure.

mod drain;
mod uncordon;

use std::fmt;

use jiff::Timestamp;
use spillway_notice::{InstanceId, Kind};
use spillway_receipt::{Ending, HookRecord, HookState};

use crate::decision::Reason;
use crate::node::node_claim::HandedOver;
use crate::node::pace::OtherDrains;
use crate::node::uncordon::UncordonResult;
pub use drain::DrainOutcome;
pub use uncordon::UncordonOutcome;

/// Result of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Drain(DrainOutcome),
    /// The node is cordoned, and the settings require no drain.
    Cordoned {
        node: String,
    },
    /// Result of deleting the node's `NodeClaim`, so that Karpenter drains the node.
    HandedOver(HandedOver),
    /// The node became Ready `after_s` seconds after the launch notice. `uncordoned` has the result of the uncordon, if any.
    Ready {
        node: String,
        after_s: i64,
        uncordoned: Option<UncordonOutcome>,
    },
    Uncordon(UncordonOutcome),
    /// The scheduled drain is called off. `node` has the result of the uncordon.
    CalledOff {
        instance: InstanceId,
        node: UncordonOutcome,
    },
    /// The drain is postponed until `begins`, when a schedule delivers the notice again.
    Postponed {
        instance: InstanceId,
        starts: Option<Timestamp>,
        begins: Timestamp,
        gives_way_to: Option<OtherDrains>,
        uncordoned: UncordonResult,
    },
    /// Each instance of the notice gets its own invocation.
    OneForEach {
        instances: usize,
        left_out: usize,
    },
    /// EC2's scheduled events were read. `named` is the number of events for nodes. `missing` lists the instances for which
    /// no drain is scheduled.
    MaintenanceLookedUp {
        named: usize,
        missing: Vec<String>,
    },
    /// The node has the out-of-service taint.
    OutOfService {
        node: String,
    },
    /// A later invocation continues the unfinished work.
    Continued {
        unfinished: String,
    },
    /// The hook was completed, because the instance has no node to drain or to wait for.
    NotANode {
        reason: Reason,
    },
    /// Description of the action that Spillway would take without the dry run.
    WouldHave(String),
    /// The settings exclude the notice. Spillway has made no AWS call for the notice.
    LeftToOthers(Reason),
    Ignored(Reason),
}

impl From<DrainOutcome> for Outcome {
    fn from(drain: DrainOutcome) -> Self {
        Self::Drain(drain)
    }
}

impl From<UncordonOutcome> for Outcome {
    fn from(uncordon: UncordonOutcome) -> Self {
        Self::Uncordon(uncordon)
    }
}

impl Outcome {
    pub fn ending(&self) -> Ending {
        match self {
            Self::Drain(drain) => drain.ending(),
            Self::Uncordon(uncordon) => uncordon.ending(),
            Self::HandedOver(HandedOver::AlreadyLeaving { .. }) => Ending::Joined,
            Self::Cordoned { .. }
            | Self::HandedOver(HandedOver::ToKarpenter { .. })
            | Self::Ready { .. }
            | Self::CalledOff { .. }
            | Self::OutOfService { .. } => Ending::Done,
            Self::MaintenanceLookedUp { missing, .. } if missing.is_empty() => Ending::Ignored,
            Self::MaintenanceLookedUp { .. }
            | Self::Postponed { .. }
            | Self::OneForEach { .. }
            | Self::Continued { .. } => Ending::Continued,
            Self::HandedOver(HandedOver::NotKarpenters { .. } | HandedOver::OfAnother { .. })
            | Self::NotANode { .. }
            | Self::WouldHave(_)
            | Self::LeftToOthers(_)
            | Self::Ignored(_) => Ending::Ignored,
        }
    }

    /// Returns `true` if metrics omit the outcome, for example because the instance is in no cluster that Spillway handles.
    pub fn is_uncounted(&self) -> bool {
        match self {
            Self::MaintenanceLookedUp { .. } => true,
            Self::Ignored(reason) | Self::Uncordon(UncordonOutcome::Ignored(reason)) => reason.is_not_ours(),
            _ => false,
        }
    }

    /// Returns the sentence for the receipt. If the notice is ignored, the sentence includes the state of the notice's
    /// hook.
    pub fn reason(&self, hook: Option<&HookRecord>) -> String {
        match (self, hook) {
            (Self::NotANode { .. }, Some(hook)) => format!("{self}; {hook}"),
            (Self::LeftToOthers(_), _) => self.to_string(),
            (outcome, Some(hook)) if outcome.ending() == Ending::Ignored && hook.state == HookState::Left => {
                format!("{outcome}; its {hook}")
            }
            (outcome, _) => outcome.to_string(),
        }
    }
}

pub fn not_yet(node: &str, kind: Kind) -> String {
    format!("node {node} is being drained for the {}", kind.as_str())
}

/// Returns the number of pods: "1 pod", "2 pods".
pub fn pods(count: usize) -> String {
    format!("{count} pod{}", if count == 1 { "" } else { "s" })
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drain(drain) => write!(f, "{drain}"),
            Self::Cordoned { node } => {
                write!(f, "node {node} is cordoned, and its pods stay: the settings ask for no more")
            }
            Self::HandedOver(handed) => handed_over(handed, f),
            Self::Ready { node, after_s, uncordoned } => {
                write!(f, "node {node} is Ready after {after_s} s: its launch hook is completed")?;
                uncordoned.as_ref().map_or(Ok(()), |uncordoned| write!(f, "; {uncordoned}"))
            }
            Self::Uncordon(uncordon) => write!(f, "{uncordon}"),
            Self::CalledOff { instance, node } => {
                write!(f, "the drain of {instance} that was scheduled is called off; {node}")
            }
            Self::Postponed { instance, starts, begins, gives_way_to, uncordoned } => {
                write!(f, "maintenance of {instance}")?;
                starts.map_or(Ok(()), |starts| write!(f, " begins at {starts}"))?;
                postponed(*begins, *gives_way_to, uncordoned, f)
            }
            Self::OneForEach { instances, left_out } => {
                write!(f, "handed on, once for each of its instances: {instances}")?;
                if *left_out > 0 { write!(f, "; it names {left_out} more, which are left out") } else { Ok(()) }
            }
            Self::MaintenanceLookedUp { named, missing } => {
                write!(
                    f,
                    "scheduled maintenance events of nodes in EC2: {named}; without a schedule: {}",
                    missing.len()
                )?;
                if missing.is_empty() { Ok(()) } else { write!(f, ", handed on now: {}", first_few(missing)) }
            }
            Self::OutOfService { node } => {
                write!(f, "node {node} is declared out of service: its instance is down, and it is not Ready")
            }
            Self::Continued { unfinished } => write!(f, "handed on to a later invocation: {unfinished}"),
            Self::WouldHave(done) => write!(f, "dry run: would have {done}"),
            Self::LeftToOthers(reason) | Self::Ignored(reason) | Self::NotANode { reason } => write!(f, "{reason}"),
        }
    }
}

fn postponed(
    begins: Timestamp,
    gives_way_to: Option<OtherDrains>,
    uncordoned: &UncordonResult,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match gives_way_to {
        Some(others) => write!(f, "; its drain is postponed until {begins}, because {others}")?,
        None => write!(f, "; its drain is scheduled for {begins}")?,
    }
    match (uncordoned, gives_way_to) {
        (UncordonResult::GivenBack { node }, None) => {
            write!(f, "; node {node}, which was drained for it, is given back until then")
        }
        (UncordonResult::GivenBack { node }, Some(_)) => write!(f, "; node {node} is given back until then"),
        _ => Ok(()),
    }
}

fn handed_over(handed: &HandedOver, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match handed {
        HandedOver::ToKarpenter { node, claim, until } => {
            write!(f, "NodeClaim {claim} is deleted: Karpenter replaces node {node} and drains it")?;
            until.map_or(Ok(()), |until| write!(f, " by {until}"))
        }
        HandedOver::AlreadyLeaving { node, claim } => {
            write!(f, "NodeClaim {claim} had been deleted before: Karpenter is taking node {node} away")
        }
        HandedOver::NotKarpenters { node } => write!(f, "{}", Reason::NoNodeClaim(node.clone())),
        HandedOver::OfAnother { node, claim, provider_id } => {
            let names = provider_id.as_deref().unwrap_or("no instance").to_owned();
            write!(f, "{}", Reason::NodeClaimOfAnother { node: node.clone(), claim: claim.clone(), names })
        }
    }
}

/// Returns the outcome of a dry run for a notice that names several instances.
pub fn would_have_fanned_out(instances: &[String]) -> Outcome {
    Outcome::WouldHave(format!("handed on, once for each of its instances: {}", first_few(instances)))
}

fn first_few(instances: &[String]) -> String {
    const NAMED: usize = 20;
    let named = instances[..instances.len().min(NAMED)].join(", ");
    match instances.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_of_an_ignored_notice_names_its_open_hook() {
        let hook = |state| HookRecord {
            group: "workers".to_owned(),
            name: "spillway".to_owned(),
            state,
            result: None,
            heartbeats_ms: Vec::new(),
        };
        let (left, held) = (hook(HookState::Left), hook(HookState::Held));
        let reason = || Reason::OptedOut("n-1".to_owned());
        let cordoned = Outcome::Cordoned { node: "n-1".to_owned() };
        for (outcome, hook, sentence) in [
            (Outcome::Ignored(reason()), Some(&left), format!("{}; its {left}", reason())),
            (Outcome::Ignored(reason()), Some(&held), reason().to_string()),
            (Outcome::Ignored(reason()), None, reason().to_string()),
            (cordoned.clone(), Some(&left), cordoned.to_string()),
            (Outcome::LeftToOthers(reason()), Some(&left), reason().to_string()),
            (Outcome::NotANode { reason: reason() }, Some(&held), format!("{}; {held}", reason())),
        ] {
            assert_eq!(outcome.reason(hook), sentence);
        }
    }

    #[test]
    fn lookup_without_missing_maintenance_is_ignored() {
        let looked_up = |missing: &[&str]| Outcome::MaintenanceLookedUp {
            named: 3,
            missing: missing.iter().map(|id| (*id).to_owned()).collect(),
        };
        assert_eq!(looked_up(&[]).ending(), Ending::Ignored);
        assert_eq!(looked_up(&["i-1", "i-2"]).ending(), Ending::Continued);
    }
}
