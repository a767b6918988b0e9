//! Notices of AWS Health of scheduled maintenance.

use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::{Value, json};

use crate::{in_seconds, sample};

/// Maintenance of one instance.
#[must_use]
#[derive(Debug, Clone)]
pub struct Maintenance {
    pub instance_id: String,
    pub id: String,
    /// Start, in whole seconds.
    pub starts: Timestamp,
}

impl Maintenance {
    /// A reboot.
    pub fn of(instance_id: &str, starts: Timestamp) -> Self {
        let starts = starts.round(Unit::Second).expect("a present time");
        Self { instance_id: instance_id.to_owned(), id: format!("REBOOT_{instance_id}"), starts }
    }

    pub fn moved_to(&self, starts: Timestamp) -> Self {
        Self { id: self.id.clone(), ..Self::of(&self.instance_id, starts) }
    }

    /// The announcement or an update of it; each event has its own id.
    pub fn notice(&self, event_id: &str) -> Value {
        let mut event = sample("health-scheduled-reboot");
        let code = event["detail"]["eventTypeCode"].as_str().unwrap_or_default().to_owned();
        event["id"] = json!(event_id);
        event["time"] = json!(in_seconds(Timestamp::now()));
        let detail = &mut event["detail"];
        detail["eventArn"] = json!(format!("arn:aws:health:us-east-1::event/EC2/{code}/{}", self.id));
        detail["startTime"] = json!(self.starts.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        detail["affectedEntities"][0]["entityValue"] = json!(self.instance_id);
        event
    }
}

pub fn in_s(seconds: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(seconds)
}
