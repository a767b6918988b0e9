//! The notices: how one of each kind is made for an instance, and what one that comes is about. Pure, but for its time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::{Value, json};

/// The kinds of notices, and what the function has itself invoked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Spot,
    Capacity,
    CapacityBlock,
    Rebalance,
    Maintenance,
    MaintenanceOver,
    Stopping,
    Stopped,
    ShuttingDown,
    Terminated,
    Running,
    Terminate,
    /// The rest of a drain, one instance of several, or what waited for its time.
    Continuation,
    UndoCheck,
    Other,
}

impl Kind {
    /// Those of AWS that lead to something by the settings of a run.
    #[cfg(test)]
    pub(super) const NOTICES: [Self; 10] = [
        Self::Spot,
        Self::Capacity,
        Self::CapacityBlock,
        Self::Rebalance,
        Self::Maintenance,
        Self::MaintenanceOver,
        Self::Stopping,
        Self::ShuttingDown,
        Self::Running,
        Self::Terminate,
    ];

    /// By its name in docs/notices.md.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Spot => "spot interruption",
            Self::Capacity => "capacity reservation interruption",
            Self::CapacityBlock => "capacity block expiry",
            Self::Rebalance => "rebalance recommendation",
            Self::Maintenance => "scheduled maintenance",
            Self::MaintenanceOver => "maintenance over",
            Self::Stopping => "instance stopping",
            Self::Stopped => "instance stopped",
            Self::ShuttingDown => "instance shutting down",
            Self::Terminated => "instance terminated",
            Self::Running => "instance running",
            Self::Terminate => "terminate lifecycle action",
            Self::Continuation => "continuation",
            Self::UndoCheck => "undo check",
            Self::Other => "other",
        }
    }

    /// Whether the function has itself invoked with it.
    pub(super) fn is_own(self) -> bool {
        matches!(self, Self::Continuation | Self::UndoCheck)
    }

    /// Whether it is AWS' word that pods are to leave.
    pub(super) fn has_pods_leave(self) -> bool {
        !self.is_own()
            && !matches!(self, Self::MaintenanceOver | Self::Stopped | Self::Terminated | Self::Running | Self::Other)
    }

    pub(super) fn of(event: &Value) -> Self {
        if !event["spillway-continuation"].is_null() {
            return Self::Continuation;
        }
        if !event["spillway-undo-check"].is_null() {
            return Self::UndoCheck;
        }
        let detail = &event["detail"];
        match (event["detail-type"].as_str().unwrap_or_default(), detail["state"].as_str()) {
            ("EC2 Spot Instance Interruption Warning", _) => Self::Spot,
            ("EC2 Capacity Reservation Instance Interruption Warning", _) => Self::Capacity,
            ("Capacity Block Reservation Expiration Warning", _) => Self::CapacityBlock,
            ("EC2 Instance Rebalance Recommendation", _) => Self::Rebalance,
            ("EC2 Instance-terminate Lifecycle Action", _) => Self::Terminate,
            ("AWS Health Event", _) if detail["statusCode"] == "closed" => Self::MaintenanceOver,
            ("AWS Health Event", _) => Self::Maintenance,
            (_, Some("stopping")) => Self::Stopping,
            (_, Some("stopped")) => Self::Stopped,
            (_, Some("shutting-down")) => Self::ShuttingDown,
            (_, Some("terminated")) => Self::Terminated,
            (_, Some("running")) => Self::Running,
            _ => Self::Other,
        }
    }
}

/// AWS' notice in an event: itself, or what the function has itself invoked with.
fn notice(event: &Value) -> &Value {
    let inner = ["spillway-continuation", "spillway-undo-check"].map(|key| &event[key]["notice"]);
    inner.into_iter().find(|notice| !notice.is_null()).unwrap_or(event)
}

/// By which the receipt names it.
pub(super) fn event_id(event: &Value) -> &str {
    notice(event)["id"].as_str().unwrap_or_default()
}

/// Whether an event names that instance, wherever it does so.
pub(super) fn is_about(event: &Value, instance: &str) -> bool {
    match event {
        Value::String(text) => text == instance || text.ends_with(&format!("instance/{instance}")),
        Value::Array(items) => items.iter().any(|item| is_about(item, instance)),
        Value::Object(fields) => fields.values().any(|field| is_about(field, instance)),
        _ => false,
    }
}

