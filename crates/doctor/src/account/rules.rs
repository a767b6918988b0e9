//! Whether this stack's own rules are there and enabled, for each kind of notice that the settings want. Pure.

use spillway_core::decision;
use spillway_notice::event_patterns::{EVENT_PATTERNS, EventPattern};
use spillway_settings::{NoticeFamily, Policy, Settings};

use super::bus::{Rule, State};
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, PUT_BACK, Severity, quoted};

const ID: CheckId = CheckId::Rules;

pub(super) fn look(rules: &[Rule], function: &str, settings: &Settings, region: &str) -> Check {
    let ours: Vec<&Rule> = rules.iter().filter(|rule| rule.leads_to(function)).collect();
    let wanted: Vec<&EventPattern> =
        EVENT_PATTERNS.iter().filter(|event| decision::is_enabled(event.kind, settings)).collect();
    let mut findings: Vec<Finding> = Vec::new();
    for event in &wanted {
        let mut hearing = ours.iter().filter(|rule| rule.lets_through(event)).peekable();
        let finding = match hearing.peek().copied() {
            None => Some(missing(event, settings)),
            Some(first) => {
                hearing.all(|rule| rule.state == State::Disabled).then(|| disabled(first, event, settings, region))
            }
        };
        // One rule may be for several.
        findings.extend(finding.filter(|new| findings.iter().all(|known| known.object != new.object)));
    }
    let none_missing = findings.is_empty();
    findings.extend(spot_switched_off(settings));
    let what = if none_missing {
        format!("for all {} kinds of events that the settings want there is a rule, and it is enabled", wanted.len())
    } else {
        format!("of {} kinds of events that the settings want, some do not reach the function", wanted.len())
    };
    Check::made(ID, what, findings)
}

/// Most who run Spillway run it for spot instances, and `DrainOn=rebalance` is easily taken for an addition.
fn spot_switched_off(settings: &Settings) -> Option<Finding> {
    let what = "do not name spot: nodes of spot instances that are interrupted are not drained";
    let to_do = "add spot to the parameter DrainOn, which is the whole list; or leave it so, if another tool drains them or there are no spot instances";
    let settings_off = "the parameters DrainOn and CordonOn";
    (settings.policy(NoticeFamily::Spot) == Policy::Ignore)
        .then(|| Finding::new(FindingId::SpotSwitchedOff, Severity::Warn, settings_off, what, to_do))
}

fn disabled(rule: &Rule, event: &EventPattern, settings: &Settings, region: &str) -> Finding {
    let name = &rule.name;
    let what = format!("is disabled: of {} the function gets nothing", event.what);
    let to_do = format!("enable it{}", or_do_not_want_it(event, settings));
    Finding::new(FindingId::RuleDisabled, Severity::Fail, format!("rule {name}"), what, to_do)
        .with_command(format!("aws events enable-rule --name {} --region {region}", quoted(name)))
}

fn missing(event: &EventPattern, settings: &Settings) -> Finding {
    let what = format!("there is none that leads to this function: of {} it gets nothing", event.what);
    let to_do = format!("{PUT_BACK}{}", or_do_not_want_it(event, settings));
    Finding::new(FindingId::RuleMissing, Severity::Fail, format!("the rule for {}", event.what), what, to_do)
}

/// The other way for the settings and the rules to be at one.
fn or_do_not_want_it(event: &EventPattern, settings: &Settings) -> String {
    format!("; or, if nobody wants these, {}", decision::switch_of(event.kind, settings).off())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use spillway_core::test_support::settings;

    use super::super::bus::RuleTarget;
    use super::super::pattern::Pattern;
    use super::*;
    use crate::report::CheckStatus;

    /// With these every event is wanted.
    const ALL: [(&str, &str); 3] =
        [("SPILLWAY_CORDON_ON", "rebalance"), ("SPILLWAY_LAUNCH", "ABANDON"), ("SPILLWAY_TAINTS", "out-of-service")];
    const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:spillway";

    /// A rule for each event, as the template has them.
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
        let check = look(rules, FUNCTION, &settings(variables), "us-east-1");
        assert_eq!(check.status, if check.findings.is_empty() { CheckStatus::Ok } else { CheckStatus::Fail });
        check.findings.into_iter().map(|finding| (finding.id, finding.object)).collect()
    }

    #[test]
    fn with_a_rule_for_each_event_nothing_is_found() {
        assert_eq!(found(&rules(), &ALL), []);
    }

    #[test]
    fn each_rule_that_is_disabled_or_gone_is_found_unless_the_settings_do_not_want_it() {
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
        let rules: Vec<Rule> = rules.into_iter().filter(without_down).collect();
        assert_eq!(found(&rules, &[]), [], "nothing follows from it without the taint");
    }

    #[test]
    fn spot_that_neither_list_names_is_a_warning() {
        let check = look(&rules(), FUNCTION, &settings(&[("SPILLWAY_DRAIN_ON", "rebalance")]), "us-east-1");
        let ids: Vec<_> = check.findings.iter().map(|finding| finding.id).collect();
        assert_eq!((check.status, ids), (CheckStatus::Warn, vec![FindingId::SpotSwitchedOff]));
        assert_eq!(found(&rules(), &[("SPILLWAY_DRAIN_ON", "spot,rebalance")]), []);
        assert_eq!(found(&rules(), &[("SPILLWAY_DRAIN_ON", "rebalance"), ("SPILLWAY_CORDON_ON", "spot")]), []);
    }

    #[test]
    fn a_rule_that_leads_elsewhere_is_none_of_ours() {
        let mut rules = rules();
        rules[0].targets[0].arn = format!("{FUNCTION}-of-another-stack");
        assert_eq!(found(&rules, &[]), [(FindingId::RuleMissing, "the rule for spot interruptions".to_owned())]);
    }
}
