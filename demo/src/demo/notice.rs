//! Notices of AWS, and the event of a file, adapted to the cluster.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_bed::aws::{Aws, Delivered};
use spillway_bed::{BedError, TestNode};

/// Time from a spot notice to the end of the instance.
const SPOT_WINDOW: Duration = Duration::from_mins(2);
/// Lengths of AWS' instance ids, new and old.
const ID_LENGTHS: [usize; 2] = [8, 17];

pub(super) enum Notice {
    Spot,
    /// Termination by Auto Scaling, with a hook.
    Terminate,
    /// Event of a file.
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

    /// Sends the notice. Returns the event as a rule of the template delivers it; `None` if no rule does.
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
                // A real lifecycle action, so that its hook can be completed.
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

/// Reads the event of a file. EventBridge accepts only an object as detail.
pub(super) fn read(file: &Path) -> Result<Value, BedError> {
    let reading = || BedError::io(format!("send {}", file.display()));
    let text = std::fs::read_to_string(file).map_err(reading())?;
    let event: Value = serde_json::from_str(&text).map_err(io::Error::other).map_err(reading())?;
    if event["detail"].is_object() { Ok(event) } else { Err(reading()(io::Error::other("its detail is no object"))) }
}

/// Prints the important fields of an event.
pub(super) fn show(event: &Value) {
    let shown = json!({"detail-type": event["detail-type"], "time": event["time"], "detail": event["detail"]});
    for line in format!("{shown:#}").lines() {
        println!("  {line}");
    }
}

/// Time of an event.
pub(super) fn time(event: &Value) -> Timestamp {
    event["time"].as_str().and_then(|time| time.parse().ok()).unwrap_or_else(Timestamp::now)
}

/// Replaces the instance of an event by the node's, and a past time by the present.
fn fit(event: &Value, node: &TestNode, now: Timestamp) -> Value {
    let mut text = event.to_string();
    for id in instance_ids(&text) {
        text = text.replace(&id, &node.instance_id);
    }
    let mut event: Value = serde_json::from_str(&text).expect("ids replace ids");
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
    fn sample_gets_the_nodes_instance_and_the_present_time() {
        let node = TestNode {
            name: "ip-10-0-0-1.ec2.internal".to_owned(),
            instance_id: "i-0123456789abcdef0".to_owned(),
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
