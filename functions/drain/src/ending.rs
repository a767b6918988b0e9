//! How a notice ended, in a sentence. Pure.

use jiff::Timestamp;

use crate::decision::Reason;
use crate::drain::End;
use crate::failure::Failure;
use crate::interruption::InstanceId;
use crate::karpenter::HandedOver;
use crate::node::{Claim, How};
use crate::receipt::{Ending, Fate, Receipt};

/// An ending and its reason.
pub(crate) type Ended = (Ending, String);
/// The ending, or what went wrong.
pub(crate) type Outcome = Result<Ended, Failure>;

/// Nothing was to be done.
pub(crate) fn ignored(reason: &Reason) -> Ended {
    (Ending::Ignored, reason.to_string())
}

/// Nothing was done, because it is a dry run: what would have been.
pub(crate) fn would_have(done: &str) -> Ended {
    (Ending::Ignored, format!("dry run: would have {done}"))
}

/// Nothing was to be done but to give a hook the answer for such as it.
pub(crate) fn stranded(reason: &Reason, receipt: &Receipt) -> Ended {
    let hook = receipt.hook.as_ref().map(|hook| format!("; {hook}")).unwrap_or_default();
    (Ending::Ignored, format!("{reason}{hook}"))
}

/// A drain has come to its end.
pub(crate) fn drained(end: End, claim: &Claim, receipt: &Receipt) -> Outcome {
    let node = &claim.node;
    let (left, moved) = (receipt.count(Fate::Left), receipt.moved());
    match (end, &claim.how) {
        (End::Empty, How::First | How::CordonedByOthers | How::Again) => {
            Ok((Ending::Drained, format!("all {moved} pods that had to leave node {node} have gone")))
        }
        (End::Silent, How::First | How::CordonedByOthers | How::Again) => {
            let unconfirmed = receipt.count(Fate::Unconfirmed);
            let reason = format!(
                "node {node} has stopped answering: {moved} pods have gone, and {unconfirmed} that had to are not waited for"
            );
            Ok((Ending::Drained, reason))
        }
        (End::Empty | End::Silent, How::Joined { notice, event }) => {
            Ok((Ending::Joined, format!("node {node} was being drained for the {notice} {event}, and is empty")))
        }
        (End::Stopped, _) => {
            let reason = format!("the lifecycle hook waits no longer; {left} pods were still on node {node}");
            Ok((Ending::Ignored, reason))
        }
        (End::TimeUp, _) => Err(Failure::PodsLeft { node: node.clone(), left, all: left + moved }),
    }
}

/// The node is cordoned, and nothing else was asked for.
pub(crate) fn cordoned(node: &str) -> Ended {
    (Ending::Done, format!("node {node} is cordoned, and its pods stay: the settings ask for no more"))
}

/// Karpenter does the rest, or did it before. The node's name comes with it.
pub(crate) fn handed_over(handed: HandedOver) -> (String, Ended) {
    match handed {
        HandedOver::ToKarpenter { node, claim, until } => {
            let until = until.map_or_else(String::new, |until| format!(" by {until}"));
            let reason = format!("NodeClaim {claim} is deleted: Karpenter replaces node {node} and drains it{until}");
            (node, (Ending::Done, reason))
        }
        HandedOver::AlreadyLeaving { node, claim } => {
            let reason = format!("NodeClaim {claim} had been deleted before: Karpenter is taking node {node} away");
            (node, (Ending::Joined, reason))
        }
        HandedOver::NotKarpenters { node } => {
            let reason = Reason::NoNodeClaim(node.clone());
            (node, ignored(&reason))
        }
    }
}

/// The node of a launched instance can be used.
pub(crate) fn ready(node: &str) -> Ended {
    (Ending::Done, format!("node {node} is Ready: its launch hook is completed"))
}

/// Each instance of the notice gets an invocation of its own.
pub(crate) fn one_for_each(instances: usize) -> Ended {
    (Ending::Continued, format!("handed on, once for each of its instances: {instances}"))
}

/// Its time has not come: a schedule brings it back.
pub(crate) fn scheduled(instance: &InstanceId, starts: Timestamp, begins: Timestamp) -> Ended {
    let reason = format!("maintenance of {instance} begins at {starts}; its drain is scheduled for {begins}");
    (Ending::Continued, reason)
}

/// A dry run of the same. It names them, as many as fit into a line that people read.
pub(crate) fn would_have_told(instances: &[String]) -> Ended {
    const NAMED: usize = 20;
    let named = instances[..instances.len().min(NAMED)].join(", ");
    let more = match instances.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    would_have(&format!("handed on, once for each of its instances: {named}{more}"))
}

/// A later invocation goes on with what this one could not do.
pub(crate) fn continued(unfinished: &Failure) -> Ended {
    (Ending::Continued, format!("handed on to a later invocation: {unfinished}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_of_several_instances_names_them_and_counts_those_that_do_not_fit() {
        let instances: Vec<_> = (0..22).map(|n| format!("i-{n:08}")).collect();
        let (ending, reason) = would_have_told(&instances[..2]);
        assert_eq!(ending, Ending::Ignored);
        assert_eq!(reason, "dry run: would have handed on, once for each of its instances: i-00000000, i-00000001");
        assert!(would_have_told(&instances).1.ends_with("i-00000019 and 2 more"));
    }
}
