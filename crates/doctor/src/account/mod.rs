//! Runs the self-test's checks of the AWS account.

mod bus;
mod drainers;
mod dry_run;
mod event_sources;
mod groups;
mod hooks;
mod karpenter;
mod pattern;
mod replacements;
mod rights;
mod rules;
pub(super) mod variables;

use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::Context;
use spillway_drainer::aws::CallError;
use spillway_settings::Settings;
use tokio::time::Instant;

use crate::catalogue::{CheckId, FindingId};
use crate::report::Check;
use crate::retry_end;
use bus::Rule;
use drainers::Deployed;
use groups::Group;
use karpenter::Karpenter;

pub(super) async fn checks(
    context: &Context,
    clusters: &[ClusterName],
    invocation: &Invocation,
    end: Instant,
) -> Vec<Check> {
    let Context { settings, ec2, autoscaling, eventbridge, itself, .. } = context;
    let (function, region) = (unqualified(&invocation.function), invocation.home.region.as_str());
    let (rules, event_sources, groups, karpenter) = tokio::join!(
        bus::rules(eventbridge, end),
        event_sources::run_check(itself, region, end),
        groups::of(autoscaling, clusters, end),
        karpenter::run_check(ec2, retry_end(end))
    );

    let is_tagged = |group: &&Group| settings.hook_group_tag.as_ref().is_none_or(|tag| tag.is_in(&group.tags));
    let group = groups.as_ref().ok().and_then(|groups| groups.iter().find(is_tagged));
    let mut checks = vec![
        variables::run_check(settings),
        dry_run::run_check(settings),
        rights::run_check(context, group, invocation, end).await,
    ];
    checks.extend([about_rules(&rules, settings, invocation), event_sources]);
    if let Ok(rules) = &rules {
        let groups = groups.as_deref().unwrap_or_default();
        // An error counts as no nodes: the check of the rights reports a missing right.
        let karpenter = karpenter.unwrap_or(Karpenter::HasNone);
        checks.push(drainers::run_check(rules, groups, karpenter, Deployed { function, region, settings }));
    }
    checks.extend(about_hooks(&groups, clusters, settings, region));
    checks.extend(groups.as_ref().ok().and_then(|groups| replacements::run_check(groups, settings)));
    checks
}

fn about_rules(rules: &Result<Vec<Rule>, CallError>, settings: &Settings, invocation: &Invocation) -> Check {
    let region = &invocation.home.region;
    match rules {
        Ok(rules) => rules::run_check(rules, unqualified(&invocation.function), settings, region),
        Err(error) => {
            let what = "cannot list the rules of the event bus and their targets";
            Check::not_answered(CheckId::Rules, FindingId::RulesUnknown, error, what)
        }
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
            let of_clusters = clusters.iter().map(|cluster| hooks::run_check(groups, cluster, settings, region));
            [hooks::unused(groups, settings)].into_iter().chain(of_clusters).collect()
        }
        Err(error) => {
            let what = "cannot list the Auto Scaling groups and their hooks";
            vec![Check::not_answered(CheckId::Hooks, FindingId::GroupsUnknown, error, what)]
        }
    }
}

/// Removes the version or alias from a function's ARN.
fn unqualified(arn: &str) -> &str {
    let end = arn.match_indices(':').nth(6).map_or(arn.len(), |(at, _)| at);
    &arn[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_alias_are_removed() {
        let arn = "arn:aws:lambda:us-east-1:123456789012:function:spillway";
        for invoked in [arn.to_owned(), format!("{arn}:7"), format!("{arn}:live")] {
            assert_eq!(unqualified(&invoked), arn);
        }
        assert_eq!(unqualified(""), "");
    }
}
