//! When hooks are answered: once, when the node is empty or its window over, and not left to their timeout.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::deadline::{VOLUME_WAIT, longest_wait};
use super::{Facts, Invariant, Verdict, Witness};
use crate::aws::{ActionResult, AfterHook};
use crate::fact::Fact;
use crate::lambda::AttemptId;
use crate::plan::{App, Command, Fault, NodeId, Side};

/// A hook whose longest wait is over is completed so soon after it.
const LATE: SignedDuration = SignedDuration::from_secs(20);
/// How long it takes until a drain sees that a kubelet is back: a watch tells of it three seconds late.
const SEEN_WITHIN: SignedDuration = SignedDuration::from_secs(5);

/// The hooks that were completed, and what is known of their nodes.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    completed: BTreeSet<(AttemptId, String)>,
    /// When each node was patched first.
    claimed: BTreeMap<NodeId, Timestamp>,
    /// The node of each pod with a volume.
    places: BTreeMap<String, NodeId>,
    /// When such a pod has left each node for the last time.
    left: BTreeMap<NodeId, Timestamp>,
    /// When the kubelet of each node came back: of one that does not answer no volume is awaited.
    back: BTreeMap<NodeId, Timestamp>,
    /// The nodes that a person has uncordoned.
    uncordoned: BTreeSet<NodeId>,
    /// The instances whose nodes are to be left alone, or were.
    opted_out: BTreeSet<String>,
}

impl Witness for Hooks {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::NodePatched { node, .. } => {
                self.claimed.entry(node.clone()).or_insert(facts.clock.now());
            }
            Fact::PodBound { uid, node, app } if facts.plan.apps[*app].has_volume => {
                self.places.insert(uid.clone(), node.clone());
            }
            Fact::PodGone { uid, .. } => {
                let node = self.places.get(uid);
                self.left.extend(node.map(|node| (node.clone(), facts.clock.now())));
            }
            Fact::KubeletReports { node } => {
                self.back.insert(node.clone(), facts.clock.now());
            }
            Fact::Person { command: Command::Uncordon | Command::Recordon, node, .. } => {
                self.uncordoned.insert(node.clone());
            }
            Fact::Person { command: Command::OptOut, instance, .. } => {
                self.opted_out.insert(instance.clone());
            }
            Fact::HookCompleted { by, token, waits } => {
                let is_first = self.completed.insert((*by, token.clone()));
                let is_excused = !facts.plan.is_well(Side::Aws);
                let is_first = verdict.excuses("completed again in an outage of AWS", is_first, is_excused);
                let is_real = !facts.plan.is_dry_run();
                verdict.holds(Invariant::DryRunTouchesNothing, is_real, || format!("{by} completes {token}"));
                let is_served = facts.node(*by).is_some_and(|node| facts.plan.serves(node.cluster));
                // While EC2 does not say whose the instance is, HooksWithoutNode says how its hook is answered.
                let is_served = verdict.excuses(
                    "completed in a cluster that is not served, in an outage of AWS",
                    is_served,
                    is_excused,
                );
                verdict.holds(Invariant::OwnCluster, is_served, || format!("{by} completes {token}"));
                verdict.holds(Invariant::HookOnce, is_first, || format!("{by} completes {token} again"));
                if *waits {
                    self.completes(*by, token, facts, verdict);
                }
            }
            Fact::Quiet { .. } => self.are_answered(facts, verdict),
            _ => {}
        }
    }
}

