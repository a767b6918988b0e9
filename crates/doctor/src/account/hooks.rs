//! Checks the termination lifecycle hooks of a cluster's Auto Scaling groups. Pure.

use std::time::Duration;

use spillway_core::cluster::ClusterName;
use spillway_core::decision::{self, HOOK_OF_EKS};
use spillway_core::instance::ManagedBy;
use spillway_settings::{LifecycleResult, ManagedNodeGroups, NoticeFamily, Policy, Settings};

use super::groups::{Group, GroupHook};
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, quoted};

const ID: CheckId = CheckId::Hooks;

/// Time from a failed invocation to its first retry by Lambda. A hook must not time out earlier.
const FIRST_RETRY: Duration = Duration::from_secs(60);

/// Default name of Spillway's lifecycle hook.
const SPILLWAY: &str = "spillway";

/// Recommended timeout of a hook (docs/contributing/decisions/0019-a-hooks-timeout-is-ten-minutes.md).
const GOOD_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) fn run_check(groups: &[Group], cluster: &ClusterName, settings: &Settings, region: &str) -> Check {
    if settings.policy(NoticeFamily::Terminate) == Policy::Ignore {
        let why = "neither DrainOn nor CordonOn names terminate";
        return Check::skipped(ID, why).of(cluster);
    }
    let drained = groups.iter().filter(|group| group.cluster == *cluster && is_drained(group, settings));
    let (ours, untagged): (Vec<&Group>, Vec<&Group>) = drained.partition(|group| is_tagged(group, settings));
    let findings: Vec<_> = ours.iter().flat_map(|group| of_group(group, settings, region)).collect();
    let what = match ours.as_slice() {
        [] if !untagged.is_empty() => "no Auto Scaling group of this cluster has the managed tag".to_owned(),
        [] => "no Auto Scaling group with nodes for Spillway has a tag of this cluster".to_owned(),
        ours if findings.is_empty() => format!("Auto Scaling waits for Spillway in {}", names(ours)),
        ours => format!("the hooks of {} have findings", names(ours)),
    };
    let not_checked = match (untagged.as_slice(), &settings.managed_tag) {
        ([_, ..], Some(tag)) => format!("; not checked, because the groups lack the tag {tag}: {}", names(&untagged)),
        _ => String::new(),
    };
    Check::made(ID, format!("{what}{not_checked}"), findings).of(cluster)
}

