//! Whether an Auto Scaling group keeps an instance whose terminate hook is abandoned: its instance lifecycle policy.

use std::time::Duration;

use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::types::{AutoScalingGroup, RetentionAction};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::aws::{self, CallError};

const DESCRIBE: &str = "autoscaling:DescribeAutoScalingGroups";
/// How long a drain waits for the answer, if it comes later than the claim: by then the node is cordoned.
const ASKED_FOR: Duration = Duration::from_secs(5);

/// Whether the group's policy has `TerminateHookAbandon` set to `retain`.
pub fn keeps_abandoned(group: &AutoScalingGroup) -> bool {
    let triggers = group.instance_lifecycle_policy.as_ref().and_then(|policy| policy.retention_triggers.as_ref());
    triggers.and_then(|triggers| triggers.terminate_hook_abandon.as_ref()) == Some(&RetentionAction::Retain)
}

/// Asks Auto Scaling for the policy of a group. What is not known is taken for the policy that a group has without one: the
/// instance goes.
pub(crate) async fn look_up(client: &Client, group: &str) -> bool {
    let ask = async || {
        let call = client.describe_auto_scaling_groups().auto_scaling_group_names(group).include_instances(false);
        call.send().await.map_err(|error| CallError::new(DESCRIBE, error))
    };
    match aws::until(DESCRIBE, Instant::now() + ASKED_FOR, ask).await {
        Ok(described) => described.auto_scaling_groups().first().is_some_and(keeps_abandoned),
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                "cannot read the lifecycle policy of Auto Scaling group {group}: its instance is drained as one that goes"
            );
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::aws::query_error;
    use crate::test_support::context::TestContext;
    use crate::test_support::script::call;

    #[tokio::test(start_paused = true)]
    async fn a_group_whose_policy_cannot_be_read_for_five_seconds_is_taken_for_one_without() {
        let busy = call("DescribeAutoScalingGroups").says(503, query_error("ServiceUnavailable", "why")).repeated();
        let (context, began) = (TestContext::new(&[], [], [busy]), Instant::now());
        assert!(!look_up(&context.autoscaling, "my-asg").await);
        assert_eq!(began.elapsed().as_secs(), 5);
    }
}
