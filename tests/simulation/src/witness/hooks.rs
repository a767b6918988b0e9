//! When hooks are answered: once, when the node is empty or its window over, and not left to their timeout.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::deadline::longest_wait;
use super::{Facts, Invariant, Verdict, Witness};
use crate::aws::{ActionResult, AfterHook};
use crate::fact::Fact;
use crate::lambda::AttemptId;
use crate::plan::{Command, Fault, Side};

/// A hook whose longest wait is over is completed so soon after it.
const LATE: SignedDuration = SignedDuration::from_secs(20);

/// The hooks that were completed, and what is known of their nodes.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    completed: BTreeSet<(AttemptId, String)>,
    /// When each node was patched first.
    claimed: BTreeMap<String, Timestamp>,
    /// The nodes that a person has uncordoned.
    uncordoned: BTreeSet<String>,
    /// The instances whose nodes are to be left alone, or were.
    opted_out: BTreeSet<String>,
}

impl Witness for Hooks {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::NodePatched { name, .. } => {
                self.claimed.entry(name.clone()).or_insert(facts.clock.now());
            }
            Fact::Person { command: Command::Uncordon | Command::Recordon, node, .. } => {
                self.uncordoned.insert(node.clone());
            }
            Fact::Person { command: Command::OptOut, instance, .. } => {
                self.opted_out.insert(instance.clone());
            }
            Fact::HookCompleted { by, token, waits } => {
                let is_first = self.completed.insert((*by, token.clone())) || !facts.plan.is_well(Side::Aws);
                let is_real = !facts.plan.is_dry_run();
                verdict.holds(Invariant::DryRunTouchesNothing, is_real, || format!("{by} completes {token}"));
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
        let could = over.max(facts.calm_since()).max(facts.lambda.attempt(by).began + facts.skew());
        let is_late = now > could + LATE;
        verdict.holds(Invariant::HookAnswered, !is_late, || format!("{by} completes {token}, which was due at {over}"));
        // What HooksWithoutNode says of a cluster that lets nobody in, or of which EKS tells nothing.
        let is_denied = [Side::Api, Side::Aws].iter().any(|side| facts.plan.has_fault(*side, Fault::Denied));
        let is_of_launch = action.after_hook == AfterHook::InService;
        if is_of_launch || is_over || is_denied || !facts.cluster.reports(&action.instance) {
            return;
        }
        let node = facts.aws.node_of(&action.instance).expect("it has one");
        let left = self.that_have_to_leave(node, facts);
        verdict.holds(Invariant::HookNotBeforeEmpty, left.is_empty(), || {
            format!("{by} completes {token} while {left:?} are on {node}")
        });
    }

    /// The pods of a node that have to leave it, and have been there for a while.
    fn that_have_to_leave<'a>(&self, node: &'a str, facts: &Facts<'a>) -> Vec<&'a str> {
        let seen = facts.clock.now() - SignedDuration::from_secs(10);
        let claimed = self.claimed.get(node).copied().unwrap_or(Timestamp::MAX);
        let leave = facts.cluster.pods_on(node).filter(|pod| {
            let app = &facts.plan.apps[pod.app];
            let returns = app.tolerates || self.uncordoned.contains(node);
            let is_put_back = returns && pod.created >= claimed - SignedDuration::from_secs(5);
            let is_put_back = is_put_back || facts.plan.may_stay_open();
            let stays = app.stays() || pod.has_stopped || is_put_back;
            !stays && pod.created < seen
        });
        leave.map(|pod| pod.uid.as_str()).collect()
    }

    fn are_answered(&self, facts: &Facts<'_>, verdict: &mut Verdict) {
        let launches_are_ignored = facts.plan.setting("SPILLWAY_LAUNCH") == Some("ignore");
        for (token, action) in facts.aws.actions() {
            let is_ours = action.after_hook != AfterHook::InService || !launches_are_ignored;
            let could = facts.plan.is_well(Side::Aws)
                && !facts.plan.has_fault(Side::Api, Fault::Denied)
                && !facts.plan.is_dry_run()
                && !self.opted_out.contains(&action.instance)
                && facts.lambda.about(&action.instance).all(|attempt| !attempt.is_killed);
            let is_missed = action.result == Some(ActionResult::Expired) && is_ours && could;
            verdict.holds(Invariant::HookAnswered, !is_missed, || format!("{token} was left to its timeout"));
        }
    }
}
