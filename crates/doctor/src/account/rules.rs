//! Checks that each enabled kind of notice reaches the function through an enabled EventBridge rule. Pure.

use spillway_core::decision;
use spillway_notice::event_patterns::{EVENT_PATTERNS, EventPattern};
use spillway_settings::{NoticeFamily, Policy, Settings};

use super::bus::{Rule, State};
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, REVERT_DRIFT, Severity, quoted};

const ID: CheckId = CheckId::Rules;

pub(super) fn run_check(rules: &[Rule], function: &str, settings: &Settings, region: &str) -> Check {
    let ours: Vec<&Rule> = rules.iter().filter(|rule| rule.leads_to(function)).collect();
    let wanted: Vec<&EventPattern> =
        EVENT_PATTERNS.iter().filter(|event| decision::is_enabled(event.kind, settings)).collect();
    let mut findings: Vec<Finding> = Vec::new();
    for event in &wanted {
        let mut matching = ours.iter().filter(|rule| rule.matches(event)).peekable();
        let finding = match matching.peek().copied() {
            None => Some(missing(event, settings)),
            Some(first) => {
                matching.all(|rule| rule.state == State::Disabled).then(|| disabled(first, event, settings, region))
            }
        };
        // A rule that matches several kinds gets one finding.
        findings.extend(finding.filter(|new| findings.iter().all(|known| known.object != new.object)));
    }
    let none_missing = findings.is_empty();
    findings.extend(spot_switched_off(settings));
    let what = if none_missing {
        format!("all {} kinds of wanted events have an enabled rule", wanted.len())
    } else {
        format!("some of {} kinds of wanted events do not reach the function", wanted.len())
    };
    Check::made(ID, what, findings)
}

/// Warns if neither `DrainOn` nor `CordonOn` contains `spot`.
fn spot_switched_off(settings: &Settings) -> Option<Finding> {
    let what = "do not name spot: interrupted spot instances are not drained";
    let to_do = "add spot to the parameter DrainOn, which is the whole list; no change is needed if another tool drains them or \
                 there are no spot instances";
    let object = "the parameters DrainOn and CordonOn";
    (settings.policy(NoticeFamily::Spot) == Policy::Ignore)
        .then(|| Finding::new(FindingId::SpotSwitchedOff, Severity::Warn, object, what, to_do))
}

fn disabled(rule: &Rule, event: &EventPattern, settings: &Settings, region: &str) -> Finding {
    let name = &rule.name;
    let what = format!("is disabled: the function receives no {}", event.what);
    let to_do = format!("enable the rule{}", or_switch_off(event, settings));
    Finding::new(FindingId::RuleDisabled, Severity::Fail, format!("rule {name}"), what, to_do)
        .with_command(format!("aws events enable-rule --name {} --region {region}", quoted(name)))
}

fn missing(event: &EventPattern, settings: &Settings) -> Finding {
    let what = format!("does not exist: the function receives no {}", event.what);
    let to_do = format!("{REVERT_DRIFT}{}", or_switch_off(event, settings));
    Finding::new(FindingId::RuleMissing, Severity::Fail, format!("the rule for {}", event.what), what, to_do)
}

fn or_switch_off(event: &EventPattern, settings: &Settings) -> String {
    format!("; or, if you do not need these notices, {}", decision::switch_of(event.kind, settings).off())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use spillway_core::test_support::settings;

    use super::super::bus::RuleTarget;
    use super::super::pattern::Pattern;
    use super::*;
    use crate::report::CheckStatus;

    /// Settings that want every event.
    const ALL: [(&str, &str); 3] =
        [("SPILLWAY_CORDON_ON", "rebalance"), ("SPILLWAY_LAUNCH", "ABANDON"), ("SPILLWAY_TAINTS", "out-of-service")];
    const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:spillway";

    /// Rules for all events, as in the template.
    fn rules() -> Vec<Rule> {
        let rule = |event: &EventPattern| {
            let mut detail: Map<_, _> =
                event.detail.iter().map(|(key, value)| ((*key).to_owned(), json!([value]))).collect();
            detail.insert("Action".to_owned(), json!([{"exists": detail.contains_key("Action")}]));
            let pattern = json!({"source": [event.source], "detail-type": [event.detail_type], "detail": detail});
            Rule {
                name: format!("spillway-{}", event.what.replace(' ', "-")),
                state: State::Enabled,
                pattern: Pattern::parse(&pattern.to_string()).unwrap(),
                targets: vec![RuleTarget { id: "1".to_owned(), arn: FUNCTION.to_owned() }],
            }
        };
        EVENT_PATTERNS.iter().map(rule).collect()
    }

    fn found(rules: &[Rule], variables: &[(&str, &str)]) -> Vec<(FindingId, String)> {
        let check = run_check(rules, FUNCTION, &settings(variables), "us-east-1");
        assert_eq!(check.status, if check.findings.is_empty() { CheckStatus::Ok } else { CheckStatus::Fail });
        check.findings.into_iter().map(|finding| (finding.id, finding.object)).collect()
    }

    #[test]
    fn disabled_or_missing_rule_of_a_wanted_event_is_found() {
        assert_eq!(found(&rules(), &ALL), []);
        for at in 0..EVENT_PATTERNS.len() {
            let mut changed = rules();
            changed[at].state = State::Disabled;
            let name = changed[at].name.clone();
            assert_eq!(found(&changed, &ALL), [(FindingId::RuleDisabled, format!("rule {name}"))]);
            changed.remove(at);
            assert_eq!(
                found(&changed, &ALL),
                [(FindingId::RuleMissing, format!("the rule for {}", EVENT_PATTERNS[at].what))]
            );
        }
        let without_launch = |rule: &Rule| rule.name != "spillway-launch-hooks";
        let rules: Vec<Rule> = rules().into_iter().filter(without_launch).collect();
        assert_eq!(found(&rules, &[("SPILLWAY_LAUNCH", "off")]), []);
        let without_down = |rule: &Rule| rule.name != "spillway-instances-that-have-stopped-or-ended";
        let mut rules: Vec<Rule> = rules.into_iter().filter(without_down).collect();
        assert_eq!(found(&rules, &[]), [], "only the taint needs this event");
        // A rule of another function does not count.
        rules[0].targets[0].arn = format!("{FUNCTION}-of-another-stack");
        assert_eq!(found(&rules, &[]), [(FindingId::RuleMissing, "the rule for spot interruptions".to_owned())]);
    }

    #[test]
    fn lists_without_spot_are_a_warning() {
        let check = run_check(&rules(), FUNCTION, &settings(&[("SPILLWAY_DRAIN_ON", "rebalance")]), "us-east-1");
        let ids: Vec<_> = check.findings.iter().map(|finding| finding.id).collect();
        assert_eq!((check.status, ids), (CheckStatus::Warn, vec![FindingId::SpotSwitchedOff]));
        assert_eq!(found(&rules(), &[("SPILLWAY_DRAIN_ON", "spot,rebalance")]), []);
        assert_eq!(found(&rules(), &[("SPILLWAY_DRAIN_ON", "rebalance"), ("SPILLWAY_CORDON_ON", "spot")]), []);
    }
}
