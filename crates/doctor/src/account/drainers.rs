//! Finds other programs that drain the same nodes: targets of EventBridge rules or of lifecycle hooks. Pure.
//!
//! AWS terminates the instance when one program completes the lifecycle hook, even if another program still evicts pods.

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

/// AWS services that may start a drain if they are the target of an EventBridge rule.
const ACTING: [&str; 6] = ["sqs", "lambda", "states", "ecs", "batch", "ssm"];
/// Id that Karpenter's template and Terraform modules give the target of their EventBridge rules.
const KARPENTERS_TARGET: &str = "KarpenterInterruptionQueueTarget";

#[derive(Debug, Clone, Copy)]
pub(super) struct Deployed<'a> {
    /// ARN of Spillway's Lambda function, without a version.
    pub(super) function: &'a str,
    pub(super) region: &'a str,
    pub(super) settings: &'a Settings,
}

#[derive(Debug, Default)]
struct Received {
    rules: BTreeSet<String>,
    notices: BTreeSet<&'static str>,
    is_karpenters: bool,
}

pub(super) fn run_check(rules: &[Rule], groups: &[Group], karpenter: Karpenter, deployed: Deployed<'_>) -> Check {
    let Deployed { function, region, settings } = deployed;
    let others = others(rules, function, settings);
    let by_rules = others.iter().filter_map(|(target, received)| finding(target, received, settings, region));
    let by_hooks = groups.iter().flat_map(|group| notifying_hooks(group, settings, region));
    let findings: Vec<_> = by_rules
        .chain(by_hooks)
        .chain(queue_missing(rules, karpenter, settings))
        .chain(rebalance_loop(karpenter, settings))
        .collect();
    let what = match findings.as_slice() {
        [] => "no other program that can act receives the same notices",
        _ => "other programs may act on the same nodes",
    };
    Check::made(ID, what, findings)
}

/// Returns the rule targets that may drain nodes, except `function`. Considers only rules for enabled notices.
fn others<'a>(rules: &'a [Rule], function: &str, settings: &Settings) -> BTreeMap<&'a str, Received> {
    let mut others: BTreeMap<&str, Received> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.state == State::Enabled) {
        let contested =
            EVENT_PATTERNS.iter().filter(|event| decision::is_enabled(event.kind, settings) && rule.matches(event));
        let notices: BTreeSet<_> = contested.map(|event| event.what).collect();
        let targets = rule.targets.iter().filter(|target| target.arn != function && ACTING.contains(&service(target)));
        for target in targets.filter(|_| !notices.is_empty()) {
            let received = others.entry(target.arn.as_str()).or_default();
            received.rules.insert(rule.name.clone());
            received.notices.extend(&notices);
            received.is_karpenters |= target.id == KARPENTERS_TARGET;
        }
    }
    others
}

/// Returns the service in the ARN of a target: `arn:aws:SERVICE:…`.
fn service(target: &RuleTarget) -> &str {
    target.arn.split(':').nth(2).unwrap_or_default()
}

/// Warns if Spillway ignores Karpenter's nodes, and no rule sends spot interruptions to an SQS queue.
fn queue_missing(rules: &[Rule], karpenter: Karpenter, settings: &Settings) -> Option<Finding> {
    let is_spot = |event: &&EventPattern| event.kind == Kind::Spot && decision::is_enabled(event.kind, settings);
    let spot = EVENT_PATTERNS.iter().find(is_spot)?;
    let feeds_a_queue = |rule: &Rule| {
        rule.state == State::Enabled && rule.matches(spot) && rule.targets.iter().any(|target| service(target) == "sqs")
    };
    let is_left = karpenter == Karpenter::HasNodes && settings.karpenter != KarpenterNodes::NodeClaim;
    if !is_left || rules.iter().any(feeds_a_queue) {
        return None;
    }
    let what =
        "are left to Karpenter, but no rule sends spot interruptions to a queue: interrupted nodes are not drained";
    let to_do = "give Karpenter its interruption queue (settings.interruptionQueue and the rules of its template), or set the \
                 parameter Karpenter to nodeclaim";
    Some(Finding::new(FindingId::KarpenterQueueMissing, Severity::Warn, "Karpenter's nodes", what, to_do))
}

/// Warns if Spillway deletes Karpenter's nodes at rebalance recommendations: new nodes may soon get recommendations, too.
fn rebalance_loop(karpenter: Karpenter, settings: &Settings) -> Option<Finding> {
    let is_set =
        settings.karpenter == KarpenterNodes::NodeClaim && settings.policy(NoticeFamily::Rebalance) == Policy::Drain;
    if karpenter != Karpenter::HasNodes || !is_set {
        return None;
    }
    let what = "are deleted at each rebalance recommendation, although most of these instances are never interrupted; Karpenter \
                may launch the same capacity again, which gets the next recommendation";
    let to_do = "remove rebalance from the parameter DrainOn: interruptions still drain them";
    Some(Finding::new(FindingId::RebalanceLoop, Severity::Warn, "Karpenter's nodes", what, to_do))
}

