//! What AWS sends: a notice of its own, or the event of a file made to fit the cluster.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_bed::aws::{Aws, Delivered};
use spillway_bed::{BedError, TestNode};

/// From a spot notice to the end of the instance, as AWS has it.
const SPOT_WINDOW: Duration = Duration::from_mins(2);
/// AWS' ids have 17 hexadecimal digits, and older ones 8.
const ID_LENGTHS: [usize; 2] = [8, 17];

/// What is sent.
pub(super) enum Notice {
    /// EC2 takes the spot instance back.
    Spot,
    /// Auto Scaling terminates the instance, past a hook.
    Terminate,
    /// A file's event.
    File(Value),
}

impl Notice {
    pub(super) fn title(&self, node: &TestNode) -> String {
        match self {
            Self::Spot => format!("EC2 takes back the spot instance of node {}", node.name),
            Self::Terminate => format!("Auto Scaling terminates the instance of node {}", node.name),
            Self::File(event) => format!("The event of a file: {}", event["detail-type"].as_str().unwrap_or("no type")),
        }
    }

    /// Has AWS give it. Answers the event as a rule of the template delivers it, if one does.
    pub(super) async fn give(self, aws: &Aws, node: &TestNode) -> Result<Option<Delivered>, BedError> {
        let delivered = match self {
            Self::Spot => aws.interrupt(&node.instance_id, SPOT_WINDOW).await?,
            Self::Terminate => aws.terminate(&node.instance_id).await?,
            Self::File(event) => {
                println!(
                    "  The event becomes one of this cluster: about {}, and sent now if its time is past.\n",
                    node.instance_id
                );
                let mut event = fit(&event, node, Timestamp::now());
                // A hook must really wait, so that it can be completed.
                if event["detail-type"] == "EC2 Instance-terminate Lifecycle Action"
                    && let Some(real) = aws.terminate(&node.instance_id).await?.first()
                {
                    for field in ["AutoScalingGroupName", "LifecycleHookName", "LifecycleActionToken"] {
                        event["detail"][field] = real.event["detail"][field].clone();
                    }
                }
                aws.send_notice(&event).await?
            }
        };
        Ok(delivered.into_iter().next())
    }
}

/// A file's event. EventBridge carries only events whose detail is an object.
pub(super) fn read(file: &Path) -> Result<Value, BedError> {
    let reading = || BedError::io(format!("send {}", file.display()));
    let text = std::fs::read_to_string(file).map_err(reading())?;
    let event: Value = serde_json::from_str(&text).map_err(io::Error::other).map_err(reading())?;
    if event["detail"].is_object() { Ok(event) } else { Err(reading()(io::Error::other("its detail is no object"))) }
}

/// Prints what matters of an event.
pub(super) fn show(event: &Value) {
    let shown = json!({"detail-type": event["detail-type"], "time": event["time"], "detail": event["detail"]});
    for line in format!("{shown:#}").lines() {
        println!("  {line}");
    }
}

/// When it was given.
pub(super) fn time(event: &Value) -> Timestamp {
    event["time"].as_str().and_then(|time| time.parse().ok()).unwrap_or_else(Timestamp::now)
}

/// A sample's event with the node's instance in place of its own, and with the time of now in place of one that is past.
fn fit(event: &Value, node: &TestNode, now: Timestamp) -> Value {
    let mut text = event.to_string();
    for id in instance_ids(&text) {
        text = text.replace(&id, &node.instance_id);
    }
    let mut event: Value = serde_json::from_str(&text).expect("an id took the place of another");
    if event["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok()).is_some_and(|time| time < now) {
        event["time"] = json!(Timestamp::from_second(now.as_second()).unwrap_or(now).to_string());
    }
    event
}

fn instance_ids(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let is_id = |word: &&str| {
        let digits = word.strip_prefix("i-").unwrap_or_default();
        ID_LENGTHS.contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_hexdigit())
    };
    words.filter(is_id).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_samples_instance_and_its_past_time_become_the_clusters() {
        let node = TestNode {
            name: "ip-10-0-0-1.ec2.internal".to_owned(),
            instance_id: "i-0123456789abcdef0".to_owned(),
            private_dns_name: "ip-10-0-0-1.ec2.internal".to_owned(),
            provider_id: "aws:///us-east-1a/i-0123456789abcdef0".to_owned(),
            zone: "us-east-1a".to_owned(),
        };
        let sample = |time: &str| {
            json!({
                "time": time,
                "resources": ["arn:aws:ec2:us-east-1a:instance/i-1234567890abcdef0"],
                "detail": {"instance-id": "i-1234567890abcdef0", "hook": "ui-12345678"},
            })
        };
        let now = "2026-11-21T12:00:00.7Z".parse().expect("a time");

        let event = fit(&sample("2026-11-21T03:12:00Z"), &node, now);

        assert_eq!(event["detail"], json!({"instance-id": "i-0123456789abcdef0", "hook": "ui-12345678"}));
        assert_eq!(event["resources"][0], "arn:aws:ec2:us-east-1a:instance/i-0123456789abcdef0");
        assert_eq!(event["time"], "2026-11-21T12:00:00Z");
        for time in ["2026-11-22T00:00:00Z", "soon"] {
            assert_eq!(fit(&sample(time), &node, now)["time"], time);
        }
    }
}
