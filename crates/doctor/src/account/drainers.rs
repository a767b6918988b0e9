//! Who else would drain the same nodes: rules that lead the same notices to somebody who can act on them, and hooks that
//! tell somebody beside us. Pure.
//!
//! A second drainer does not wait for ours, and whoever completes a hook first ends the instance for both.

use std::collections::{BTreeMap, BTreeSet};

use spillway_core::decision;
use spillway_notice::Kind;
use spillway_notice::event_patterns::{EVENT_PATTERNS, EventPattern};
use spillway_settings::{KarpenterNodes, NoticeFamily, Policy, Settings};

use super::bus::{Rule, RuleTarget, State};
use super::groups::Group;
use super::karpenter::Karpenter;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, quoted};

const ID: CheckId = CheckId::Drainers;

/// The services behind a target that can act on a notice. A topic, a log or a stream only tells of it.
const ACTING: [&str; 6] = ["sqs", "lambda", "states", "ecs", "batch", "ssm"];
/// The name of the target in Karpenter's own template and in the Terraform modules for it.
const KARPENTERS_TARGET: &str = "KarpenterInterruptionQueueTarget";

#[derive(Debug, Clone, Copy)]
pub(super) struct Deployed<'a> {
    /// Its ARN, without a version.
    pub(super) function: &'a str,
    pub(super) region: &'a str,
    pub(super) settings: &'a Settings,
}

#[derive(Debug, Default)]
struct Gets {
    rules: BTreeSet<String>,
    notices: BTreeSet<&'static str>,
    is_karpenters: bool,
}

pub(super) fn look(rules: &[Rule], groups: &[Group], karpenter: Karpenter, deployed: Deployed<'_>) -> Check {
    let Deployed { function, region, settings } = deployed;
    let others = others(rules, function, settings);
    let by_rules = others.iter().filter_map(|(target, gets)| finding(target, gets, settings, region));
    let by_hooks = groups.iter().flat_map(|group| tells_another(group, settings, region));
    let findings: Vec<_> =
        by_rules.chain(by_hooks).chain(deaf(rules, karpenter, settings)).chain(loops(karpenter, settings)).collect();
    let what = match findings.as_slice() {
        [] => "nobody else gets the notices on the event bus who could act on them",
        _ => "who else there is for the same nodes",
    };
    Check::made(ID, what, findings)
}

/// Who else gets the notices that we act on, and can act on them.
fn others<'a>(rules: &'a [Rule], function: &str, settings: &Settings) -> BTreeMap<&'a str, Gets> {
    let mut others: BTreeMap<&str, Gets> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.state == State::Enabled) {
        let contested = EVENT_PATTERNS
            .iter()
            .filter(|event| decision::is_enabled(event.kind, settings) && rule.lets_through(event));
        let notices: BTreeSet<_> = contested.map(|event| event.what).collect();
        let targets = rule.targets.iter().filter(|target| target.arn != function && ACTING.contains(&service(target)));
        for target in targets.filter(|_| !notices.is_empty()) {
            let gets = others.entry(target.arn.as_str()).or_default();
            gets.rules.insert(rule.name.clone());
            gets.notices.extend(&notices);
            gets.is_karpenters |= target.id == KARPENTERS_TARGET;
        }
    }
    others
}

/// The service of a target, as its ARN names it: `arn:aws:SERVICE:…`.
fn service(target: &RuleTarget) -> &str {
    target.arn.split(':').nth(2).unwrap_or_default()
}

/// Says that no rule leads spot interruptions to Karpenter, which gets of them by a queue only, though its nodes are left
/// to it.
fn deaf(rules: &[Rule], karpenter: Karpenter, settings: &Settings) -> Option<Finding> {
    let is_spot = |event: &&EventPattern| event.kind == Kind::Spot && decision::is_enabled(event.kind, settings);
    let spot = EVENT_PATTERNS.iter().find(is_spot)?;
    let gets = |rule: &Rule| {
        rule.state == State::Enabled
            && rule.lets_through(spot)
            && rule.targets.iter().any(|target| service(target) == "sqs")
    };
    if karpenter != Karpenter::HasNodes || settings.karpenter == KarpenterNodes::NodeClaim || rules.iter().any(gets) {
        return None;
    }
    let what = "are left to Karpenter, and no rule leads spot interruptions to a queue, by which it gets them: when EC2 \
                takes one back, nobody drains it";
    let to_do = "give Karpenter its interruption queue (settings.interruptionQueue, and the rules of its own template); or \
                 set the parameter Karpenter to nodeclaim";
    Some(Finding::new(FindingId::KarpenterQueueMissing, Severity::Warn, "Karpenter's nodes", what, to_do))
}

