//! The pattern of a rule, as far as it says whether one of our notices passes. Pure.
//!
//! EventBridge has more matchers than are told apart here. One that is not known may let a notice through: better one
//! question too many than a second drainer that nobody sees.

use serde_json::{Value, json};

use spillway_notice::event_patterns::EventPattern;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Value);

impl Pattern {
    /// The pattern, if it is a JSON object, as EventBridge has them all.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(Value::is_object).map(Self)
    }

    pub(super) fn lets_through(&self, event: &EventPattern) -> bool {
        let EventPattern { source, detail_type, detail, .. } = event;
        let detail: Value = detail.iter().map(|(key, value)| (*key, *value)).collect();
        passes(&self.0, Some(&json!({"source": source, "detail-type": detail_type, "detail": detail})))
    }
}

/// Whether a value passes a part of a pattern. `None` stands for a value that the example event does not have.
fn passes(pattern: &Value, value: Option<&Value>) -> bool {
    match pattern {
        Value::Object(fields) => fields.iter().all(|(key, field)| match (key.as_str(), field) {
            ("$or", Value::Array(alternatives)) => alternatives.iter().any(|one| passes(one, value)),
            _ => passes(field, value.and_then(|value| value.get(key))),
        }),
        Value::Array(choices) => choices.iter().any(|choice| match (choice, value) {
            (Value::Object(matcher), value) => match (matcher.get("exists"), matcher.get("prefix"), value) {
                (Some(Value::Bool(exists)), _, value) => *exists == value.is_some(),
                (_, Some(Value::String(prefix)), Some(Value::String(value))) => value.starts_with(prefix.as_str()),
                _ => true,
            },
            // The name of a group, for example.
            (_, None) => true,
            (choice, Some(value)) => choice == value,
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use spillway_notice::event_patterns::EVENT_PATTERNS;

    use super::*;

    /// What passes such a pattern.
    fn matched(pattern: &Value) -> Vec<&'static str> {
        let pattern = Pattern::parse(&pattern.to_string()).unwrap();
        EVENT_PATTERNS.iter().filter(|event| pattern.lets_through(event)).map(|event| event.what).collect()
    }

    #[test]
    fn a_rule_gets_what_it_names() {
        let spot = json!({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]});
        assert_eq!(matched(&spot), ["spot interruptions"]);
        assert_eq!(matched(&json!({"source": ["aws.health"], "detail": {"service": ["RDS"]}})), [] as [&str; 0]);
        assert_eq!(matched(&json!({"source": ["aws.s3"]})), [] as [&str; 0]);
    }

    #[test]
    fn a_launch_and_a_node_that_comes_back_are_told_apart_by_the_fields_of_their_rules() {
        let rule = |detail: Value| {
            json!({"source": ["aws.autoscaling"], "detail-type": ["EC2 Instance-launch Lifecycle Action"],
                "detail": detail})
        };
        let launch = rule(json!({"Action": [{"exists": false}], "Origin": ["EC2", {"exists": false}]}));
        assert_eq!(matched(&launch), ["launch hooks"]);
        let from_warm_pool = rule(json!({"Action": [{"exists": false}], "Origin": ["WarmPool"]}));
        assert_eq!(matched(&from_warm_pool), ["nodes that come out of a warm pool"]);
        let root_volume = rule(json!({"Action": [{"exists": true}]}));
        assert_eq!(matched(&root_volume), ["nodes that come back with another root volume"]);
    }

    #[test]
    fn what_it_does_not_know_may_let_a_notice_through() {
        let of_groups = json!({"source": [{"prefix": "aws.auto"}], "detail-type": [{"wildcard": "*terminate*"}],
            "detail": {"AutoScalingGroupName": ["workers"], "LifecycleTransition": [{"anything-but": "x"}]}});
        assert!(matched(&of_groups).contains(&"terminate hooks"));
        assert_eq!(matched(&json!({})).len(), EVENT_PATTERNS.len(), "all events");
    }

    #[test]
    fn alternatives_match_only_their_own_events() {
        let merged = json!({"source": ["aws.ec2"], "$or": [
            {"detail-type": ["EC2 Spot Instance Interruption Warning"]},
            {"detail-type": ["EC2 Instance State-change Notification"], "detail": {"state": ["running"]}}]});
        assert_eq!(matched(&merged), ["spot interruptions", "instances that run"]);
        let of_detail = json!({"source": ["aws.ec2"], "detail": {"$or": [{"state": ["running"]}, {"state": ["stopped"]}]},
            "detail-type": ["EC2 Instance State-change Notification"]});
        assert_eq!(matched(&of_detail), ["instances that run"]);
    }

    #[test]
    fn another_state_is_another_notice() {
        let state = |state: &str| {
            matched(&json!({"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"],
                "detail": {"state": [state]}}))
        };
        assert_eq!(state("running"), ["instances that run"]);
        assert_eq!(state("pending"), [] as [&str; 0]);
    }
}
