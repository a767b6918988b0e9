//! Lists the Auto Scaling groups of the clusters, and the lifecycle hooks of each group.

use std::collections::BTreeMap;

use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::types::{AutoScalingGroup, LifecycleHook, LifecycleState};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use spillway_core::cluster::ClusterName;
use spillway_core::hook_timeouts::HookTimeouts;
use spillway_core::instance::{ManagedBy, Membership, managed_by, membership};
use spillway_core::replacement::GroupState;
use spillway_drainer::aws::{self, CallError, group_state, hook_timeouts, keeps_abandoned};
use spillway_settings::LifecycleResult;
use tokio::time::Instant;

use crate::retry_end;

const LIST: &str = "autoscaling:DescribeAutoScalingGroups";
const HOOKS: &str = "autoscaling:DescribeLifecycleHooks";
/// Maximum number of groups in one `DescribeAutoScalingGroups` response.
const ON_A_PAGE: i32 = 100;
/// Suffix of a retained instance's lifecycle state, such as `Terminating:Retained`.
const KEPT: &str = ":Retained";
/// Maximum number of concurrent `DescribeLifecycleHooks` calls. The whole account shares one rate limit.
const AT_ONCE: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) cluster: ClusterName,
    pub(super) managed_by: ManagedBy,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) keeps_abandoned: bool,
    pub(super) kept: Vec<String>,
    pub(super) state: GroupState,
    pub(super) hooks: Vec<GroupHook>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupHook {
    pub(super) name: String,
    pub(super) transition: HookTransition,
    pub(super) waits: HookTimeouts,
    pub(super) default_result: LifecycleResult,
    /// ARN of the queue or topic that the hook notifies.
    pub(super) notifies: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookTransition {
    Launching,
    Terminating,
}

impl Group {
    pub(super) fn terminate_hooks(&self) -> impl Iterator<Item = &GroupHook> {
        self.hooks.iter().filter(|hook| hook.transition == HookTransition::Terminating)
    }
}

/// Returns the Auto Scaling groups whose tags name one of the clusters. Each group includes its hooks.
pub(super) async fn of(client: &Client, clusters: &[ClusterName], end: Instant) -> Result<Vec<Group>, CallError> {
    let mut groups = Vec::new();
    let mut token = None;
    loop {
        let page = aws::until(LIST, retry_end(end), async || {
            let call = client.describe_auto_scaling_groups().max_records(ON_A_PAGE);
            call.set_next_token(token.clone()).send().await.map_err(|error| CallError::new(LIST, error))
        });
        let page = page.await?;
        groups.extend(page.auto_scaling_groups.into_iter().flatten().filter_map(group));
        token = page.next_token;
        if token.is_none() {
            break;
        }
    }
    groups.retain(|group| clusters.contains(&group.cluster));
    let with_hooks = stream::iter(groups).map(|group| async move {
        let hooks = aws::until(HOOKS, retry_end(end), || hooks(client, &group.name)).await?;
        Ok::<_, CallError>(Group { hooks, ..group })
    });
    with_hooks.buffered(AT_ONCE).try_collect().await
}

/// Converts an Auto Scaling group. The hooks are added later. `None` if the group's tags name no cluster.
fn group(described: AutoScalingGroup) -> Option<Group> {
    let keeps_abandoned = keeps_abandoned(&described);
    let state = group_state(&described, None);
    let instances = described.instances.into_iter().flatten();
    let is_kept = |state: &LifecycleState| state.as_str().ends_with(KEPT);
    let kept = instances.filter(|instance| instance.lifecycle_state.as_ref().is_some_and(is_kept));
    let kept = kept.filter_map(|instance| instance.instance_id).collect();
    let tags = described.tags.into_iter().flatten();
    let tags: BTreeMap<_, _> = tags.filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default()))).collect();
    let Membership::In(cluster) = membership(&tags) else { return None };
    Some(Group {
        name: described.auto_scaling_group_name?,
        cluster,
        // Karpenter and other managers have no Auto Scaling groups. Their tags on a group are copies.
        managed_by: match managed_by(&tags) {
            ManagedBy::ManagedNodeGroup => ManagedBy::ManagedNodeGroup,
            _ => ManagedBy::SelfManaged,
        },
        tags,
        keeps_abandoned,
        kept,
        state,
        hooks: Vec::new(),
    })
}