/// Says that Karpenter's nodes may be replaced again and again: a recommendation is about the capacity, and the next node may
/// well be of the same.
fn loops(karpenter: Karpenter, settings: &Settings) -> Option<Finding> {
    let is_set =
        settings.karpenter == KarpenterNodes::NodeClaim && settings.policy(NoticeFamily::Rebalance) == Policy::Drain;
    if karpenter != Karpenter::HasNodes || !is_set {
        return None;
    }
    let what = "are ended at each rebalance recommendation, though most of those instances are never interrupted; Karpenter may \
                launch the same capacity again, which gets the next recommendation";
    let to_do = "take rebalance out of the parameter DrainOn: an interruption still drains them";
    Some(Finding::new(FindingId::RebalanceLoop, Severity::Warn, "Karpenter's nodes", what, to_do))
}

fn finding(target: &str, gets: &Gets, settings: &Settings, region: &str) -> Option<Finding> {
    let all = |names: Vec<&str>| names.join(", ");
    let notices = all(gets.notices.iter().copied().collect());
    let rules = all(gets.rules.iter().map(String::as_str).collect());
    if gets.is_karpenters {
        return karpenters(target, &rules, settings);
    }
    let what = format!(
        "gets the same notices ({notices}) by the rules {rules}. If it is a queue of aws-node-termination-handler, or \
         another function that drains, both drain the same nodes, and whoever completes a hook first ends the instance"
    );
    let to_do = "see who reads it. While you change over, keep them apart by a tag (docs/from-nth.md); then disable its \
                 rules. If it only takes note, leave it";
    let first = gets.rules.first().map_or("", String::as_str);
    let finding = Finding::new(FindingId::SecondDrainer, Severity::Warn, target, what, to_do);
    Some(finding.with_command(format!("aws events disable-rule --name {} --region {region}", quoted(first))))
}

/// Karpenter gets of its own nodes there, which are left to it unless the settings say otherwise.
fn karpenters(target: &str, rules: &str, settings: &Settings) -> Option<Finding> {
    let what = format!(
        "is Karpenter's queue, by the rules {rules}, and Karpenter is nodeclaim: both delete the NodeClaims of the same nodes"
    );
    let to_do = "choose one: Karpenter=off, or Karpenter without its interruption queue";
    (settings.karpenter == KarpenterNodes::NodeClaim)
        .then(|| Finding::new(FindingId::KarpenterQueue, Severity::Warn, target, what, to_do))
}

