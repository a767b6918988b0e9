//! Lifecycle actions of Auto Scaling groups.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{Aws, AwsEvent, Notice};
use crate::fact::Fact;
use crate::plan::CLUSTERS;

/// Name of the hook.
const HOOK: &str = "spillway";

/// Name of a cluster's group.
pub(super) fn group(cluster: usize) -> String {
    format!("workers-{}", CLUSTERS[cluster])
}

#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) instance: String,
    pub(crate) after_hook: AfterHook,
    pub(crate) since: Instant,
    until: Instant,
    pub(crate) result: Option<ActionResult>,
}

/// Next step of the group, for any result of the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterHook {
    Terminate,
    /// Into the warm pool, and back after a time.
    WarmPool(Duration),
    InService,
}

/// End of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionResult {
    Completed,
    Expired,
    InstanceGone,
}

impl Aws {
    /// Returns `true` if a lifecycle action of an instance waits.
    pub(super) fn waits(&self, instance: &str) -> bool {
        self.actions.values().any(|action| action.instance == instance && action.result.is_none())
    }

    pub(super) fn is_waiting(&self, token: &str) -> bool {
        self.actions.get(token).is_some_and(|action| action.result.is_none())
    }

    pub(super) fn begin_action(&mut self, instance: &str, after_hook: AfterHook, delay: Duration) {
        const TERMINATE: &str = "EC2 Instance-terminate Lifecycle Action";
        const LAUNCH: &str = "EC2 Instance-launch Lifecycle Action";
        let token = format!("token-{}", self.actions.len());
        let (detail_type, transition, from, to) = match after_hook {
            AfterHook::Terminate => (TERMINATE, "TERMINATING", "AutoScalingGroup", "EC2"),
            AfterHook::WarmPool(_) => (TERMINATE, "TERMINATING", "AutoScalingGroup", "WarmPool"),
            AfterHook::InService => (LAUNCH, "LAUNCHING", "WarmPool", "AutoScalingGroup"),
        };
        let group = group(self.cluster_of(instance));
        let detail = json!({"LifecycleActionToken": token, "AutoScalingGroupName": group, "LifecycleHookName": HOOK,
            "EC2InstanceId": instance, "LifecycleTransition": format!("autoscaling:EC2_INSTANCE_{transition}"),
            "Origin": from, "Destination": to});
        let now = Instant::now();
        let action = Action { instance: instance.to_owned(), after_hook, since: now, until: now, result: None };
        self.actions.insert(token.clone(), action);
        self.hold_action(&token);
        self.notify(&Notice { source: "aws.autoscaling", detail_type, detail, delay });
    }

    /// Restarts the timeout of an action, for a hundred timeouts at most.
    pub(super) fn hold_action(&mut self, token: &str) {
        let timeout = self.plan.hook_timeout;
        let Some(action) = self.actions.get_mut(token) else { return };
        action.until = (Instant::now() + timeout).min(action.since + timeout * 100);
        let after = action.until - Instant::now();
        self.effects.after(after, AwsEvent::ActionDue { token: token.to_owned() });
    }

    pub(super) fn expire_action(&mut self, token: &str) {
        let action = &self.actions[token];
        if action.result.is_none() && action.until <= Instant::now() {
            self.end_action(token, ActionResult::Expired);
        }
    }

    pub(super) fn end_action(&mut self, token: &str, result: ActionResult) {
        let Some(action) = self.actions.get_mut(token) else { return };
        let (instance, after_hook) = (action.instance.clone(), action.after_hook);
        action.result = Some(result);
        self.effects.fact(Fact::ActionOver { token: token.to_owned(), instance: instance.clone(), result });
        let (after, delay) = (self.dice.ms(1000..5000), self.dice.ms(100..3000));
        self.effects.after(after, AwsEvent::ActionFollowed { instance, after_hook, delay });
    }

    pub(super) fn follow_action(&mut self, instance: String, after_hook: AfterHook, delay: Duration) {
        match after_hook {
            AfterHook::Terminate => self.terminate(&instance, delay),
            AfterHook::InService => {}
            AfterHook::WarmPool(back_after) => {
                self.stop(&instance, None, delay);
                self.effects.after(back_after, AwsEvent::LeavesWarmPool { id: instance, delay });
            }
        }
    }

    pub(super) fn leave_warm_pool(&mut self, id: &str, delay: Duration) {
        if self.start(id, delay) {
            self.begin_action(id, AfterHook::InService, delay);
        }
    }
}
