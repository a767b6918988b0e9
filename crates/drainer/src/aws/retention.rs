//! Reads an Auto Scaling group's instance lifecycle policy, which may keep an instance after its terminate hook is abandoned.

use std::iter::successors;
use std::time::Duration;

use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::types::{AutoScalingGroup, RetentionAction};
use spillway_retry::{jittered, with_pauses};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::aws::CallError;

const DESCRIBE: &str = "autoscaling:DescribeAutoScalingGroups";
/// First and longest pause between retries. The pauses are long, because many drains may read the policy at the same time.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Returns `true` if the group's policy has `TerminateHookAbandon` set to `retain`.
pub fn keeps_abandoned(group: &AutoScalingGroup) -> bool {
    let triggers = group.instance_lifecycle_policy.as_ref().and_then(|policy| policy.retention_triggers.as_ref());
    triggers.and_then(|triggers| triggers.terminate_hook_abandon.as_ref()) == Some(&RetentionAction::Retain)
}

/// Returns `true` if the Auto Scaling group keeps instances whose terminate hook is abandoned. `None` if the group could not be
/// read until `end`.
pub(crate) async fn look_up(client: &Client, group: &str, end: Instant) -> Option<bool> {
    let describe = async || {
        let call = client.describe_auto_scaling_groups().auto_scaling_group_names(group).include_instances(false);
        call.send().await.map_err(|error| CallError::new(DESCRIBE, error))
    };
    let (first, longest) = PAUSES;
    let pauses = successors(Some(first), |pause| Some((*pause * 2).min(longest))).map(jittered);
    match with_pauses(end, pauses, describe, |_| ()).await {
        Ok(described) => Some(described.auto_scaling_groups().first().is_some_and(keeps_abandoned)),
        Err(stopped) => {
            let error = stopped.error_or(CallError::unanswered(DESCRIBE, "the time was up"));
            tracing::warn!(
                error = chain(&error),
                "cannot read the instance lifecycle policy of Auto Scaling group {group}; using the last answer, else assuming \
                 that its instances are terminated"
            );
            None
        }
    }
}
