//! Checks whether the event pattern of an EventBridge rule matches a notice. Pure.
//!
//! An unknown comparison operator counts as a match: a needless finding is better than a missing finding.

use serde_json::{Value, json};

use spillway_notice::event_patterns::EventPattern;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Value);

impl Pattern {
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(Value::is_object).map(Self)
    }

    pub(super) fn matches(&self, event: &EventPattern) -> bool {
        let EventPattern { source, detail_type, detail, .. } = event;
        let detail: Value = detail.iter().map(|(key, value)| (*key, *value)).collect();
        matches(&self.0, Some(&json!({"source": source, "detail-type": detail_type, "detail": detail})))
    }
}

/// Returns `true` if this part of the pattern accepts the value. `None` stands for a missing value.
fn matches(pattern: &Value, value: Option<&Value>) -> bool {
    match pattern {
        Value::Object(fields) => fields.iter().all(|(key, field)| match (key.as_str(), field) {
            ("$or", Value::Array(alternatives)) => alternatives.iter().any(|one| matches(one, value)),
            _ => matches(field, value.and_then(|value| value.get(key))),
        }),
        Value::Array(choices) => choices.iter().any(|choice| match (choice, value) {
            (Value::Object(matcher), value) => match (matcher.get("exists"), matcher.get("prefix"), value) {
                (Some(Value::Bool(exists)), _, value) => *exists == value.is_some(),
                (_, Some(Value::String(prefix)), Some(Value::String(value))) => value.starts_with(prefix.as_str()),
                _ => true,
            },
            // The example event lacks values that vary, such as the name of a group.
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

    fn matched(pattern: &Value) -> Vec<&'static str> {
        let pattern = Pattern::parse(&pattern.to_string()).unwrap();
        EVENT_PATTERNS.iter().filter(|event| pattern.matches(event)).map(|event| event.what).collect()
    }

    #[test]
    fn pattern_matches_the_events_that_it_names() {
        let spot = json!({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]});
        assert_eq!(matched(&spot), ["spot interruptions"]);
        assert_eq!(matched(&json!({"source": ["aws.health"], "detail": {"service": ["RDS"]}})), [] as [&str; 0]);
        assert_eq!(matched(&json!({"source": ["aws.s3"]})), [] as [&str; 0]);
    }

    #[test]
    fn launch_rules_differ_by_action_and_origin() {
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
    fn unknown_matchers_match() {
        let of_groups = json!({"source": [{"prefix": "aws.auto"}], "detail-type": [{"wildcard": "*terminate*"}],
            "detail": {"AutoScalingGroupName": ["workers"], "LifecycleTransition": [{"anything-but": "x"}]}});
        assert!(matched(&of_groups).contains(&"terminate hooks"));
        assert_eq!(matched(&json!({})).len(), EVENT_PATTERNS.len(), "all events");
    }

    #[test]
    fn alternatives_and_states_match_only_their_own_events() {
        let merged = json!({"source": ["aws.ec2"], "$or": [
            {"detail-type": ["EC2 Spot Instance Interruption Warning"]},
            {"detail-type": ["EC2 Instance State-change Notification"], "detail": {"state": ["running"]}}]});
        assert_eq!(matched(&merged), ["spot interruptions", "instances that run"]);
        let of_detail = json!({"source": ["aws.ec2"], "detail": {"$or": [{"state": ["running"]}, {"state": ["stopped"]}]},
            "detail-type": ["EC2 Instance State-change Notification"]});
        assert_eq!(matched(&of_detail), ["instances that run"]);
        let pending = json!({"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"],
            "detail": {"state": ["pending"]}});
        assert_eq!(matched(&pending), [] as [&str; 0]);
    }
}