/// A notice's id and the instance that it is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) id: &'a str,
    pub(super) instance: &'a str,
}

impl About<'_> {
    pub(super) fn rebalance(self) -> Value {
        let mut event = self.sample(include_str!("../../../events/rebalance-recommendation.json"));
        event["detail"]["instance-id"] = json!(self.instance);
        event
    }

    /// The capacity is taken back after this time.
    pub(super) fn capacity(self, window: Duration) -> Value {
        let mut event = self.sample(include_str!("../../../events/capacity-reservation-interruption.json"));
        event["detail"]["instance-id"] = json!(self.instance);
        event["detail"]["instance-termination-time"] = after(window);
        event
    }

    /// EC2 begins to end the instances of the block after this time.
    pub(super) fn capacity_block(self, reservation: &str, window: Duration) -> Value {
        let mut event = self.sample(include_str!("../../../events/capacity-block-expiry.json"));
        event["detail"]["capacity-reservation-id"] = json!(reservation);
        event["detail"]["end-date"] = after(window + Duration::from_mins(30));
        event
    }

    /// A reboot that starts at that time.
    pub(super) fn maintenance(self, starts: Timestamp) -> Value {
        let mut event = self.sample(include_str!("../../../events/health-scheduled-reboot.json"));
        let detail = &mut event["detail"];
        detail["eventArn"] = json!(format!("arn:aws:health:us-east-1::event/EC2/REBOOT/REBOOT_{}", self.instance));
        detail["startTime"] = json!(starts.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        detail["affectedEntities"][0]["entityValue"] = json!(self.instance);
        event
    }

    /// It is over, or called off.
    pub(super) fn maintenance_over(self, starts: Timestamp) -> Value {
        let mut event = self.maintenance(starts);
        event["detail"]["statusCode"] = json!("closed");
        event["detail"]["affectedEntities"][0]["status"] = json!("RESOLVED");
        event
    }

    fn sample(self, sample: &str) -> Value {
        let mut event: Value = serde_json::from_str(sample).unwrap_or_default();
        event["id"] = json!(self.id);
        event["time"] = after(Duration::ZERO);
        event
    }
}

/// The second that is so far from now.
pub(super) fn after(time: Duration) -> Value {
    json!(whole(Timestamp::now() + time).to_string())
}

/// The notice as if it had been sent so long ago.
pub(super) fn sent_ago(mut event: Value, ago: Duration) -> Value {
    event["time"] = json!(whole(Timestamp::now() - SignedDuration::try_from(ago).unwrap_or_default()).to_string());
    event
}

/// AWS tells times in seconds.
pub(super) fn whole(at: Timestamp) -> Timestamp {
    at.round(Unit::Second).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About<'static> = About { id: "n-1", instance: "i-0123456789abcdef0" };

    #[test]
    fn a_notice_is_of_its_kind_and_about_its_instance() {
        let now = Timestamp::now();
        let notices = [
            (Kind::Rebalance, ABOUT.rebalance()),
            (Kind::Capacity, ABOUT.capacity(Duration::ZERO)),
            (Kind::Maintenance, ABOUT.maintenance(now)),
            (Kind::MaintenanceOver, ABOUT.maintenance_over(now)),
        ];
        for (kind, event) in notices {
            assert_eq!((Kind::of(&event), event_id(&event)), (kind, "n-1"));
            assert!(is_about(&event, ABOUT.instance), "{event:#}");
            assert!(!is_about(&event, "i-00000000000000000"));
        }
        assert_eq!(Kind::of(&ABOUT.capacity_block("cr-1", Duration::ZERO)), Kind::CapacityBlock);
    }

    #[test]
    fn what_the_function_has_itself_invoked_with_has_the_id_of_its_notice() {
        let notice = ABOUT.rebalance();
        let check = json!({"spillway-undo-check": {"notice": notice, "instance": ABOUT.instance, "number": 0}});
        assert_eq!((Kind::of(&check), event_id(&check)), (Kind::UndoCheck, "n-1"));
        let rest = json!({"spillway-continuation": {"notice": notice, "earlier": []}});
        assert_eq!((Kind::of(&rest), event_id(&rest)), (Kind::Continuation, "n-1"));
        assert!(is_about(&rest, ABOUT.instance));
    }
}
