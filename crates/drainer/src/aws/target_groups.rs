//! Waits until the cluster's load balancers have deregistered an instance. AWS sends no event, so the target groups are polled.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::operation::describe_target_health::DescribeTargetHealthError;
use aws_sdk_elasticloadbalancingv2::types::{
    Tag, TargetDescription, TargetHealthDescription, TargetHealthStateEnum, TargetTypeEnum,
};
use spillway_core::cluster::ClusterName;
use spillway_notice::InstanceId;
use spillway_retry::jittered;
use tokio::time::{Instant, sleep, timeout_at};

use crate::aws::{self, CallError};

const GROUPS: &str = "elasticloadbalancing:DescribeTargetGroups";
const TAGS: &str = "elasticloadbalancing:DescribeTags";
const HEALTH: &str = "elasticloadbalancing:DescribeTargetHealth";

/// Minimum pause between two polls. Random jitter is added.
const POLL_INTERVAL: Duration = Duration::from_secs(3);
/// Maximum number of target groups in one `DescribeTags` call.
const TAGGED_AT_ONCE: usize = 20;

/// Waits until no target group of the cluster has the instance, at most until `end`. Returns the number of target groups that
/// still have the instance, or `None` if none had it at the start.
pub(crate) async fn until_drained(
    client: &Client,
    instance: &InstanceId,
    cluster: &ClusterName,
    end: Instant,
) -> Result<Option<usize>, CallError> {
    let groups = aws::until(GROUPS, end, || groups_of_instances(client)).await?;
    let mut of_cluster = BTreeSet::new();
    for some in groups.chunks(TAGGED_AT_ONCE) {
        of_cluster.extend(aws::until(TAGS, end, || tagged(client, some, cluster)).await?);
    }
    let mut groups: Vec<(String, Option<Vec<TargetDescription>>)> =
        of_cluster.into_iter().map(|arn| (arn, None)).collect();
    let mut is_first = true;
    loop {
        let mut left = Vec::new();
        for (group, targets) in groups {
            let there = aws::until(HEALTH, end, || targets_left(client, &group, targets.clone(), instance)).await?;
            left.extend((!there.is_empty()).then_some((group, Some(there))));
        }
        if left.is_empty() {
            return Ok((!is_first).then_some(0));
        }
        if timeout_at(end, sleep(POLL_INTERVAL + jittered(POLL_INTERVAL))).await.is_err() {
            return Ok(Some(left.len()));
        }
        (groups, is_first) = (left, false);
    }
}

/// Lists the target groups with target type `instance`.
async fn groups_of_instances(client: &Client) -> Result<Vec<String>, CallError> {
    let mut groups = Vec::new();
    let mut pages = client.describe_target_groups().into_paginator().send();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| CallError::new(GROUPS, error))?;
        let of_instances = page
            .target_groups
            .into_iter()
            .flatten()
            .filter(|group| group.target_type == Some(TargetTypeEnum::Instance));
        groups.extend(of_instances.filter_map(|group| group.target_group_arn));
    }
    Ok(groups)
}

async fn tagged(client: &Client, groups: &[String], cluster: &ClusterName) -> Result<Vec<String>, CallError> {
    let call = client.describe_tags().set_resource_arns(Some(groups.to_vec()));
    let answer = call.send().await.map_err(|error| CallError::new(TAGS, error))?;
    let described = answer.tag_descriptions.into_iter().flatten();
    let of_cluster = described.filter(|group| group.tags().iter().any(|tag| names(tag, cluster)));
    Ok(of_cluster.filter_map(|group| group.resource_arn).collect())
}

/// Returns `true` if the tag names the cluster. The AWS Load Balancer Controller or the cloud controller manager sets the tag.
fn names(tag: &Tag, cluster: &ClusterName) -> bool {
    let (key, value) = (tag.key().unwrap_or_default(), tag.value().unwrap_or_default());
    let cluster = cluster.to_string();
    key == "elbv2.k8s.aws/cluster" && value == cluster || key.strip_prefix("kubernetes.io/cluster/") == Some(&cluster)
}

/// Returns the instance's remaining targets in a target group: one for each port. If `known` is given, reads only these targets.
async fn targets_left(
    client: &Client,
    group: &str,
    known: Option<Vec<TargetDescription>>,
    instance: &InstanceId,
) -> Result<Vec<TargetDescription>, CallError> {
    match client.describe_target_health().target_group_arn(group).set_targets(known).send().await {
        Ok(answer) => {
            let left = answer.target_health_descriptions.into_iter().flatten().filter(is_left);
            Ok(left.filter_map(|one| one.target).filter(|target| target.id() == Some(instance.as_str())).collect())
        }
        Err(error) if error.as_service_error().is_some_and(has_gone) => Ok(Vec::new()),
        Err(error) => Err(CallError::new(HEALTH, error)),
    }
}

/// Returns `false` if the target is deregistered, or if its target group has no load balancer.
fn is_left(target: &TargetHealthDescription) -> bool {
    target.target_health().and_then(|health| health.state()) != Some(&TargetHealthStateEnum::Unused)
}

fn has_gone(error: &DescribeTargetHealthError) -> bool {
    error.is_target_group_not_found_exception() || error.is_invalid_target_exception()
}

#[cfg(test)]
mod tests {
    use aws_sdk_elasticloadbalancingv2::types::error::{
        HealthUnavailableException, InvalidTargetException, TargetGroupNotFoundException,
    };

    use super::*;

    #[test]
    fn tag_of_either_controller_names_the_cluster() {
        let names =
            |key: &str, value: &str| names(&Tag::builder().key(key).value(value).build(), &ClusterName::new("prod"));
        assert!(names("elbv2.k8s.aws/cluster", "prod") && names("kubernetes.io/cluster/prod", "owned"));
        assert!(!names("elbv2.k8s.aws/cluster", "stage") && !names("kubernetes.io/cluster/prod-2", "owned"));
        assert!(!names("team", "prod"));
    }

    #[test]
    fn missing_target_group_or_target_has_gone() {
        use DescribeTargetHealthError as E;
        assert!(has_gone(&E::TargetGroupNotFoundException(TargetGroupNotFoundException::builder().build())));
        assert!(has_gone(&E::InvalidTargetException(InvalidTargetException::builder().build())));
        assert!(!has_gone(&E::HealthUnavailableException(HealthUnavailableException::builder().build())));
    }
}
