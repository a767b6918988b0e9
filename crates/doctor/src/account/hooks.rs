//! Whether the Auto Scaling groups with nodes in a cluster wait for us before they end an instance, and whether what
//! their hooks say is sane. Pure.

use std::time::Duration;

use spillway_core::cluster::ClusterName;
use spillway_core::decision::{self, HOOK_OF_EKS};
use spillway_core::instance::ManagedBy;
use spillway_settings::{LifecycleResult, ManagedNodeGroups, NoticeFamily, Policy, Settings};

use super::groups::{Group, GroupHook};
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, quoted};

const ID: CheckId = CheckId::Hooks;

/// Lambda tries a notice again one minute after the first attempt: a hook has to wait for that.
const FIRST_RETRY: Duration = Duration::from_secs(60);

/// The hook's name in the documents, and the default of the setting.
const SPILLWAY: &str = "spillway";

/// Timeout that docs/install.md recommends: docs/contributing/decisions/0019-a-hooks-timeout-is-ten-minutes.md.
const GOOD_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) fn look(groups: &[Group], cluster: &ClusterName, settings: &Settings, region: &str) -> Check {
    if settings.policy(NoticeFamily::Terminate) == Policy::Ignore {
        let why = "hooks are left to others: neither DrainOn nor CordonOn names terminate";
        return Check::skipped(ID, why).of(cluster);
    }
    let drained = groups.iter().filter(|group| group.cluster == *cluster && is_drained(group, settings));
    let (ours, untagged): (Vec<&Group>, Vec<&Group>) = drained.partition(|group| is_tagged(group, settings));
    let findings: Vec<_> = ours.iter().flat_map(|group| of_group(group, settings, region)).collect();
    let what = match ours.as_slice() {
        [] if !untagged.is_empty() => "no Auto Scaling group of this cluster has the managed tag".to_owned(),
        [] => "no Auto Scaling group whose nodes Spillway drains has a tag that names this cluster".to_owned(),
        ours if findings.is_empty() => format!("Auto Scaling waits for Spillway in {}", names(ours)),
        ours => format!("the hooks of {}", names(ours)),
    };
    let not_looked_at = match (untagged.as_slice(), &settings.managed_tag) {
        ([_, ..], Some(tag)) => {
            format!("; not looked at, without the tag {tag}, which their instances may have: {}", names(&untagged))
        }
        _ => String::new(),
    };
    Check::made(ID, format!("{what}{not_looked_at}"), findings).of(cluster)
}