async fn hooks(client: &Client, group: &str) -> Result<Vec<GroupHook>, CallError> {
    let described = client.describe_lifecycle_hooks().auto_scaling_group_name(group).send().await;
    let described = described.map_err(|error| CallError::new(HOOKS, error))?;
    Ok(described.lifecycle_hooks.into_iter().flatten().filter_map(hook).collect())
}

fn hook(described: LifecycleHook) -> Option<GroupHook> {
    let transition = match described.lifecycle_transition.as_deref()? {
        "autoscaling:EC2_INSTANCE_TERMINATING" => HookTransition::Terminating,
        "autoscaling:EC2_INSTANCE_LAUNCHING" => HookTransition::Launching,
        _ => return None,
    };
    let default_result = match described.default_result.as_deref() {
        Some("CONTINUE") => LifecycleResult::Continue,
        // Auto Scaling's own default.
        _ => LifecycleResult::Abandon,
    };
    Some(GroupHook {
        waits: hook_timeouts(&described),
        name: described.lifecycle_hook_name?,
        transition,
        default_result,
        notifies: described.notification_target_arn.filter(|arn| !arn.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_sdk_autoscaling::types::{Instance, TagDescription};
    use spillway_drainer::doubles::aws::hooks as hooks_described;
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::TestContext;

    use super::*;

    fn page(group: &str, cluster: &str, token: &str) -> String {
        format!(
            "<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult><AutoScalingGroups><member>\
             <AutoScalingGroupName>{group}</AutoScalingGroupName><Tags><member><Key>kubernetes.io/cluster/{cluster}</Key>\
             <Value>owned</Value></member></Tags></member></AutoScalingGroups>{token}</DescribeAutoScalingGroupsResult>\
             </DescribeAutoScalingGroupsResponse>"
        )
    }

    #[test]
    fn kept_instances_have_a_retained_state() {
        let instance =
            |id: &str, state: &str| Instance::builder().instance_id(id).lifecycle_state(state.into()).build();
        let tag = TagDescription::builder().key("kubernetes.io/cluster/prod").value("owned").build();
        let described = AutoScalingGroup::builder().auto_scaling_group_name("workers").tags(tag);
        let described = described.instances(instance("i-1", "Terminating:Wait"));
        let described = described.instances(instance("i-2", "Terminating:Retained"));
        let described = described.instances(instance("i-3", "Warmed:Terminating:Retained"));
        assert_eq!(group(described.build()).unwrap().kept, ["i-2", "i-3"]);
    }

    #[tokio::test(start_paused = true)]
    async fn groups_of_all_pages_are_read_and_hooks_only_for_ours() {
        let hooks_of = |group| {
            let hooks = call("DescribeLifecycleHooks").with(format!("AutoScalingGroupName={group}"));
            hooks.says(200, hooks_described(300, 30000)).at_any_time()
        };
        let aws = [
            call("DescribeAutoScalingGroups")
                .without("NextToken")
                .says(200, page("one", "prod", "<NextToken>second</NextToken>")),
            call("DescribeAutoScalingGroups")
                .with("NextToken=second")
                .says(200, page("others", "stage", "<NextToken>third</NextToken>")),
            call("DescribeAutoScalingGroups").with("NextToken=third").says(200, page("two", "prod", "")),
            hooks_of("one"),
            hooks_of("two"),
        ];
        let context = TestContext::new(&[], [], aws);
        let end = Instant::now() + Duration::from_secs(10);
        let found = of(&context.autoscaling, &[ClusterName::new("prod")], end).await.unwrap();
        assert_eq!(found.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    }
}
