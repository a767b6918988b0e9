//! Lifecycle hooks: completed once, when the node is empty or the longest wait is over, and never left to expire.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::deadline::{VOLUME_WAIT, longest_wait};
use super::{Facts, Invariant, Verdict, Witness};
use crate::aws::{ActionResult, AfterHook};
use crate::fact::Fact;
use crate::lambda::AttemptId;
use crate::plan::{App, Fault, Side};

/// Largest delay of a completion after the longest wait.
const LATE: SignedDuration = SignedDuration::from_secs(20);
/// Delay until a drain notices the return of a kubelet: a watch lags by up to three seconds.
const NOTICED_WITHIN: SignedDuration = SignedDuration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Hooks {
    completed: BTreeSet<(AttemptId, String)>,
}

impl Witness for Hooks {
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::HookCompleted { by, token, waits } => {
                let is_first = self.completed.insert((*by, token.clone()));
                let is_excused = !facts.plan.is_well(Side::Aws);
                let is_first = verdict.excuse("completed again in an outage of AWS", is_first, is_excused);
                verdict.check(Invariant::HookOnce, is_first, || format!("{by} completes {token} again"));
                if *waits {
                    completed(*by, token, facts, verdict);
                }
            }
            Fact::Quiet { .. } => not_expired(facts, verdict),
            _ => {}
        }
    }
}

fn completed(by: AttemptId, token: &str, facts: &Facts<'_>, verdict: &mut Verdict) {
    let action = &facts.aws.actions()[token];
    let over = facts.clock.at(action.since) + longest_wait(facts.plan);
    let now = facts.clock.now();
    let is_over = now + facts.skew() + SignedDuration::from_secs(1) >= over;
    let due = over.max(facts.calm_since(by)).max(facts.lambda.attempt(by).began + facts.skew());
    verdict.check(Invariant::HookAnswered, now <= due + LATE, || format!("{by} completes {token}, due at {over}"));
    // HooksWithoutNode decides if the API server or EKS denies access.
    let is_denied = [Side::Api, Side::Aws].iter().any(|side| facts.plan.has_fault(*side, Fault::Denied));
    let is_of_launch = action.after_hook == AfterHook::InService;
    if is_of_launch || is_over || !facts.clusters.reports(&action.instance) {
        return;
    }
    let node = facts.aws.node_of(&action.instance).expect("an instance with a hook has a node");
    let left = pods_to_leave(&action.instance, facts);
    let is_empty = verdict.excuse("completed as a hook without a node", left.is_empty(), is_denied);
    verdict
        .check(Invariant::HookNotBeforeEmpty, is_empty, || format!("{by} completes {token}, {left:?} are on {node}"));
    // No wait for the volume of a pod that may stay, or with an object that outlasts its containers.
    let is_plain = |app: &App| !app.has_volume || !(app.finalizer || app.tolerates);
    let past = facts.past.instance(&action.instance);
    if !facts.plan.apps.iter().all(is_plain) || past.uncordons > 0 {
        return;
    }
    let with_volumes = facts.past.pods.values().filter(|pod| pod.node == *node && facts.plan.apps[pod.app].has_volume);
    let last_gone = with_volumes.filter_map(|pod| pod.gone).max();
    let is_waited = last_gone.is_none_or(|gone| gone + VOLUME_WAIT <= now + facts.skew());
    let is_back = past.back.is_none_or(|back| back + NOTICED_WITHIN <= now);
    let holds = is_waited || !is_back || !facts.clusters.keeps_volumes(node);
    let holds = verdict.excuse("volumes not awaited where access is denied", holds, is_denied);
    verdict
        .check(Invariant::VolumesAwaited, holds, || format!("{by} completes {token}, a volume is attached to {node}"));
}

/// Pods that have to leave a node, and were created at least ten seconds ago.
fn pods_to_leave<'a>(instance: &str, facts: &Facts<'a>) -> Vec<&'a str> {
    let known_before = facts.clock.now() - SignedDuration::from_secs(10);
    let past = facts.past.instance(instance);
    let claimed = past.claimed.unwrap_or(Timestamp::MAX);
    let node = facts.aws.node_of(instance).expect("an instance with a hook has a node");
    let leave = facts.clusters.pods_on(node).filter(|pod| {
        let app = &facts.plan.apps[pod.app];
        let returns = app.tolerates || past.uncordons > 0;
        let is_returned = returns && pod.created >= claimed - SignedDuration::from_secs(5);
        let stays = app.stays() || pod.has_stopped || is_returned || facts.plan.may_stay_open();
        !stays && pod.created < known_before
    });
    leave.map(|pod| pod.uid.as_str()).collect()
}

fn not_expired(facts: &Facts<'_>, verdict: &mut Verdict) {
    let is_off = facts.plan.setting("SPILLWAY_MANAGED_NODE_GROUPS") == Some("off");
    let launches_are_ignored = facts.plan.setting("SPILLWAY_LAUNCH") == Some("off");
    for (token, action) in facts.aws.actions() {
        let is_ours = action.after_hook != AfterHook::InService || !launches_are_ignored;
        let node = facts.aws.node_of(&action.instance).expect("an instance with a hook has a node");
        let is_left = facts.plan.is_dry_run()
            || !facts.plan.serves(node.cluster)
            || facts.past.instance(&action.instance).opted_out.is_some()
            || (is_off && facts.plan.is_managed(&action.instance));
        let is_answered = action.result != Some(ActionResult::Expired) || !is_ours || is_left;
        let is_out = !facts.plan.is_well(Side::Aws);
        let is_denied = facts.plan.has_fault(Side::Api, Fault::Denied);
        let is_killed = facts.lambda.about(&action.instance).any(|attempt| attempt.is_killed);
        let holds = verdict.excuse("a hook expires in an outage of AWS", is_answered, is_out)
            || verdict.excuse("a hook expires in a cluster that denies access", is_answered, is_denied)
            || verdict.excuse("a hook expires whose drain was killed", is_answered, is_killed);
        verdict.check(Invariant::HookAnswered, holds, || format!("{token} expires"));
    }
}
