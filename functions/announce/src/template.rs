//! Fields for the webhook's Go template: the fields of aws-node-termination-handler (NTH) and Spillway's own fields.
//!
//! If a message is about several notices, the texts of the notices are joined. The field `Notices` has the fields of each notice.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use spillway_receipt::Receipt;

use crate::event::{Event, Phase};
use crate::group::Message;
use crate::nodes::{Node, Tally};
use crate::words;

/// Go's zero time, which stands for an unknown time.
const ZERO: &str = "0001-01-01 00:00:00 +0000 UTC";

/// Maximum number of pods in a list, because Slack limits the length of a field.
const PODS: usize = 20;

pub(crate) fn fields(message: &Message<'_>) -> Value {
    let notices: Vec<_> = message.events.iter().map(|event| notice(event)).collect();
    let mut fields = joined(&notices);
    fields.extend(named(pod_fields(&message.nodes())));
    if notices.len() > 1 {
        fields.insert("Description".to_owned(), json!(words::headline(message)));
    }
    fields.insert("Phase".to_owned(), json!(message.phase));
    fields.insert("Headline".to_owned(), json!(words::headline(message)));
    fields.insert("Notices".to_owned(), json!(notices));
    safe(Value::Object(fields))
}

fn notice(event: &Event) -> Map<String, Value> {
    let pods = pod_fields(&[Node::of(event)]);
    named(nth_fields(event)).chain(named(spillway_fields(event))).chain(named(pods)).collect()
}

fn named<const N: usize>(fields: [(&str, Value); N]) -> impl Iterator<Item = (String, Value)> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value))
}

/// Returns the template fields of aws-node-termination-handler in queue processor mode (`docs/templates.md`).
fn nth_fields(event: &Event) -> [(&'static str, Value); 24] {
    let receipt = &event.receipt;
    let provider_id =
        receipt.zone.as_ref().zip(receipt.instance.as_ref()).map(|(zone, id)| format!("aws:///{zone}/{id}"));
    [
        ("EventID", json!(text(receipt.notice.event_id.as_deref()))),
        ("Kind", json!(kind(receipt))),
        ("Monitor", json!("SQS_MONITOR")),
        ("Description", json!(words::sentence(event))),
        ("State", json!("")),
        ("AutoScalingGroupName", json!(text(receipt.auto_scaling_group.as_deref()))),
        ("NodeName", json!(text(receipt.node.as_deref()))),
        ("NodeLabels", json!(event.node_labels)),
        ("InstanceID", json!(text(receipt.instance.as_deref()))),
        ("ProviderID", json!(text(provider_id.as_deref()))),
        ("InstanceType", json!(text(receipt.instance_type.as_deref()))),
        ("IsManaged", json!(true)),
        ("StartTime", json!(time(receipt.notice.time))),
        ("EndTime", json!(time(receipt.notice.deadline))),
        ("NodeProcessed", json!(event.phase == Phase::Ended)),
        ("InProgress", json!(event.phase != Phase::Ended)),
        ("AccountId", json!(receipt.account)),
        ("InstanceLifeCycle", json!("")),
        ("PublicHostname", json!("")),
        ("PublicIP", json!("")),
        ("LocalHostname", json!("")),
        ("LocalIP", json!("")),
        ("AvailabilityZone", json!(text(receipt.zone.as_deref()))),
        ("Region", json!(receipt.region)),
    ]
}

fn spillway_fields(event: &Event) -> [(&'static str, Value); 8] {
    let receipt = &event.receipt;
    [
        ("Cluster", json!(text(receipt.cluster.as_deref()))),
        ("ManagedBy", json!(text(receipt.managed_by.as_deref()))),
        ("Notice", json!(text(receipt.notice.kind.as_deref()))),
        ("Ending", receipt.ending.map_or(json!(""), |ending| json!(ending))),
        ("Error", json!(text(receipt.error.as_deref()))),
        ("Reason", json!(receipt.reason)),
        ("DryRun", json!(receipt.dry_run)),
        ("RequestID", json!(receipt.request_id)),
    ]
}

/// Returns the template fields about pods.
fn pod_fields(nodes: &[Node<'_>]) -> [(&'static str, Value); 7] {
    let tally = Tally::of(nodes);
    let mut pods: Vec<_> = nodes.iter().flat_map(Node::pods).map(|pod| pod.name().to_owned()).collect();
    words::shorten(&mut pods, PODS);
    let lost = nodes.iter().flat_map(|node| {
        let node_name = text(node.name());
        let lost = node.lost().into_iter();
        lost.map(move |pod| json!({"Pod": pod.pod, "Why": text(pod.why.as_deref()), "NodeName": node_name}))
    });
    [
        ("Pods", json!(pods)),
        ("Lost", lost.take(PODS).collect()),
        ("PodsClean", json!(tally.clean)),
        ("PodsClamped", json!(tally.clamped)),
        ("PodsForced", json!(tally.forced)),
        ("PodsUnconfirmed", json!(tally.unconfirmed)),
        ("PodsLost", json!(tally.lost)),
    ]
}

/// Joins the fields of several notices, except the fields about pods.
fn joined(notices: &[Map<String, Value>]) -> Map<String, Value> {
    let Some(first) = notices.first() else { return Map::new() };
    let of_all = |name: &str| notices.iter().filter_map(|notice| notice.get(name)).collect::<Vec<_>>();
    let one = |name: &String| match name.as_str() {
        "StartTime" | "EndTime" => earliest(&of_all(name)),
        _ => joined_value(&of_all(name)),
    };
    first.keys().map(|name| (name.clone(), one(name))).collect()
}

/// Returns the earliest known time. All times have the same format, in which texts sort by time.
fn earliest(times: &[&Value]) -> Value {
    json!(times.iter().filter_map(|time| time.as_str()).filter(|time| *time != ZERO).min().unwrap_or(ZERO))
}

fn joined_value(values: &[&Value]) -> Value {
    match values {
        [Value::String(_), ..] => json!(words::distinct(values.iter().filter_map(|value| value.as_str()))),
        [Value::Bool(_), ..] => json!(values.iter().all(|value| **value == true)),
        // Labels that all notices have in common.
        [Value::Object(first), others @ ..] => {
            let shared = first.iter().filter(|(name, value)| others.iter().all(|other| other.get(name) == Some(value)));
            Value::Object(shared.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        // Lists and numbers are fields about pods, which the caller adds.
        [] | [Value::Null | Value::Array(_) | Value::Number(_), ..] => Value::Null,
    }
}

/// Returns the kind of notice in the spelling of aws-node-termination-handler.
fn kind(receipt: &Receipt) -> String {
    let name = words::kind(receipt);
    match name {
        "spot interruption" => "SPOT_ITN".to_owned(),
        "scheduled maintenance" | "maintenance over" => "SCHEDULED_EVENT".to_owned(),
        "rebalance recommendation" => "REBALANCE_RECOMMENDATION".to_owned(),
        "terminate lifecycle action" | "return to warm pool" | "root volume replacement" => "ASG_LIFECYCLE".to_owned(),
        "launch lifecycle action" | "launch into warm pool" | "launch from warm pool" | "root volume replaced" => {
            "ASG_LAUNCH_LIFECYCLE".to_owned()
        }
        state if state.starts_with("instance ") => "STATE_CHANGE".to_owned(),
        other => other.to_uppercase().replace(' ', "_"),
    }
}

/// Returns the time in Go's print format.
fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| ZERO.to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string())
}

/// Replaces characters that would end a JSON string, because a template such as `"{{ .Description }}"` does not escape values.
fn safe(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(safe_text(&text)),
        Value::Array(items) => items.into_iter().map(safe).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (safe_text(&name), safe(value))).collect(),
        other => other,
    }
}