impl Hooks {
    fn completes(&mut self, by: AttemptId, token: &str, facts: &Facts<'_>, verdict: &mut Verdict) {
        let action = &facts.aws.actions()[token];
        let over = facts.clock.at(action.since) + longest_wait(facts.plan);
        let now = facts.clock.now();
        let is_over = now + facts.skew() + SignedDuration::from_secs(1) >= over;
        let could = over.max(facts.calm_since(by)).max(facts.lambda.attempt(by).began + facts.skew());
        let is_late = now > could + LATE;
        verdict.holds(Invariant::HookAnswered, !is_late, || format!("{by} completes {token}, which was due at {over}"));
        // What HooksWithoutNode says of a cluster that lets nobody in, or of which EKS tells nothing.
        let is_denied = [Side::Api, Side::Aws].iter().any(|side| facts.plan.has_fault(*side, Fault::Denied));
        let is_of_launch = action.after_hook == AfterHook::InService;
        if is_of_launch || is_over || !facts.clusters.reports(&action.instance) {
            return;
        }
        let node = facts.aws.node_of(&action.instance).expect("it has one");
        let left = self.that_have_to_leave(node, facts);
        let is_empty = verdict.excuses("completed as a hook without a node", left.is_empty(), is_denied);
        verdict.holds(Invariant::HookNotBeforeEmpty, is_empty, || {
            format!("{by} completes {token} while {left:?} are on {node}")
        });
        // The volume of a pod that may stay, or whose object outlasts it, is not waited for from the end of its object on.
        let is_plain = |app: &App| !app.has_volume || !(app.finalizer || app.tolerates);
        if !facts.plan.apps.iter().all(is_plain) || self.uncordoned.contains(node) {
            return;
        }
        let is_waited = self.left.get(node).is_none_or(|left| *left + VOLUME_WAIT <= now + facts.skew());
        let is_seen = self.back.get(node).is_none_or(|back| *back + SEEN_WITHIN <= now);
        let holds = is_waited || !is_seen || !facts.clusters.keeps_volumes(node);
        let holds = verdict.excuses("volumes not awaited where somebody is denied", holds, is_denied);
        verdict.holds(Invariant::VolumesAwaited, holds, || {
            format!("{by} completes {token} while a volume is attached to {node}")
        });
    }

    /// The pods of a node that have to leave it, and have been there for a while.
    fn that_have_to_leave<'a>(&self, node: &'a NodeId, facts: &Facts<'a>) -> Vec<&'a str> {
        let seen = facts.clock.now() - SignedDuration::from_secs(10);
        let claimed = self.claimed.get(node).copied().unwrap_or(Timestamp::MAX);
        let leave = facts.clusters.pods_on(node).filter(|pod| {
            let app = &facts.plan.apps[pod.app];
            let returns = app.tolerates || self.uncordoned.contains(node);
            let is_returned = returns && pod.created >= claimed - SignedDuration::from_secs(5);
            let is_returned = is_returned || facts.plan.may_stay_open();
            let stays = app.stays() || pod.has_stopped || is_returned;
            !stays && pod.created < seen
        });
        leave.map(|pod| pod.uid.as_str()).collect()
    }

    fn are_answered(&self, facts: &Facts<'_>, verdict: &mut Verdict) {
        let is_off = facts.plan.setting("SPILLWAY_MANAGED_NODE_GROUPS") == Some("off");
        let launches_are_ignored = facts.plan.setting("SPILLWAY_LAUNCH") == Some("off");
        for (token, action) in facts.aws.actions() {
            let is_ours = action.after_hook != AfterHook::InService || !launches_are_ignored;
            let node = facts.aws.node_of(&action.instance).expect("it has one");
            let is_left = facts.plan.is_dry_run()
                || !facts.plan.serves(node.cluster)
                || self.opted_out.contains(&action.instance)
                || (is_off && facts.plan.is_managed(&action.instance));
            let is_answered = action.result != Some(ActionResult::Expired) || !is_ours || is_left;
            let is_out = !facts.plan.is_well(Side::Aws);
            let is_denied = facts.plan.has_fault(Side::Api, Fault::Denied);
            let is_killed = facts.lambda.about(&action.instance).any(|attempt| attempt.is_killed);
            let holds = verdict.excuses("a hook expires in an outage of AWS", is_answered, is_out)
                || verdict.excuses("a hook expires in a cluster that lets nobody in", is_answered, is_denied)
                || verdict.excuses("a hook expires whose drain was killed", is_answered, is_killed);
            verdict.holds(Invariant::HookAnswered, holds, || format!("{token} was left to its timeout"));
        }
    }
}