fn names(groups: &[&Group]) -> String {
    groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Whether its nodes are drained for its hooks, as far as it goes by whose they are.
fn is_drained(group: &Group, settings: &Settings) -> bool {
    match group.managed_by {
        ManagedBy::SelfManaged => true,
        ManagedBy::ManagedNodeGroup => settings.managed_node_groups != ManagedNodeGroups::Leave,
        ManagedBy::Karpenter | ManagedBy::AutoMode | ManagedBy::Fargate | ManagedBy::Hybrid => false,
    }
}

/// Whether it has the managed tag, if there is one. A drain asks the instance first: of a group without it nobody knows.
fn is_tagged(group: &Group, settings: &Settings) -> bool {
    let tag = settings.managed_tag.as_ref();
    tag.is_none_or(|tag| group.tags.get(&tag.key).is_some_and(|value| tag.allows(value)))
}

fn of_group(group: &Group, settings: &Settings, region: &str) -> Vec<Finding> {
    let hooks: Vec<&GroupHook> = group.terminate_hooks().collect();
    let (ours, others): (Vec<&GroupHook>, Vec<&GroupHook>) =
        hooks.iter().copied().partition(|hook| decision::foreign_hook(&hook.name, settings).is_none());
    // EKS has hooks of its own on its node groups.
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

/// An instance whose pods could not leave, and whose group keeps such instances.
fn kept(group: &Group, instance: &str, region: &str) -> Finding {
    let what = format!(
        "is kept by Auto Scaling group {}, because its pods could not leave: it costs money, and its node stays cordoned",
        group.name
    );
    let to_do = "see in its receipt which pods are left and what blocks them; when they have left, end it";
    let object = format!("instance {instance}");
    Finding::new(FindingId::InstanceKept, Severity::Warn, object, what, to_do).with_command(format!(
        "aws autoscaling terminate-instance-in-auto-scaling-group --instance-id {} \
         --no-should-decrement-desired-capacity --region {region}",
        quoted(instance)
    ))
}

/// The role may hold and complete the hooks of groups with a tag only, and this one lacks it.
fn denied(group: &Group, settings: &Settings, region: &str) -> Option<Finding> {
    let tag = settings.hook_group_tag.as_ref().filter(|tag| !tag.is_in(&group.tags))?;
    let what = format!(
        "has a hook of ours and lacks the tag {tag}, which HookGroupTag asks for: IAM denies what its hooks are \
         told, so that each instance hangs until the hook's timeout"
    );
    let to_do = "give the group the tag, or take its hook out of the parameter Hooks";
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

/// Another's hook. Nobody but who has put it there knows whether somebody completes it.
fn left(group: &Group, hook: &GroupHook) -> Finding {
    let (severity, notified) = match &hook.notifies {
        Some(target) => (Severity::Info, format!("tells {target} of each termination")),
        None => (Severity::Warn, "tells nobody but the event bus of a termination".to_owned()),
    };
    let what = format!(
        "is none that Hooks names, and {notified}: if nobody completes it, each instance waits for it for {} s \
         after its drain",
        hook.waits.timeout.as_secs()
    );
    let to_do =
        "if it is Spillway's, name it in the parameter Hooks; if nobody's, delete it; else leave it to its owner";
    Finding::new(FindingId::HookLeftToOthers, severity, name(group, hook), what, to_do)
}

/// The names that the setting has and no group: a slip of the pen, or a group that has gone. The default alone is none:
/// an account without a hook of that name is told of each group.
pub(super) fn unused(groups: &[Group], settings: &Settings) -> Check {
    let is_used = |name: &String| {
        let mut hooks = groups.iter().flat_map(|group| &group.hooks);
        name == SPILLWAY || hooks.any(|hook| hook.name == *name)
    };
    let finding = |name: &String| {
        let what = "is named in Hooks, and no Auto Scaling group with nodes in these clusters has it: either the \
                    name is misspelt, or its group waits for nobody";
        let to_do = "correct the parameter Hooks, or put the hook on its group";
        Finding::new(FindingId::HookOfNoGroup, Severity::Warn, format!("hook {name}"), what, to_do)
    };
    let findings = settings.hooks.iter().filter(|name| !is_used(name)).map(finding).collect();
    Check::made(CheckId::HookNames, format!("the hooks that are ours: {}", settings.hooks.join(", ")), findings)
}

fn missing(group: &Group, others: &[&GroupHook], settings: &Settings, region: &str) -> Finding {
    let why = match others {
        [] => "has no terminate hook".to_owned(),
        [first, ..] => format!("has terminate hooks, such as {}, and Hooks names none of them", first.name),
    };
    let what = format!("{why}: scale-in, instance refresh and rebalancing end its nodes without a drain");
    let default_result = if group.keeps_abandoned { LifecycleResult::Abandon } else { LifecycleResult::Continue };
    let to_do = "put a hook on it, or name the one that is Spillway's in the parameter Hooks; if no group is to wait, take \
                 terminate out of the parameter DrainOn";
    Finding::new(FindingId::HookMissing, Severity::Fail, format!("Auto Scaling group {}", group.name), what, to_do)
        .with_command(put(group, SPILLWAY, good_timeout(settings), default_result, region))
}

fn short(group: &Group, hook: &GroupHook, settings: &Settings, region: &str) -> Option<Finding> {
    let (timeout, good) = (hook.waits.timeout, good_timeout(settings));
    if timeout >= FIRST_RETRY {
        return None;
    }
    let what = format!(
        "waits {} s for a sign of life: if the first attempt at a notice fails, the instance is gone before Lambda's \
         retry after a minute. It waits {} s in all, however often it is told to",
        timeout.as_secs(),
        hook.waits.total.as_secs(),
    );
    let to_do = format!(
        "let it wait for {} s; heartbeats hold it for as long as the drain takes, and only a failure lasts longer",
        good.as_secs()
    );
    let finding = Finding::new(FindingId::HookTimeoutShort, Severity::Warn, name(group, hook), what, to_do);
    Some(finding.with_command(put(group, &hook.name, good, hook.default_result, region)))
}

/// Auto Scaling waits for 100 times the timeout, whatever our setting says.
fn shorter_than_set(group: &Group, hook: &GroupHook, settings: &Settings, region: &str) -> Option<Finding> {
    let (waits, set) = (hook.waits.total.as_secs(), settings.hook_max_wait.as_secs());
    if hook.waits.timeout < FIRST_RETRY || waits >= set {
        return None;
    }
    let what = format!("waits {waits} s in all, and HookMaxWaitS is {set}: a drain has no longer than the hook");
    let to_do = "give the hook a longer timeout: Auto Scaling waits for 100 times as long, and for 48 hours at most";
    let finding = Finding::new(FindingId::HookWaitsShorterThanSet, Severity::Warn, name(group, hook), what, to_do);
    Some(finding.with_command(put(group, &hook.name, least_timeout(settings), hook.default_result, region)))
}

/// Finds a default result that is wrong for its group. A group that keeps instances needs ABANDON, which makes it keep one. Any
/// other group needs CONTINUE, because ABANDON skips its other hooks.
fn unanswered(group: &Group, hook: &GroupHook, hooks: usize, region: &str) -> Option<Finding> {
    if group.keeps_abandoned {
        return (hook.default_result == LifecycleResult::Continue).then(|| continued(group, hook, region));
    }
    if hook.default_result == LifecycleResult::Continue {
        return None;
    }
    let (severity, follows) = if hooks > 1 {
        (Severity::Warn, "the group's other terminate hooks are not waited for")
    } else {
        (Severity::Info, "that is the same as CONTINUE while it is the group's only terminate hook")
    };
    let what = format!("is abandoned when nobody answers in time (DefaultResult ABANDON): {follows}");
    let finding = Finding::new(FindingId::HookDefaultAbandon, severity, name(group, hook), what, "let it continue");
    Some(finding.with_command(put(group, &hook.name, hook.waits.timeout, LifecycleResult::Continue, region)))
}

/// The group keeps an instance whose pods could not leave, but not if nobody answers.
fn continued(group: &Group, hook: &GroupHook, region: &str) -> Finding {
    let what = "goes on when nobody answers in time (DefaultResult CONTINUE), though the group keeps instances that are \
                abandoned: if Spillway cannot work, the instance goes with its pods";
    let finding =
        Finding::new(FindingId::HookDefaultContinue, Severity::Warn, name(group, hook), what, "have it abandoned");
    finding.with_command(put(group, &hook.name, hook.waits.timeout, LifecycleResult::Abandon, region))
}

fn name(group: &Group, hook: &GroupHook) -> String {
    format!("hook {} of Auto Scaling group {}", hook.name, group.name)
}

/// The shortest timeout by which a hook can be held for as long as the settings want.
fn least_timeout(settings: &Settings) -> Duration {
    Duration::from_secs(settings.hook_max_wait.as_secs().div_ceil(100))
}

fn good_timeout(settings: &Settings) -> Duration {
    GOOD_TIMEOUT.max(least_timeout(settings))
}

/// A command that makes a hook, or changes one. It names whatever Auto Scaling would otherwise set to its own default.
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
mod tests;
