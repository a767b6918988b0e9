//! A notice: one from a file made to fit the bed, and any of them on the screen. Pure but for the reading.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_bed::TestNode;
use spillway_bed::aws::Delivered;

use super::DemoError;

/// What is shown of an event stays this narrow.
const WIDTH: usize = 96;
/// Of which AWS ids have had 8 hexadecimal digits, and have 17.
const ID_LENGTHS: [usize; 2] = [8, 17];

/// A file's event. EventBridge carries JSON objects and nothing else.
pub(super) fn read(file: &Path) -> Result<Value, DemoError> {
    let bad = |why: String| DemoError::Event { file: file.to_owned(), why };
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    let event: Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    if event["detail"].is_object() {
        Ok(event)
    } else {
        Err(bad("EventBridge carries only events whose detail is an object".to_owned()))
    }
}

/// Makes a sample's event one of this bed, and says what it changed.
pub(super) fn fit(event: &Value, node: &TestNode, now: Timestamp) -> (Value, Vec<String>) {
    let mut said = Vec::new();
    let mut text = event.to_string();
    // No sample's instance is in the bed: it made its own a moment ago.
    for id in instance_ids(&text) {
        text = text.replace(&id, &node.instance_id);
        said.push(format!("instance {id}, which is not here, to {} of the first node", node.instance_id));
    }
    let mut event: Value = serde_json::from_str(&text).expect("an id took the place of another");
    let time = event["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    if let Some(time) = time.filter(|time| *time < now) {
        let now = whole_seconds(now);
        said.push(format!("time {time}, which is past, to {now}"));
        event["time"] = json!(now.to_string());
    }
    (event, said)
}

/// Whether it says that a hook holds a terminating instance.
pub(super) fn is_of_terminate_hook(event: &Value) -> bool {
    event["detail-type"] == "EC2 Instance-terminate Lifecycle Action"
}

/// Gives a sample the group, hook and token of a hook that really waits.
pub(super) fn fit_hook(event: &mut Value, real: &Delivered) -> String {
    for field in ["AutoScalingGroupName", "LifecycleHookName", "LifecycleActionToken"] {
        event["detail"][field] = real.event["detail"][field].clone();
    }
    let detail = &event["detail"];
    let text = |field: &str| detail[field].as_str().unwrap_or_default().to_owned();
    let (group, hook) = (text("AutoScalingGroupName"), text("LifecycleHookName"));
    format!("hook, which is not here, to {hook} of group {group}, which holds the instance")
}

/// When it was given; AWS counts in whole seconds.
pub(super) fn time(event: &Value) -> Option<Timestamp> {
    event["time"].as_str()?.parse().ok()
}

/// An event as JSON, a field a line, what matters first.
pub(super) fn shown(event: &Value) -> Vec<String> {
    let mut fields: Vec<(&String, &Value)> = event.as_object().into_iter().flatten().collect();
    let first = ["detail-type", "detail", "time", "source"];
    fields.sort_by_key(|(key, _)| first.iter().position(|first| first == key).unwrap_or(first.len()));
    let mut lines = Vec::new();
    for (key, value) in fields {
        let line = format!("{}: {value}", json!(key));
        match value.as_object() {
            Some(fields) if line.len() > WIDTH => {
                lines.push(format!("{}:", json!(key)));
                lines.extend(fields.iter().map(|(key, value)| format!("  {}: {value}", json!(key))));
            }
            _ => lines.push(line),
        }
    }
    lines.iter().flat_map(|line| folded(line)).collect()
}

/// What is too long goes on in the next line.
fn folded(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    let pieces = characters.chunks(WIDTH - 4).map(|piece| piece.iter().collect::<String>());
    pieces.enumerate().map(|(index, piece)| if index == 0 { piece } else { format!("    {piece}") }).collect()
}

fn instance_ids(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("i-").map(|(start, _)| start);
    let whole =
        |start: &usize| !text[..*start].ends_with(|before: char| before.is_ascii_alphanumeric() || before == '-');
    let id = |start: usize| {
        let digits: String = text[start + 2..].chars().take_while(char::is_ascii_alphanumeric).collect();
        let is_id = ID_LENGTHS.contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_hexdigit());
        is_id.then(|| format!("i-{digits}"))
    };
    starts.filter(whole).filter_map(id).collect()
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> TestNode {
        TestNode {
            name: "ip-10-0-0-1.ec2.internal".to_owned(),
            instance_id: "i-0123456789abcdef0".to_owned(),
            private_dns_name: "ip-10-0-0-1.ec2.internal".to_owned(),
            provider_id: "aws:///us-east-1a/i-0123456789abcdef0".to_owned(),
            zone: "us-east-1a".to_owned(),
        }
    }

    #[test]
    fn a_samples_instance_and_time_become_the_beds() {
        let now = "2026-11-21T12:00:00.7Z".parse().expect("a time");
        let sample = json!({
            "time": "2026-11-21T03:12:00Z",
            "resources": ["arn:aws:ec2:us-east-1a:instance/i-1234567890abcdef0"],
            "detail": {"instance-id": "i-1234567890abcdef0", "hook": "ui-12345678"},
        });
        let (event, said) = fit(&sample, &node(), now);
        assert_eq!(event["detail"], json!({"instance-id": "i-0123456789abcdef0", "hook": "ui-12345678"}));
        assert_eq!(event["resources"][0], "arn:aws:ec2:us-east-1a:instance/i-0123456789abcdef0");
        assert_eq!(event["time"], "2026-11-21T12:00:00Z");
        assert_eq!(said.len(), 2, "{said:?}");
    }

    #[test]
    fn a_time_to_come_and_one_that_is_none_stay() {
        let now = "2026-11-21T12:00:00Z".parse().expect("a time");
        for time in ["2026-11-22T00:00:00Z", "soon"] {
            let (event, said) = fit(&json!({"time": time, "detail": {}}), &node(), now);
            assert_eq!((event["time"].as_str(), said.len()), (Some(time), 0));
        }
    }

    #[test]
    fn what_is_shown_of_an_event_fits_the_screen_and_loses_nothing() {
        let event = json!({"detail": {"a": "x".repeat(60), "b": "y".repeat(200)}, "id": "1"});
        let lines = shown(&event);
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{lines:#?}");
        let text: String = lines.concat().replace(' ', "");
        assert!(text.contains(&"y".repeat(200)) && text.contains(r#""id":"1""#), "{text}");
    }
}
