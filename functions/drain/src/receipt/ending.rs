//! How a notice ended, in a sentence. Pure.

use jiff::Timestamp;
use spillway_eks::ClusterName;

use crate::aws::instance::Instance;
use crate::decision::Reason;
use crate::drain::{DrainEnd, StopReason};
use crate::failure::Failure;
use crate::node::node_claim::HandedOver;
use crate::node::uncordon::{NotYet, UncordonCause, UncordonResult};
use crate::node::{Claim, How};
use crate::notice::{Deadline, InstanceId, Kind, Notice};
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

/// A drain has not come to its end.
pub(crate) fn not_yet(node: &str, kind: Kind) -> String {
    format!("node {node} is being drained for the {}", kind.as_str())
}

/// A drain has come to its end.
pub(crate) fn drained(end: DrainEnd, claim: &Claim, receipt: &Receipt) -> Outcome {
    let node = &claim.node;
    let (left, moved) = (receipt.count(Fate::Left), receipt.moved());
    match (end, &claim.how) {
        (DrainEnd::Empty, How::First | How::CordonedByOthers | How::Again) => {
            Ok((Ending::Drained, format!("all {moved} pods that had to leave node {node} have gone")))
        }
        (DrainEnd::Silent, How::First | How::CordonedByOthers | How::Again) => {
            let unconfirmed = receipt.count(Fate::Unconfirmed);
            let reason = format!(
                "node {node} has stopped answering: {moved} pods have gone, and {unconfirmed} that had to are not waited for"
            );
            Ok((Ending::Drained, reason))
        }
        (DrainEnd::Empty | DrainEnd::Silent, How::Joined { notice, event }) => {
            Ok((Ending::Joined, format!("node {node} was being drained for the {notice} {event}, and is empty")))
        }
        (DrainEnd::Stopped(StopReason::GivenBack), _) => Ok(ignored(&Reason::GivenBack(node.clone()))),
        (DrainEnd::Stopped(StopReason::HookIsOver), _) if receipt.pods.is_empty() => {
            let reason = format!("the lifecycle hook waits no longer; the pods of node {node} had not been listed");
            Ok((Ending::Ignored, reason))
        }
        (DrainEnd::Stopped(StopReason::HookIsOver), _) => {
            let reason = format!("the lifecycle hook waits no longer; {left} pods were still on node {node}");
            Ok((Ending::Ignored, reason))
        }
        (DrainEnd::TimeUp, _) => Err(Failure::PodsLeft { node: node.clone(), left, all: left + moved }),
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

/// So can one that was taken out for its root volume; and what became of that.
pub(crate) fn ready_again(node: &str, (_, undone): Ended) -> Ended {
    let (ending, ready) = ready(node);
    (ending, format!("{ready}; {undone}"))
}

/// Each instance of the notice gets an invocation of its own.
pub(crate) fn one_for_each(instances: usize) -> Ended {
    (Ending::Continued, format!("handed on, once for each of its instances: {instances}"))
}

/// Its time has not come: a schedule brings it back.
pub(crate) fn scheduled(notice: &Notice, begins: Timestamp, undone: &UncordonResult) -> Ended {
    let instance = &notice.instance;
    let starts = match notice.deadline {
        Deadline::Hard(starts) => format!(" begins at {starts}"),
        Deadline::HeldByHook | Deadline::Open => String::new(),
    };
    let given_back = match undone {
        UncordonResult::GivenBack { node } => {
            format!("; node {node}, which was drained for it, is given back until then")
        }
        _ => String::new(),
    };
    let reason = format!("maintenance of {instance}{starts}; its drain is scheduled for {begins}{given_back}");
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

/// What became of a node that was to be given back.
pub(crate) fn undone(undone: UncordonResult, over: &UncordonCause, cluster: ClusterName, instance: &Instance) -> Ended {
    match undone {
        UncordonResult::GivenBack { node } => (Ending::Done, format!("node {node} is given back to use: {over}")),
        UncordonResult::LeftAlone { node, why } => {
            (Ending::Done, format!("nothing of ours is left on node {node}: {over}; {why}"))
        }
        UncordonResult::NotReadyYet { node, why } => (Ending::Ignored, format!("node {node} is not given back: {why}")),
        UncordonResult::OptedOut { node } => ignored(&Reason::OptedOut(node)),
        UncordonResult::Held { node, notice, event } => {
            (Ending::Ignored, format!("node {node} is not given back: it is claimed for the {notice} {event}"))
        }
        UncordonResult::NotOurs { node } => (Ending::Ignored, format!("node {node} is none that we took out of use")),
        UncordonResult::NoNode => ignored(&Reason::NoNode { cluster, provider_id: instance.provider_id() }),
    }
}

/// What was scheduled is not done; and what became of the node.
pub(crate) fn called_off(instance: &InstanceId, (_, node): Ended) -> Ended {
    (Ending::Done, format!("the drain of {instance} that was scheduled is called off; {node}"))
}

/// The node has not come back: a schedule has it looked for again.
pub(crate) fn looked_for_again(node: &str, why: NotYet, at: Timestamp) -> Ended {
    (Ending::Continued, format!("node {node} is not given back yet: {why}; it is looked for again at {at}"))
}

/// The node is declared out of service.
pub(crate) fn out_of_service(node: &str) -> Ended {
    let reason = format!("node {node} is declared out of service: its instance is down, and it is not Ready");
    (Ending::Done, reason)
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
