//! The account: may the function call what a drain calls, does it hear the notices, and who else does?
//!
//! * `variables`: whether all variables are this version's (pure)
//! * `dry_run`: whether it acts on notices at all (pure)
//! * `rights`: each AWS call of a drain, made so that it changes nothing
//! * `bus`, `pattern`: the rules that hear our notices
//! * `rules`: whether ours are there and enabled (pure)
//! * `reach`: whether only the template's rules reach the function, and with their own events (pure)
//! * `maintenance`: whether a drain is scheduled for all maintenance that EC2 names
//! * `patient`: whether Lambda fetches drains that can wait
//! * `groups`: the Auto Scaling groups with nodes in our clusters
//! * `hooks`: whether they wait for us, and for how long (pure)
//! * `karpenter`: whether it has nodes
//! * `drainers`: who else would drain the same nodes (pure)
//! * `webhook`: whether the announcer can read the webhook's document

mod bus;
mod drainers;
mod dry_run;
mod groups;
mod hooks;
mod karpenter;
mod maintenance;
mod patient;
mod pattern;
mod reach;
mod rights;
mod rules;
pub(super) mod variables;
mod webhook;

use serde_json::Value;
use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::Context;
use spillway_drainer::aws::itself::GET_POLICY;
use spillway_drainer::aws::{self, CallError, Itself};
use spillway_settings::Settings;
use tokio::time::Instant;

use crate::asked_until;
use crate::report::Check;
use bus::Rule;
use drainers::Deployed;
use groups::Group;
use karpenter::Karpenter;

/// All checks of the account, until `end`.
pub(super) async fn checks(
    context: &Context,
    clusters: &[ClusterName],
    invocation: &Invocation,
    end: Instant,
) -> Vec<Check> {
    let Context { settings, ec2, autoscaling, eventbridge, itself, .. } = context;
    let (function, region) = (unqualified(&invocation.function), invocation.home.region.as_str());
    let (rules, policy, groups, karpenter, webhook) = tokio::join!(
        bus::rules(eventbridge, function, end),
        policy(itself, end),
        groups::of(autoscaling, clusters, end),
        karpenter::look(ec2, asked_until(end)),
        webhook::look(context, end)
    );

    let may_be_touched = |group: &&Group| settings.hook_group_tag.as_ref().is_none_or(|tag| tag.is_in(&group.tags));
    let some_group = groups.as_ref().ok().and_then(|groups| groups.iter().find(may_be_touched));
    let mut checks = vec![
        variables::look(settings),
        dry_run::look(settings),
        rights::look(context, some_group, invocation, end).await,
        maintenance::look(context, clusters, invocation, end).await,
        patient::look(settings, itself, region, end).await,
    ];
    checks.extend(about_rules(&rules, &policy, settings, invocation));
    if let Ok(rules) = &rules {
        let groups = groups.as_deref().unwrap_or_default();
        // Without the right nothing works, and the check of the rights says so.
        let karpenter = karpenter.unwrap_or(Karpenter::HasNone);
        checks.push(drainers::look(rules, groups, karpenter, Deployed { function, region, settings }));
    }
    checks.extend(about_hooks(&groups, clusters, settings, region));
    checks.push(webhook);
    checks
}

/// The checks of what reaches the function.
pub(super) async fn of_rules(context: &Context, invocation: &Invocation, end: Instant) -> Vec<Check> {
    let function = unqualified(&invocation.function);
    let (rules, policy) = tokio::join!(bus::rules(&context.eventbridge, function, end), policy(&context.itself, end));
    about_rules(&rules, &policy, &context.settings, invocation)
}

/// The checks of the groups' hooks.
pub(super) async fn of_hooks(
    context: &Context,
    clusters: &[ClusterName],
    invocation: &Invocation,
    end: Instant,
) -> Vec<Check> {
    let groups = groups::of(&context.autoscaling, clusters, end).await;
    about_hooks(&groups, clusters, &context.settings, &invocation.home.region)
}

async fn policy(itself: &Itself, end: Instant) -> Result<Vec<Value>, CallError> {
    aws::until(GET_POLICY, asked_until(end), || itself.policy()).await
}

fn about_rules(
    rules: &Result<Vec<Rule>, CallError>,
    policy: &Result<Vec<Value>, CallError>,
    settings: &Settings,
    invocation: &Invocation,
) -> Vec<Check> {
    let (function, home) = (unqualified(&invocation.function), &invocation.home);
    let deployed = reach::Deployed { function, region: &home.region, account: &home.account, stack: &settings.stack };
    match rules {
        Ok(rules) => vec![rules::look(rules, function, settings, &home.region), reach::look(rules, policy, deployed)],
        Err(error) => vec![rules::unknown(error)],
    }
}

fn about_hooks(
    groups: &Result<Vec<Group>, CallError>,
    clusters: &[ClusterName],
    settings: &Settings,
    region: &str,
) -> Vec<Check> {
    match groups {
        Ok(groups) => {
            let of_clusters = clusters.iter().map(|cluster| hooks::look(groups, cluster, settings, region));
            [hooks::unused(groups, settings)].into_iter().chain(of_clusters).collect()
        }
        Err(error) => vec![hooks::unknown(error)],
    }
}

/// The function's ARN without the version or alias by which it may have been invoked: rules lead to the function itself.
fn unqualified(arn: &str) -> &str {
    let end = arn.match_indices(':').nth(6).map_or(arn.len(), |(at, _)| at);
    &arn[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_or_an_alias_is_the_same_function() {
        let arn = "arn:aws:lambda:us-east-1:123456789012:function:spillway";
        for invoked in [arn.to_owned(), format!("{arn}:7"), format!("{arn}:live")] {
            assert_eq!(unqualified(&invoked), arn);
        }
        assert_eq!(unqualified(""), "");
    }
}