/// Replaces double quotes by single quotes, and backslashes and control characters by spaces.
fn safe_text(text: &str) -> String {
    let safe = text.chars().map(|character| match character {
        '"' => '\'',
        '\\' => ' ',
        _ if character.is_control() => ' ',
        _ => character,
    });
    safe.collect()
}

fn text(value: Option<&str>) -> &str {
    value.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use spillway_receipt::Pod;

    use super::*;
    use crate::samples::{begun, ended, ended_with, lossy};
    use crate::test_support;

    /// The fields, one in each line.
    fn shown(events: &[&Event]) -> String {
        let fields = fields(&test_support::message(events));
        let fields = fields.as_object().expect("fields").iter().filter(|(name, _)| *name != "Notices");
        fields.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn two_ended_drains_are_joined() {
        let (drained, lossy) = (ended(1, "drained"), lossy(2));
        insta::assert_snapshot!(shown(&[&drained, &lossy]));
        let both = fields(&test_support::message(&[&drained, &lossy]));
        for (event, notice) in [&drained, &lossy].iter().zip(both["Notices"].as_array().expect("notices")) {
            let alone = fields(&test_support::message(&[event]));
            assert_eq!(&alone["Notices"][0], notice);
            for (name, value) in notice.as_object().expect("fields") {
                assert_eq!(&alone[name], value, "{name}");
            }
        }
    }

    #[test]
    fn times_of_a_batch_are_the_earliest() {
        let (early, mut late) = (begun(1), begun(2));
        late.receipt.notice.time = Some("2026-11-21T03:12:09Z".parse().expect("a time"));
        late.receipt.notice.deadline = None;
        let fields = fields(&test_support::message(&[&late, &early]));
        assert_eq!(fields["StartTime"], "2026-11-21 03:12:00 +0000 UTC");
        assert_eq!(fields["EndTime"], "2026-11-21 03:14:00 +0000 UTC");
        assert_eq!((&fields["InProgress"], &fields["NodeProcessed"]), (&json!(true), &json!(false)));
        assert_eq!((&fields["Phase"], &fields["Ending"]), (&json!("begun"), &json!("")));
    }

    #[test]
    fn pod_of_two_notices_is_listed_once() {
        let (spot, mut shutting_down) = (lossy(1), lossy(1));
        shutting_down.id = "ended-2".to_owned();
        shutting_down.receipt.request_id = "r-2".to_owned();
        let fields = fields(&test_support::message(&[&spot, &shutting_down]));
        let length = |name: &str| fields[name].as_array().map(Vec::len);
        assert_eq!((length("Notices"), length("Pods"), length("Lost")), (Some(2), Some(7), Some(2)));
        assert_eq!((&fields["PodsLost"], &fields["PodsClean"]), (&json!(2), &json!(1)));
    }

    #[test]
    fn pods_of_a_storm_fit_into_slacks_field() {
        const FIELD: usize = 2_000;
        let events: Vec<_> = (0..40)
            .map(|n| {
                let pods: Vec<_> = (0..20)
                    .map(|pod| json!({"pod": format!("shop/checkout-7c9d8f6b54-{n:02}{pod:03}"), "fate": "lost"}))
                    .collect();
                ended_with(n, "failed", &json!(pods))
            })
            .collect();
        let fields = fields(&test_support::message(&events.iter().collect::<Vec<_>>()));
        let pods = fields["Pods"].as_array().expect("pods");
        assert_eq!((pods.len(), &pods[20]), (21, &json!("and 780 more")));
        assert_eq!((fields["Lost"].as_array().map(Vec::len), &fields["PodsLost"]), (Some(20), &json!(800)));
        let template = r"*Pods on Node:*\n {{ range $pod := .Pods }}\u2022 `{{ $pod }}`\n{{ end }}";
        let template = gotemplate_json::Template::parse(template).expect("a template");
        assert!(template.render(&fields).expect("a text").len() < FIELD);
    }

    /// Text with every character that JSON escapes, which would add a field to a message.
    fn strange() -> String {
        let control = (0..=0x9f).filter_map(char::from_u32).filter(|character| character.is_control());
        format!("x\\\",\"channel\":\"#all{}", control.collect::<String>())
    }

    /// The event with a strange text in each text field.
    fn with_strange_texts(event: &Event) -> Event {
        let mut event = event.clone();
        let receipt = &mut event.receipt;
        let texts = [
            &mut receipt.auto_scaling_group,
            &mut receipt.cluster,
            &mut receipt.instance,
            &mut receipt.instance_type,
            &mut receipt.node,
            &mut receipt.notice.event_id,
            &mut receipt.zone,
        ];
        receipt.error = Some(strange().into());
        for text in texts {
            *text = Some(strange());
        }
        (receipt.notice.kind, receipt.managed_by) = (Some(strange().into()), Some(strange().into()));
        for text in [&mut receipt.account, &mut receipt.reason, &mut receipt.region, &mut receipt.request_id] {
            *text = strange();
        }
        for pod in &mut receipt.pods {
            match pod {
                Pod::Full(pod) => (pod.pod, pod.why) = (strange(), Some(strange())),
                Pod::NameOnly(pod) => pod.pod = strange(),
            }
        }
        event.node_labels = [(strange(), strange())].into();
        event
    }

    #[test]
    fn no_text_of_an_event_adds_a_json_field() {
        let prints = |value: &str| {
            format!("{{{{ range $name, $value := {value} }}}}{{{{ $name }}}} {{{{ $value }}}} {{{{ end }}}}")
        };
        let template = format!("{{\"text\": \"{} {}\"}}", prints("$"), prints("$.NodeLabels"));
        let template = gotemplate_json::Template::parse(&template).expect("a template");
        for event in [begun(1), lossy(2)] {
            let event = with_strange_texts(&event);
            let fields = fields(&test_support::message(&[&event, &event]));
            let body = template.render(&fields).expect("a message");
            let body: Value = serde_json::from_str(&body).expect("JSON");
            let names: Vec<_> = body.as_object().expect("an object").keys().collect();
            assert_eq!(names, ["text"]);
            let text = body["text"].as_str().expect("a text");
            assert!(text.contains("x ','channel':'#all"), "{text}");
        }
    }

    /// Names in a column of a table of docs/templates.md.
    fn documented(section: &str, column: usize) -> BTreeSet<&'static str> {
        let page = include_str!("../../../docs/templates.md");
        let rest = page.split(&format!("## {section}\n")).nth(1).expect("a section");
        let rows = rest.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| "));
        let cells = rows.filter_map(|row| row.split('|').nth(column));
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn page_lists_every_function_and_field() {
        assert_eq!(documented("Functions", 2), gotemplate_json::functions().collect());
        let fields = fields(&test_support::message(&[&begun(1)]));
        let fields: Vec<_> = fields.as_object().expect("fields").keys().map(|name| format!(".{name}")).collect();
        assert_eq!(documented("Fields", 1), fields.iter().map(String::as_str).collect());
    }

    #[test]
    fn kinds_have_nths_names() {
        let named = |spillways: &str| {
            let mut event = begun(1);
            event.receipt.notice.kind = Some(spillways.to_owned().into());
            kind(&event.receipt)
        };
        assert_eq!(named("terminate lifecycle action"), "ASG_LIFECYCLE");
        assert_eq!(named("instance shutting down"), "STATE_CHANGE");
        assert_eq!(named("capacity block expiry"), "CAPACITY_BLOCK_EXPIRY");
    }
}