fn finding(target: &str, received: &Received, settings: &Settings, region: &str) -> Option<Finding> {
    let notices = received.notices.iter().copied().collect::<Vec<_>>().join(", ");
    let rules = received.rules.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if received.is_karpenters {
        return karpenters(target, &rules, settings);
    }
    let what = format!(
        "receives the same notices ({notices}) by the rules {rules}. If aws-node-termination-handler or another drainer reads \
         them, both drain the same nodes, and the first to complete a hook ends the instance"
    );
    let to_do = "find its reader. During a migration, separate the two by a tag (docs/from-nth.md), then disable its rules. If \
                 the reader only records notices, leave it";
    let first = received.rules.first().map_or("", String::as_str);
    let finding = Finding::new(FindingId::SecondDrainer, Severity::Warn, target, what, to_do);
    Some(finding.with_command(format!("aws events disable-rule --name {} --region {region}", quoted(first))))
}

/// Warns about Karpenter's interruption queue if Spillway also deletes Karpenter's NodeClaims.
fn karpenters(target: &str, rules: &str, settings: &Settings) -> Option<Finding> {
    let what = format!(
        "is Karpenter's interruption queue (rules {rules}), and the parameter Karpenter is nodeclaim: both delete the \
         NodeClaims of the same nodes"
    );
    let to_do = "use one of them: set Karpenter=off, or remove Karpenter's interruption queue";
    (settings.karpenter == KarpenterNodes::NodeClaim)
        .then(|| Finding::new(FindingId::KarpenterQueue, Severity::Warn, target, what, to_do))
}

/// Warns about Spillway's lifecycle hooks that notify a queue or topic. A program that receives these notifications may
/// complete the hook during a drain.
fn notifying_hooks<'a>(
    group: &'a Group,
    settings: &'a Settings,
    region: &'a str,
) -> impl Iterator<Item = Finding> + 'a {
    let ours = group.terminate_hooks().filter(move |hook| decision::foreign_hook(&hook.name, settings).is_none());
    ours.filter(move |_| settings.policy(NoticeFamily::Terminate) != Policy::Ignore).filter_map(move |hook| {
        let (target, group) = (hook.notifies.as_ref()?, &group.name);
        let what = format!("also notifies {target}: its reader may complete the hook during a drain");
        let to_do = "find the reader. If it is a drainer, remove the notification target; if not, give Spillway a hook of its \
                     own, and name that hook in the parameter Hooks";
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
        let check = run_check(rules, &[], karpenter, deployed);
        check.findings.into_iter().map(|finding| (finding.id, finding.severity)).collect()
    }

    #[test]
    fn other_target_that_can_act_is_a_second_drainer() {
        let second = [(FindingId::SecondDrainer, Severity::Warn)];
        assert_eq!(found(&[spot(QUEUE)], &[]), second);
        assert_eq!(found(&[spot(QUEUE), spot(QUEUE)], &[]), second, "one for all its rules");
        let everything = rule(&json!({"source": ["aws.autoscaling"]}), &format!("{FUNCTION}-of-another-stack"));
        assert_eq!(found(&[everything], &[]), second);
        assert_eq!(found(&[spot(FUNCTION)], &[]), []);
        assert_eq!(found(&[spot("arn:aws:sns:us-east-1:123456789012:topic")], &[]), []);
        assert_eq!(found(&[spot("arn:aws:logs:us-east-1:123456789012:log-group:/all")], &[]), []);
        assert_eq!(found(&[Rule { state: State::Disabled, ..spot(QUEUE) }], &[]), []);
        assert_eq!(found(&[spot(QUEUE)], &[("SPILLWAY_DRAIN_ON", "terminate")]), []);
    }

    #[test]
    fn karpenters_queue_and_rebalance_are_found_with_nodeclaim() {
        let targets = vec![RuleTarget { id: KARPENTERS_TARGET.to_owned(), arn: QUEUE.to_owned() }];
        let karpenters = [Rule { targets, ..spot(QUEUE) }];
        assert_eq!(found(&karpenters, &[]), []);
        let both = found(&karpenters, &[("SPILLWAY_KARPENTER", "nodeclaim")]);
        assert_eq!(both, [(FindingId::KarpenterQueue, Severity::Warn)]);
        let both = [("SPILLWAY_KARPENTER", "nodeclaim"), ("SPILLWAY_DRAIN_ON", "rebalance")];
        let found = |variables: &[(&str, &str)]| found_beside(Karpenter::HasNodes, &[], variables);
        assert_eq!(found(&both), [(FindingId::RebalanceLoop, Severity::Warn)]);
        assert_eq!(found(&both[..1]), []);
        assert_eq!(found_beside(Karpenter::HasNone, &[], &both), []);
    }

    #[test]
    fn karpenter_needs_an_enabled_rule_for_its_queue() {
        let found = |rules: &[Rule], variables: &[(&str, &str)]| found_beside(Karpenter::HasNodes, rules, variables);
        let missing = [(FindingId::KarpenterQueueMissing, Severity::Warn)];
        assert_eq!(found(&[], &[]), missing);
        assert_eq!(found(&[spot(FUNCTION)], &[]), missing);
        assert_eq!(found(&[Rule { state: State::Disabled, ..spot(QUEUE) }], &[]), missing);
        let targets = vec![RuleTarget { id: KARPENTERS_TARGET.to_owned(), arn: QUEUE.to_owned() }];
        assert_eq!(found(&[Rule { targets, ..spot(QUEUE) }], &[]), []);
        assert_eq!(found(&[], &[("SPILLWAY_KARPENTER", "nodeclaim")]), []);
    }
}
