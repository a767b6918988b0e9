//! Scope of an invocation: the cluster, node and pods of its instance, unless the node is left alone.

use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;
use crate::lambda::AttemptId;
use crate::plan::{CLUSTERS, Side};

#[derive(Debug, Default)]
pub(super) struct Scope;

impl Witness for Scope {
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::WriteArrives { by, cluster } => {
                let node = facts.node(*by);
                let is_own = node.is_some_and(|node| node.cluster == *cluster) && facts.plan.serves(*cluster);
                verdict.check(Invariant::OwnScope, is_own, || {
                    format!("{by} of {node:?} writes to {}", CLUSTERS[*cluster])
                });
            }
            Fact::NodePatched { by, node, .. } => {
                let own = facts.node(*by);
                verdict.check(Invariant::OwnScope, own == Some(node), || format!("{by} of {own:?} patches {node}"));
                left_alone(*by, facts, verdict);
            }
            Fact::LeaveRequested { by, request } => {
                let uid = request.uid.as_deref().unwrap_or_default();
                let instance = facts.past.pods.get(uid).map(|pod| &*pod.instance);
                let is_own = instance.is_some() && instance == facts.instance(*by);
                // The owner of a pod is unknown after its node has gone.
                let has_gone = facts.clusters.place_of(uid).is_some_and(|node| facts.clusters.node(&node).is_none());
                let is_own = verdict.excuse("a successor's pod whose node has gone too", is_own, has_gone);
                verdict.check(Invariant::OwnScope, is_own, || {
                    format!("{by} of {:?} requests {request:?} of {instance:?}", facts.instance(*by))
                });
                left_alone(*by, facts, verdict);
            }
            Fact::HookCompleted { by, token, .. } => {
                let is_served = facts.node(*by).is_some_and(|node| facts.plan.serves(node.cluster));
                // HooksWithoutNode decides while EC2 does not return the tags of the instance.
                let excuse = "completed in a cluster that is not served, in an outage of AWS";
                let is_served = verdict.excuse(excuse, is_served, !facts.plan.is_well(Side::Aws));
                verdict.check(Invariant::OwnScope, is_served, || format!("{by} completes {token}"));
                verdict.check(Invariant::LeftAlone, !facts.plan.is_dry_run(), || format!("{by} completes {token}"));
            }
            _ => {}
        }
    }
}

fn left_alone(by: AttemptId, facts: &Facts<'_>, verdict: &mut Verdict) {
    let instance = facts.instance(by).unwrap_or_default();
    let began = facts.lambda.attempt(by).began;
    // A drain that has begun goes on.
    let is_opted_out = facts.past.instance(instance).opted_out.is_some_and(|at| at + facts.skew() < began);
    let is_left =
        facts.plan.is_dry_run() || is_opted_out || facts.plan.is_karpenters(instance) || facts.is_left_to_eks(by);
    verdict.check(Invariant::LeftAlone, !is_left, || format!("{by} changes the node or a pod of {instance}"));
}
