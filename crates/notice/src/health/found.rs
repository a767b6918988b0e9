//! Converts a scheduled event of `DescribeInstanceStatus` to an AWS Health event.
//!
//! If no AWS Health event has arrived, the function invokes itself with the event that this module makes.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::super::continued::History;
use super::super::{Home, InstanceId, Maintenance};
use super::DETAIL_TYPE;

/// Prefixes of the description of a scheduled event that is over.
const OVER: [&str; 2] = ["[Completed]", "[Canceled]"];
/// Maximum difference between the start times that EC2 and AWS Health give for the same maintenance.
const APART: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledEvent {
    /// EC2's id of the scheduled event. AWS Health uses another id.
    pub id: String,
    pub instance: InstanceId,
    /// Kind of maintenance: `instance-reboot`, `system-reboot`, `system-maintenance`, `instance-retirement` or `instance-stop`.
    pub code: String,
    pub description: String,
    pub starts: Timestamp,
}

impl ScheduledEvent {
    #[must_use]
    pub fn is_over(&self) -> bool {
        OVER.iter().any(|over| self.description.starts_with(over))
    }

    #[must_use]
    pub fn as_notice(&self, home: &Home, now: Timestamp) -> History {
        let code = format!("AWS_EC2_{}_SCHEDULED", self.code.to_uppercase().replace('-', "_"));
        let id = found_id(code.contains(super::REBOOT), self.starts);
        History::of(json!({
            "id": self.id,
            "source": "aws.health",
            "detail-type": DETAIL_TYPE,
            "account": home.account,
            "region": home.region,
            "time": now,
            "detail": {
                "eventArn": format!("arn:aws:health:{}::event/EC2/{code}/{id}", home.region),
                "service": "EC2",
                "eventTypeCode": code,
                "eventTypeCategory": "scheduledChange",
                "statusCode": "upcoming",
                "startTime": self.starts,
                "affectedEntities": [{"entityValue": self.instance.as_str()}],
            },
        }))
    }
}

impl Maintenance {
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.id.starts_with(FOUND)
    }

    /// Returns `true` if `id` is `self.id` or one of [`Self::found_ids`].
    #[must_use]
    pub fn is(&self, id: &str) -> bool {
        self.id == id || self.found_ids().iter().any(|found| found == id)
    }

    #[must_use]
    pub fn found_ids(&self) -> Vec<String> {
        let around = |starts: Timestamp| [-APART, SignedDuration::ZERO, APART].map(|by| starts.saturating_add(by));
        let times = self.starts.map(around).into_iter().flatten();
        times.flatten().map(|starts| found_id(self.reboots, starts)).collect()
    }
}

const FOUND: &str = "found-";

/// Returns an id for maintenance that a lookup in EC2 found. The id contains the kind and the start hour of the maintenance.
fn found_id(reboots: bool, starts: Timestamp) -> String {
    let kind = if reboots { "reboot" } else { "stop" };
    format!("{FOUND}{kind}-{}", starts.strftime("%Y%m%dT%H"))
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;
    use crate::{Deadline, Incoming, Kind, Notice, continued, payload};

    fn home() -> Home {
        Home { account: "123456789012".to_owned(), region: "us-east-1".to_owned() }
    }

    fn event(code: &str) -> ScheduledEvent {
        ScheduledEvent {
            id: "instance-event-1".to_owned(),
            instance: InstanceId::parse("i-1234567890abcdef0").unwrap(),
            code: code.to_owned(),
            description: "The instance is running on degraded hardware".to_owned(),
            starts: "2026-12-05T13:59:03Z".parse().unwrap(),
        }
    }

    /// The notice that the function reads from the event.
    fn read(event: &ScheduledEvent) -> Notice {
        let payload = payload(continued::KEY, &event.as_notice(&home(), "2026-11-24T12:00:00Z".parse().unwrap()));
        match crate::read(serde_json::from_str(&payload).unwrap(), &home()).unwrap() {
            Incoming::Notice { notice, .. } => notice,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ec2s_event_is_read_as_maintenance() {
        for (code, reboots) in [("system-reboot", true), ("instance-retirement", false)] {
            let notice = read(&event(code));
            assert_eq!(
                (notice.kind, notice.deadline),
                (Kind::Maintenance, Deadline::Hard(event(code).starts)),
                "{code}"
            );
            assert_eq!(notice.maintenance.map(|maintenance| maintenance.reboots), Some(reboots), "{code}");
            assert_eq!(notice.instance, event(code).instance);
        }
    }

    #[test]
    fn found_maintenance_equals_aws_healths() {
        let found = read(&event("system-reboot")).maintenance.unwrap();
        let of_health = |minutes: i64, reboots| Maintenance {
            id: "90353408594353983".to_owned(),
            reboots,
            starts: Some(event("").starts + minutes.minutes()),
        };
        for minutes in [-60, -1, 0, 1, 60] {
            assert!(of_health(minutes, true).is(&found.id), "{minutes}");
        }
        assert!(!of_health(24 * 60, true).is(&found.id), "the next day's");
        assert!(!of_health(0, false).is(&found.id), "a stop");
        assert!(found.is_found() && !of_health(0, true).is_found());
    }

    #[test]
    fn completed_or_canceled_event_is_over() {
        let described =
            |description: &str| ScheduledEvent { description: description.to_owned(), ..event("system-reboot") };
        assert!(described("[Completed] A maintenance").is_over() && described("[Canceled] A maintenance").is_over());
        assert!(!described("A maintenance").is_over());
    }
}
