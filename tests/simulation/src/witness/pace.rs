//! How many nodes are drained for maintenance at once, where a plan says how many may be.

use std::collections::BTreeSet;

use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;
use crate::plan::NodeId;

/// The nodes whose drain has begun.
#[derive(Debug, Default)]
pub(super) struct Pace {
    begun: BTreeSet<NodeId>,
}

impl Witness for Pace {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        let at_once = facts.plan.setting("SPILLWAY_MAINTENANCE_AT_ONCE").and_then(|at_once| at_once.parse().ok());
        let Some(at_once) = at_once else { return };
        match fact {
            Fact::LeaveRequested { request, .. } => {
                self.begun.extend(request.uid.as_deref().and_then(|uid| facts.clusters.place_of(uid)));
                let is_going_on = |node: &&NodeId| facts.clusters.pods_on(node).next().is_some();
                let going_on: Vec<_> = self.begun.iter().filter(is_going_on).collect();
                verdict.holds(Invariant::PaceIsKept, going_on.len() <= at_once, || {
                    format!("drained at once: {going_on:?}")
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
