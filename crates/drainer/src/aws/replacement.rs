//! Calls AWS to check whether an instance is to be replaced, and to request the replacement.

use aws_sdk_autoscaling::config::retry::RetryConfig;
use aws_sdk_autoscaling::types::{Activity, AutoScalingGroup, Instance, TagDescription};
use aws_sdk_autoscaling::{Client, config};
use jiff::{SignedDuration, Timestamp};
use spillway_core::replacement::{Confirmation, GroupState};
use spillway_notice::InstanceId;
use tokio::time::Instant;

use crate::aws::ec2::{DESCRIBE_STATUS, scheduled_events};
use crate::aws::{self, CallError};

const GROUPS: &str = "autoscaling:DescribeAutoScalingGroups";
const HOOKS: &str = "autoscaling:DescribeLifecycleHooks";
const ACTIVITIES: &str = "autoscaling:DescribeScalingActivities";
const SPOT_REQUESTS: &str = "ec2:DescribeSpotInstanceRequests";
const TERMINATE: &str = "autoscaling:TerminateInstanceInAutoScalingGroup";
const TERMINATING: &str = "autoscaling:EC2_INSTANCE_TERMINATING";
/// Auto Scaling's text about a scaling activity that a [`TERMINATE`] call started (Auto Scaling user guide, "Verify a scaling
/// activity").
const BY_REQUEST: &str = "was taken out of service in response to a user request";
/// Part of the same text if the [`TERMINATE`] call also decremented the desired capacity.
const DECREMENTED: &str = "shrinking the capacity";
/// Period in which the replacements of a group are counted.
const PERIOD: SignedDuration = SignedDuration::from_hours(1);

/// Reads the state of an Auto Scaling group, with retries until `end`. `None` if the group does not exist.
pub(crate) async fn group_state(
    client: &Client,
    group: &str,
    instance: &InstanceId,
    now: Timestamp,
    end: Instant,
) -> Result<Option<GroupState>, CallError> {
    let described = aws::until(GROUPS, end, || describe(client, group, instance));
    let hooks = aws::until(HOOKS, end, || terminate_hooks(client, group));
    let replaced = aws::until(ACTIVITIES, end, || replaced_since(client, group, now - PERIOD));
    let (described, hooks, replaced) = tokio::join!(described, hooks, replaced);
    let Some(described) = described? else { return Ok(None) };
    Ok(Some(GroupState { hooks: hooks?, replaced: replaced?, ..described }))
}

async fn describe(client: &Client, group: &str, instance: &InstanceId) -> Result<Option<GroupState>, CallError> {
    let call = client.describe_auto_scaling_groups().auto_scaling_group_names(group).include_instances(true);
    let answer = call.send().await.map_err(|error| CallError::new(GROUPS, error))?;
    Ok(answer.auto_scaling_groups().first().map(|group| state_of(group, Some(instance))))
}

/// Converts Auto Scaling's description of a group. Leaves `hooks` and `replaced` empty, because other calls return them.
pub fn state_of(group: &AutoScalingGroup, instance: Option<&InstanceId>) -> GroupState {
    let is_own = |one: &&Instance| instance.is_some_and(|id| one.instance_id() == Some(id.as_str()));
    let state = group.instances().iter().find(is_own).and_then(|one| one.lifecycle_state());
    let suspended = group.suspended_processes().iter().filter_map(|process| process.process_name());
    let tag = |tag: &TagDescription| Some((tag.key.clone()?, tag.value.clone().unwrap_or_default()));
    GroupState {
        tags: group.tags().iter().filter_map(tag).collect(),
        instance: state.map(|state| state.as_str().to_owned()),
        has_warm_pool: group.warm_pool_configuration().is_some(),
        suspended: suspended.map(str::to_owned).collect(),
        rebalances: group.capacity_rebalance().unwrap_or_default(),
        desired: group.desired_capacity().and_then(|desired| usize::try_from(desired).ok()).unwrap_or_default(),
        ..GroupState::default()
    }
}

async fn terminate_hooks(client: &Client, group: &str) -> Result<Vec<String>, CallError> {
    let answer = client.describe_lifecycle_hooks().auto_scaling_group_name(group).send().await;
    let hooks = answer.map_err(|error| CallError::new(HOOKS, error))?.lifecycle_hooks.into_iter().flatten();
    let terminating = hooks.filter(|hook| hook.lifecycle_transition() == Some(TERMINATING));
    Ok(terminating.filter_map(|hook| hook.lifecycle_hook_name).collect())
}

/// Counts the group's instances that calls of [`TERMINATE`] have replaced since the given time.
async fn replaced_since(client: &Client, group: &str, since: Timestamp) -> Result<usize, CallError> {
    let mut activities =
        client.describe_scaling_activities().auto_scaling_group_name(group).into_paginator().items().send();
    let mut replaced = 0;
    while let Some(activity) = activities.next().await {
        let activity = activity.map_err(|error| CallError::new(ACTIVITIES, error))?;
        // Auto Scaling lists the latest activity first.
        if activity.start_time().is_none_or(|began| began.secs() < since.as_second()) {
            break;
        }
        replaced += usize::from(is_replacement(&activity));
    }
    Ok(replaced)
}

fn is_replacement(activity: &Activity) -> bool {
    activity.cause().is_some_and(|cause| cause.contains(BY_REQUEST) && !cause.contains(DECREMENTED))
}

/// Reads the status of a spot request, with retries until `end`. `None` if EC2 does not return the status.
pub(crate) async fn spot_request(
    ec2: &aws_sdk_ec2::Client,
    id: &str,
    end: Instant,
) -> Result<Option<Confirmation>, CallError> {
    let described = aws::until(SPOT_REQUESTS, end, async || {
        let call = ec2.describe_spot_instance_requests().spot_instance_request_ids(id).send().await;
        call.map_err(|error| CallError::new(SPOT_REQUESTS, error))
    });
    let request = described.await?.spot_instance_requests.into_iter().flatten().next();
    Ok(request.and_then(|request| request.status).and_then(|status| {
        let updated = Timestamp::from_second(status.update_time?.secs()).ok()?;
        Some(Confirmation::SpotRequest { status: status.code?, updated })
    }))
}

/// Reads the instance's scheduled events that are not over, with retries until `end`.
pub(crate) async fn scheduled(
    ec2: &aws_sdk_ec2::Client,
    instance: &InstanceId,
    end: Instant,
) -> Result<Confirmation, CallError> {
    let events = aws::until(DESCRIBE_STATUS, end, || scheduled_events(ec2, Some(instance))).await?;
    let open = events.into_iter().filter(|event| !event.is_over());
    Ok(Confirmation::ScheduledEvents(open.map(|event| event.code).collect()))
}

/// Requests that the group terminates the instance and keeps the desired capacity. Does not retry, because a lost answer may mean
/// success.
pub(crate) async fn request(client: &Client, instance: &InstanceId) -> Result<(), CallError> {
    let call = client.terminate_instance_in_auto_scaling_group().instance_id(instance.as_str());
    let call = call.should_decrement_desired_capacity(false).customize();
    let once = config::Builder::new().retry_config(RetryConfig::disabled());
    call.config_override(once).send().await.map(|_| ()).map_err(|error| CallError::new(TERMINATE, error))
}

/// Returns `true` if [`request`] failed because another scaling activity of the group is in progress.
pub(crate) fn is_contended(error: &CallError) -> bool {
    error.has_code("ResourceContention") || error.has_code("ScalingActivityInProgress")
}