/// The hooks that tell a queue or topic of their own, as NTH's were set up before it could hear the bus.
fn tells_another<'a>(group: &'a Group, settings: &'a Settings, region: &'a str) -> impl Iterator<Item = Finding> + 'a {
    let ours = group.terminate_hooks().filter(move |hook| decision::foreign_hook(&hook.name, settings).is_none());
    ours.filter(move |_| settings.policy(NoticeFamily::Terminate) != Policy::Ignore).filter_map(move |hook| {
        let (target, group) = (hook.notifies.as_ref()?, &group.name);
        let what = format!("tells {target} too: whoever reads there may complete it while Spillway still drains");
        let to_do = "see who reads it. If it is a drainer, take the notification target away; if not, give Spillway a hook \
                     of its own, and name that in the parameter Hooks";
        let hook = &hook.name;
        let object = format!("hook {hook} of Auto Scaling group {group}");
        Some(Finding::new(FindingId::HookNotificationTarget, Severity::Warn, object, what, to_do).with_command(format!(
            "aws autoscaling put-lifecycle-hook --auto-scaling-group-name {} --lifecycle-hook-name {} \
             --notification-target-arn '' --region {region}",
            quoted(group),
            quoted(hook)
        )))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use spillway_core::test_support::settings;

    use super::super::pattern::Pattern;
    use super::*;

    const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:spillway";
    const QUEUE: &str = "arn:aws:sqs:us-east-1:123456789012:nth";

    fn rule(pattern: &Value, target: &str) -> Rule {
        Rule {
            name: "MyK8sRule".to_owned(),
            state: State::Enabled,
            pattern: Pattern::parse(&pattern.to_string()).unwrap(),
            targets: vec![RuleTarget { id: "1".to_owned(), arn: target.to_owned() }],
        }
    }

    fn spot(target: &str) -> Rule {
        rule(&json!({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}), target)
    }

    fn found(rules: &[Rule], variables: &[(&str, &str)]) -> Vec<(FindingId, Severity)> {
        found_beside(Karpenter::HasNone, rules, variables)
    }

    fn found_beside(karpenter: Karpenter, rules: &[Rule], variables: &[(&str, &str)]) -> Vec<(FindingId, Severity)> {
        let deployed = Deployed { function: FUNCTION, region: "us-east-1", settings: &settings(variables) };
        let check = look(rules, &[], karpenter, deployed);
        check.findings.into_iter().map(|finding| (finding.id, finding.severity)).collect()
    }

    #[test]
    fn a_queue_that_gets_the_same_notices_is_a_second_drainer() {
        let second = [(FindingId::SecondDrainer, Severity::Warn)];
        assert_eq!(found(&[spot(QUEUE)], &[]), second);
        assert_eq!(found(&[spot(QUEUE), spot(QUEUE)], &[]), second, "one for all its rules");
        let everything = rule(&json!({"source": ["aws.autoscaling"]}), &format!("{FUNCTION}-of-another-stack"));
        assert_eq!(found(&[everything], &[]), second);
    }

    #[test]
    fn who_cannot_act_or_gets_nothing_of_ours_is_none() {
        assert_eq!(found(&[spot(FUNCTION)], &[]), []);
        assert_eq!(found(&[spot("arn:aws:sns:us-east-1:123456789012:topic")], &[]), []);
        assert_eq!(found(&[spot("arn:aws:logs:us-east-1:123456789012:log-group:/all")], &[]), []);
        assert_eq!(found(&[Rule { state: State::Disabled, ..spot(QUEUE) }], &[]), []);
        assert_eq!(found(&[spot(QUEUE)], &[("SPILLWAY_DRAIN_ON", "terminate")]), []);
    }

    #[test]
    fn karpenters_queue_is_none_unless_its_nodes_are_ours() {
        let targets = vec![RuleTarget { id: KARPENTERS_TARGET.to_owned(), arn: QUEUE.to_owned() }];
        let karpenters = [Rule { targets, ..spot(QUEUE) }];
        assert_eq!(found(&karpenters, &[]), []);
        let both = found(&karpenters, &[("SPILLWAY_KARPENTER", "nodeclaim")]);
        assert_eq!(both, [(FindingId::KarpenterQueue, Severity::Warn)]);
    }

    #[test]
    fn karpenters_nodes_that_are_ended_at_each_recommendation_may_go_round_for_ever() {
        let both = [("SPILLWAY_KARPENTER", "nodeclaim"), ("SPILLWAY_DRAIN_ON", "rebalance")];
        let found = |variables: &[(&str, &str)]| found_beside(Karpenter::HasNodes, &[], variables);
        assert_eq!(found(&both), [(FindingId::RebalanceLoop, Severity::Warn)]);
        assert_eq!(found(&both[..1]), []);
        assert_eq!(found_beside(Karpenter::HasNone, &[], &both), []);
    }

    #[test]
    fn karpenter_has_to_get_notices_of_its_nodes_unless_they_are_ours() {
        let found = |rules: &[Rule], variables: &[(&str, &str)]| found_beside(Karpenter::HasNodes, rules, variables);
        let deaf = [(FindingId::KarpenterQueueMissing, Severity::Warn)];
        assert_eq!(found(&[], &[]), deaf);
        assert_eq!(found(&[spot(FUNCTION)], &[]), deaf, "we leave them to it");
        assert_eq!(found(&[Rule { state: State::Disabled, ..spot(QUEUE) }], &[]), deaf);
        let targets = vec![RuleTarget { id: KARPENTERS_TARGET.to_owned(), arn: QUEUE.to_owned() }];
        assert_eq!(found(&[Rule { targets, ..spot(QUEUE) }], &[]), []);
        assert_eq!(found(&[], &[("SPILLWAY_KARPENTER", "nodeclaim")]), []);
    }
}
