//! Maintenance that AWS Health announces: the notice of it, for an instance and a time of one's own.

use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::{Value, json};

use crate::sample;

/// What happens to one instance at one time, as AWS Health words it.
#[derive(Debug, Clone)]
pub struct Maintenance {
    /// The instance.
    pub instance_id: String,
    /// What tells it from other maintenance.
    pub id: String,
    /// The second at which it starts.
    pub starts: Timestamp,
}

impl Maintenance {
    /// A reboot.
    #[must_use]
    pub fn of(instance_id: &str, starts: Timestamp) -> Self {
        let starts = starts.round(Unit::Second).expect("a time of these days");
        Self { instance_id: instance_id.to_owned(), id: format!("REBOOT_{instance_id}"), starts }
    }

    /// The same at another time.
    #[must_use]
    pub fn moved_to(&self, starts: Timestamp) -> Self {
        Self { id: self.id.clone(), ..Self::of(&self.instance_id, starts) }
    }

    /// The same instance's other maintenance.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { id: format!("{}_2", self.id), ..self.clone() }
    }

    /// AWS announces it, or tells of it again: each event has an id of its own.
    #[must_use]
    pub fn notice(&self, event_id: &str) -> Value {
        let mut event = sample("health-scheduled-reboot");
        let code = event["detail"]["eventTypeCode"].as_str().unwrap_or_default().to_owned();
        event["id"] = json!(event_id);
        event["time"] = json!(Timestamp::now().round(Unit::Second).expect("a time of these days").to_string());
        let detail = &mut event["detail"];
        detail["eventArn"] = json!(format!("arn:aws:health:us-east-1::event/EC2/{code}/{}", self.id));
        detail["startTime"] = json!(self.starts.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        detail["affectedEntities"][0]["entityValue"] = json!(self.instance_id);
        event
    }

    /// It is over, or was called off.
    #[must_use]
    pub fn closed(&self, event_id: &str) -> Value {
        let mut event = self.notice(event_id);
        event["detail"]["statusCode"] = json!("closed");
        event["detail"]["affectedEntities"][0]["status"] = json!("RESOLVED");
        event
    }
}

/// So many seconds from now.
#[must_use]
pub fn in_s(seconds: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(seconds)
}
