//! Pace of planned maintenance, in plans with nothing else: five nodes drain at once, each before its time, with whole graces.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;
use crate::plan::NodeId;

/// Most drains at once.
const LIMIT: usize = 5;
/// Time that the pace leaves before the start, besides twice the grace of the pods.
const RESERVE: Duration = Duration::from_secs(601);

#[derive(Debug, Default)]
pub(super) struct Pace {
    begun: BTreeSet<NodeId>,
}

impl Witness for Pace {
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        let Some((starts_after, lead)) = facts.plan.planned() else { return };
        match fact {
            Fact::LeaveRequested { request, .. } => {
                let grace_s = facts.plan.apps[0].grace_s;
                let needs = Duration::from_secs(2 * grace_s) + RESERVE;
                self.begun.extend(request.uid.as_deref().and_then(|uid| facts.clusters.place_of(uid)));
                let has_pods = |node: &&NodeId| facts.clusters.pods_on(node).next().is_some();
                let at_once: Vec<_> = self.begun.iter().filter(has_pods).collect();
                let is_over = starts_after.saturating_sub(needs) <= facts.clock.elapsed();
                verdict.check(Invariant::PaceIsKept, is_over || at_once.len() <= LIMIT, || {
                    format!("drained at once: {at_once:?}")
                });
                let is_whole = lead < needs || request.grace_s.is_none_or(|given| grace_s <= given);
                verdict.check(Invariant::PaceIsKept, is_whole, || {
                    format!("{} has {:?} of {grace_s} s", request.name, request.grace_s)
                });
            }
            Fact::InstanceState { instance, state: "shutting-down" } => {
                let node = facts.aws.node_of(instance).expect("an instance has a node");
                let left = facts.clusters.pods_on(node).count();
                verdict.check(Invariant::PaceIsKept, left == 0, || format!("{left} pods are left on {node}"));
            }
            Fact::Quiet { .. } => {
                let (begun, expected) = (self.begun.len(), facts.plan.interruptions.len());
                verdict
                    .check(Invariant::PaceIsKept, begun == expected, || format!("{begun} of {expected} nodes drained"));
            }
            _ => {}
        }
    }
}