fn names(groups: &[&Group]) -> String {
    groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn is_drained(group: &Group, settings: &Settings) -> bool {
    match group.managed_by {
        ManagedBy::SelfManaged => true,
        ManagedBy::ManagedNodeGroup => settings.managed_node_groups != ManagedNodeGroups::Leave,
        ManagedBy::Karpenter | ManagedBy::AutoMode | ManagedBy::Fargate | ManagedBy::Hybrid => false,
    }
}

/// Returns `true` if the parameter `ManagedTag` is empty or the group has this tag.
fn is_tagged(group: &Group, settings: &Settings) -> bool {
    let tag = settings.managed_tag.as_ref();
    tag.is_none_or(|tag| group.tags.get(&tag.key).is_some_and(|value| tag.allows(value)))
}

fn of_group(group: &Group, settings: &Settings, region: &str) -> Vec<Finding> {
    let hooks: Vec<&GroupHook> = group.terminate_hooks().collect();
    let (ours, others): (Vec<&GroupHook>, Vec<&GroupHook>) =
        hooks.iter().copied().partition(|hook| decision::foreign_hook(&hook.name, settings).is_none());
    // A managed node group needs no hook of Spillway: EKS puts its own hooks on the group.
    if ours.is_empty() && group.managed_by == ManagedBy::SelfManaged {
        return vec![missing(group, &others, settings, region)];
    }
    let of_hook = |hook: &GroupHook| {
        [
            short(group, hook, settings, region),
            shorter_than_set(group, hook, settings, region),
            unanswered(group, hook, hooks.len(), region),
        ]
    };
    let of_others = others.iter().filter(|hook| hook.name != HOOK_OF_EKS).map(|hook| left(group, hook));
    let kept = group.kept.iter().map(|instance| kept(group, instance, region));
    let denied = (!ours.is_empty()).then(|| denied(group, settings, region)).flatten();
    let of_ours = denied.into_iter().chain(ours.into_iter().flat_map(of_hook).flatten());
    of_ours.chain(of_others).chain(kept).collect()
}

/// Reports an instance that the group retains because of pods that could not be evicted.
fn kept(group: &Group, instance: &str, region: &str) -> Finding {
    let what = format!(
        "is kept by Auto Scaling group {}, because its pods could not leave: it costs money, and its node stays cordoned",
        group.name
    );
    let to_do = "find the remaining pods and their blockers in the receipt; end the instance when the pods have left";
    let object = format!("instance {instance}");
    Finding::new(FindingId::InstanceKept, Severity::Warn, object, what, to_do).with_command(format!(
        "aws autoscaling terminate-instance-in-auto-scaling-group --instance-id {} \
         --no-should-decrement-desired-capacity --region {region}",
        quoted(instance)
    ))
}

/// Reports a group without the tag that `HookGroupTag` names. IAM lets Spillway complete only the hooks of groups with this tag.
fn denied(group: &Group, settings: &Settings, region: &str) -> Option<Finding> {
    let tag = settings.hook_group_tag.as_ref().filter(|tag| !tag.is_in(&group.tags))?;
    let what = format!(
        "has a hook of Spillway but lacks the tag {tag} of HookGroupTag: IAM denies the completion of its hooks, and each \
         instance waits until the timeout"
    );
    let to_do = "add the tag to the group, or remove its hook from the parameter Hooks";
    let finding = Finding::new(
        FindingId::HookGroupUntagged,
        Severity::Fail,
        format!("Auto Scaling group {}", group.name),
        what,
        to_do,
    );
    Some(finding.with_command(format!(
        "aws autoscaling create-or-update-tags --region {region} --tags \
         ResourceType=auto-scaling-group,PropagateAtLaunch=false,Key={},Value={},ResourceId={}",
        tag.key,
        tag.value,
        quoted(&group.name)
    )))
}

/// Reports a hook that the parameter `Hooks` does not name: another program has to complete the hook.
fn left(group: &Group, hook: &GroupHook) -> Finding {
    let (severity, notified) = match &hook.notifies {
        Some(target) => (Severity::Info, format!("notifies {target} of each termination")),
        None => (Severity::Warn, "notifies only the event bus of a termination".to_owned()),
    };
    let what = format!(
        "is not named in Hooks and {notified}: unless another program completes the hook, each instance waits {} s for it \
         after the drain",
        hook.waits.timeout.as_secs()
    );
    let to_do =
        "if the hook is Spillway's, name it in the parameter Hooks; if it has no owner, delete it; else leave it";
    Finding::new(FindingId::HookLeftToOthers, severity, name(group, hook), what, to_do)
}

/// Reports names in the parameter `Hooks` that no lifecycle hook has. Never reports the default name.
pub(super) fn unused(groups: &[Group], settings: &Settings) -> Check {
    let is_used = |name: &String| {
        let mut hooks = groups.iter().flat_map(|group| &group.hooks);
        name == SPILLWAY || hooks.any(|hook| hook.name == *name)
    };
    let finding = |name: &String| {
        let what = "is named in Hooks, but no Auto Scaling group with nodes in these clusters has it: the name is misspelt, or \
                    its group does not wait for a drain";
        let to_do = "correct the parameter Hooks, or put the hook on its group";
        Finding::new(FindingId::HookOfNoGroup, Severity::Warn, format!("hook {name}"), what, to_do)
    };
    let findings = settings.hooks.iter().filter(|name| !is_used(name)).map(finding).collect();
    Check::made(CheckId::HookNames, format!("hooks of Spillway: {}", settings.hooks.join(", ")), findings)
}

fn missing(group: &Group, others: &[&GroupHook], settings: &Settings, region: &str) -> Finding {
    let why = match others {
        [] => "has no terminate hook".to_owned(),
        [first, ..] => format!("has terminate hooks, such as {}, but none that Hooks names", first.name),
    };
    let what = format!("{why}: scale-in, instance refresh and rebalancing end its nodes without a drain");
    let default_result = if group.keeps_abandoned { LifecycleResult::Abandon } else { LifecycleResult::Continue };
    let to_do = "put a hook on the group, or name its hook in the parameter Hooks; if no group is to wait, remove terminate \
                 from the parameter DrainOn";
    Finding::new(FindingId::HookMissing, Severity::Fail, format!("Auto Scaling group {}", group.name), what, to_do)
        .with_command(put(group, SPILLWAY, good_timeout(settings), default_result, region))
}

fn short(group: &Group, hook: &GroupHook, settings: &Settings, region: &str) -> Option<Finding> {
    let (timeout, good) = (hook.waits.timeout, good_timeout(settings));
    if timeout >= FIRST_RETRY {
        return None;
    }
    let what = format!(
        "has a timeout of {} s: if the first attempt at a notice fails, the instance ends before Lambda's retry after a \
         minute. With heartbeats the hook waits {} s at most",
        timeout.as_secs(),
        hook.waits.total.as_secs(),
    );
    let to_do = format!(
        "set the timeout to {} s; heartbeats hold the hook during a drain, and only failures take longer",
        good.as_secs()
    );
    let finding = Finding::new(FindingId::HookTimeoutShort, Severity::Warn, name(group, hook), what, to_do);
    Some(finding.with_command(put(group, &hook.name, good, hook.default_result, region)))
}

/// Reports a hook whose maximum wait, including heartbeats, is shorter than `HookMaxWaitS`.
fn shorter_than_set(group: &Group, hook: &GroupHook, settings: &Settings, region: &str) -> Option<Finding> {
    let (waits, set) = (hook.waits.total.as_secs(), settings.hook_max_wait.as_secs());
    if hook.waits.timeout < FIRST_RETRY || waits >= set {
        return None;
    }
    let what = format!("waits {waits} s at most, but HookMaxWaitS is {set} s: a drain ends with the hook");
    let to_do = "raise the timeout of the hook: Auto Scaling waits 100 times as long, at most 48 hours";
    let finding = Finding::new(FindingId::HookWaitsShorterThanSet, Severity::Warn, name(group, hook), what, to_do);
    Some(finding.with_command(put(group, &hook.name, least_timeout(settings), hook.default_result, region)))
}

/// Reports a hook with a wrong default result. ABANDON is right for groups that retain abandoned instances, CONTINUE for others.
fn unanswered(group: &Group, hook: &GroupHook, hooks: usize, region: &str) -> Option<Finding> {
    if group.keeps_abandoned {
        return (hook.default_result == LifecycleResult::Continue).then(|| continued(group, hook, region));
    }
    if hook.default_result == LifecycleResult::Continue {
        return None;
    }
    let (severity, follows) = if hooks > 1 {
        (Severity::Warn, "the group's other terminate hooks are skipped")
    } else {
        (Severity::Info, "the same as CONTINUE while the group has no other terminate hook")
    };
    let what = format!("is abandoned if it is not completed in time (DefaultResult ABANDON): {follows}");
    let to_do = "set the default result to CONTINUE";
    let finding = Finding::new(FindingId::HookDefaultAbandon, severity, name(group, hook), what, to_do);
    Some(finding.with_command(put(group, &hook.name, hook.waits.timeout, LifecycleResult::Continue, region)))
}

fn continued(group: &Group, hook: &GroupHook, region: &str) -> Finding {
    let what = "continues if it is not completed in time (DefaultResult CONTINUE), but the group keeps abandoned instances: \
                if Spillway fails, the instance ends with its pods";
    let to_do = "set the default result to ABANDON";
    let finding = Finding::new(FindingId::HookDefaultContinue, Severity::Warn, name(group, hook), what, to_do);
    finding.with_command(put(group, &hook.name, hook.waits.timeout, LifecycleResult::Abandon, region))
}

fn name(group: &Group, hook: &GroupHook) -> String {
    format!("hook {} of Auto Scaling group {}", hook.name, group.name)
}

/// Returns the shortest hook timeout that permits `HookMaxWaitS`: heartbeats extend a hook to at most 100 times its timeout.
fn least_timeout(settings: &Settings) -> Duration {
    Duration::from_secs(settings.hook_max_wait.as_secs().div_ceil(100))
}

fn good_timeout(settings: &Settings) -> Duration {
    GOOD_TIMEOUT.max(least_timeout(settings))
}

/// Returns the AWS CLI command that creates or changes a hook.
fn put(group: &Group, hook: &str, timeout: Duration, default_result: LifecycleResult, region: &str) -> String {
    format!(
        "aws autoscaling put-lifecycle-hook --auto-scaling-group-name {} --lifecycle-hook-name {} \
         --lifecycle-transition autoscaling:EC2_INSTANCE_TERMINATING --heartbeat-timeout {} --default-result {} \
         --region {region}",
        quoted(&group.name),
        quoted(hook),
        timeout.as_secs(),
        default_result.as_str()
    )
}

#[cfg(test)]
pub(super) mod tests;
