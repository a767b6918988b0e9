//! The pace of planned maintenance, where a plan has nothing else: five nodes drain at once, each before its time, and no pod has less
//! grace than without a pace.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;
use crate::plan::NodeId;

/// How many nodes may drain at once.
const LIMIT: usize = 5;
/// What the pace leaves before the start, beside twice the grace of the pods.
const RESERVE: Duration = Duration::from_secs(601);

/// The nodes whose drain has begun.
#[derive(Debug, Default)]
pub(super) struct Pace {
    begun: BTreeSet<NodeId>,
}

impl Witness for Pace {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        let Some((starts_after, lead)) = facts.plan.planned() else { return };
        match fact {
            Fact::LeaveRequested { request, .. } => {
                let grace_s = facts.plan.apps[0].grace_s;
                let needs = Duration::from_secs(2 * grace_s) + RESERVE;
                self.begun.extend(request.uid.as_deref().and_then(|uid| facts.clusters.place_of(uid)));
                let is_going_on = |node: &&NodeId| facts.clusters.pods_on(node).next().is_some();
                let going_on: Vec<_> = self.begun.iter().filter(is_going_on).collect();
                let is_over = starts_after.saturating_sub(needs) <= facts.clock.elapsed();
                verdict.holds(Invariant::PaceIsKept, is_over || going_on.len() <= LIMIT, || {
                    format!("drained at once: {going_on:?}")
                });
                let is_whole = lead < needs || request.grace_s.is_none_or(|given| grace_s <= given);
                verdict.holds(Invariant::PaceIsKept, is_whole, || {
                    format!("{} has {:?} of {grace_s} s", request.name, request.grace_s)
                });
            }
            Fact::InstanceState { instance, state: "shutting-down" } => {
                let node = facts.aws.node_of(instance).expect("it has one");
                let left = facts.clusters.pods_on(node).count();
                verdict.holds(Invariant::PaceIsKept, left == 0, || format!("{left} pods are left on {node}"));
            }
            Fact::Quiet { .. } => {
                let expected = facts.plan.interruptions.len();
                verdict.holds(Invariant::PaceIsKept, self.begun.len() == expected, || {
                    format!("{} nodes of {expected} were drained", self.begun.len())
                });
            }
            _ => {}
        }
    }
}
