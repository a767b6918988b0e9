//! Parses notices: EventBridge events about EC2 instances. Does no I/O.
//!
//! Each kind of notice has its own file. Ids are preferred to ARNs, because some ARNs in AWS' documentation are malformed.

mod capacity_block;
pub mod capacity_reservation;
pub mod continued;
mod date;
mod envelope;
pub mod event_patterns;
mod health;
mod home;
mod instance_id;
mod kind;
mod launch;
mod lifecycle_action;
pub mod maintenance_lookup;
mod rebalance;
pub mod spot;
mod state_change;
mod terminate;
pub mod undo_check;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use continued::History;
pub use envelope::NoticeError;
use envelope::{Envelope, quoted};
pub use health::found::ScheduledEvent;
pub use home::Home;
pub use instance_id::InstanceId;
pub use kind::Kind;
use maintenance_lookup::MaintenanceLookup;
use undo_check::UndoCheck;

/// `source` of the events that the function puts on the event bus.
pub const SOURCE: &str = "spillway";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// The instance goes down at this time.
    Hard(Timestamp),
    /// The instance is stopping, or its maintenance has begun. The time at which the instance goes down is unknown.
    Unknown,
    /// A lifecycle hook holds the instance until the hook is completed.
    HeldByHook,
    /// The notice names no time.
    Open,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub group: String,
    pub name: String,
    /// Lifecycle action token. If absent, the instance id identifies the lifecycle action.
    pub token: Option<String>,
}

/// Scheduled maintenance of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// Last part of the AWS Health event's ARN. All updates of the maintenance have the same id.
    pub id: String,
    /// `true` if the instance reboots and comes back.
    pub reboots: bool,
    pub starts: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// EventBridge's id of the event, equal in every delivery.
    pub event_id: String,
    pub kind: Kind,
    pub instance: InstanceId,
    /// Availability Zone according to the notice, not verified.
    pub zone: Option<String>,
    pub time: Timestamp,
    pub deadline: Deadline,
    pub hook: Option<Hook>,
    pub maintenance: Option<Maintenance>,
}

impl Notice {
    /// Sets the deadline to `Unknown` if the planned start of maintenance has passed.
    fn at(self, now: Timestamp) -> Self {
        match (self.kind, self.deadline) {
            (Kind::Maintenance, Deadline::Hard(starts)) if starts <= now => {
                Self { deadline: Deadline::Unknown, ..self }
            }
            _ => self,
        }
    }
}

impl Incoming {
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        match self {
            Self::Notice { notice, history } => Self::Notice { notice: notice.at(now), history },
            Self::UndoCheck { notice, check } => Self::UndoCheck { notice: notice.at(now), check },
            other @ (Self::Several(_) | Self::MaintenanceLookup | Self::Unhandled { .. }) => other,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    Notice {
        notice: Notice,
        /// Notice as JSON, and data about earlier invocations for the notice.
        history: History,
    },
    /// Scheduled invocation: the function checks whether the node that it drained for the notice can be uncordoned.
    UndoCheck { notice: Notice, check: UndoCheck },
    /// Scheduled invocation: the function asks EC2 for maintenance that AWS Health has not announced.
    MaintenanceLookup,
    /// A notice about several instances or a capacity reservation. Each instance gets an invocation of its own.
    Several(Several),
    Unhandled {
        event_id: String,
        why: String,
        /// `true` if the notice has a value that this version of Spillway does not know.
        is_unknown: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Several {
    pub event_id: String,
    pub kind: Kind,
    pub time: Timestamp,
    pub instances: Instances,
    pub history: History,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instances {
    /// Entries of `affectedEntities` by instance id. The ids are not validated yet.
    Named(BTreeMap<String, Value>),
    /// Id of the capacity reservation to which the instances belong.
    OfReservation(String),
}

enum Concerns {
    One(InstanceId),
    Several(Instances),
}

/// Contents of a notice, except the instance.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParsedNotice {
    kind: Kind,
    deadline: Deadline,
    hook: Option<Hook>,
    maintenance: Option<Maintenance>,
}

enum Parsed {
    /// A notice that the function handles.
    Of(Concerns, ParsedNotice),
    /// A notice that needs no action, and the reason.
    Nothing(String),
    /// A notice with a value that this version of Spillway does not know.
    Unknown(String),
}

impl ParsedNotice {
    fn of(kind: Kind, deadline: Deadline) -> Self {
        Self { kind, deadline, hook: None, maintenance: None }
    }
}

/// Builds a payload with which the function invokes itself: an object with a single key. Events from an event bus always have
/// more keys and cannot imitate the payload.
pub fn payload(key: &str, data: &impl Serialize) -> String {
    serde_json::to_string(&BTreeMap::from([(key, data)])).expect("it is plain data with text for keys")
}

fn own<T: DeserializeOwned>(payload: &Value, key: &str) -> Option<Result<T, NoticeError>> {
    let fields = payload.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(key).map(|data| envelope::parse(data.clone(), key))
}

/// Parses an EventBridge event or one of Spillway's own payloads. Returns `Unhandled` for an event that needs no action.
pub fn read(payload: Value, home: &Home) -> Result<Incoming, NoticeError> {
    if let Some(history) = own::<History>(&payload, continued::KEY) {
        let history = history?;
        return of_aws(envelope::read("spillway-continuation.notice", history.notice.clone())?, history, home);
    }
    if let Some(check) = own::<UndoCheck>(&payload, undo_check::KEY) {
        let check = check?;
        let history = History::of(check.notice.clone()).for_instance(&check.instance);
        return Ok(match of_aws(envelope::read("spillway-undo-check.notice", check.notice.clone())?, history, home)? {
            Incoming::Notice { notice, .. } => Incoming::UndoCheck { notice, check },
            other => other,
        });
    }
    if let Some(lookup) = own::<MaintenanceLookup>(&payload, maintenance_lookup::KEY) {
        return lookup.map(|MaintenanceLookup {}| Incoming::MaintenanceLookup);
    }
    envelope::expect_event(&payload)?;
    of_aws(envelope::read("", payload.clone())?, History::of(payload), home)
}

fn of_aws(envelope: Envelope, history: History, home: &Home) -> Result<Incoming, NoticeError> {
    let (which, parsed) = match parse(&envelope)? {
        Parsed::Of(which, parsed) => (which, parsed),
        Parsed::Nothing(why) => return Ok(Incoming::Unhandled { event_id: envelope.id, why, is_unknown: false }),
        Parsed::Unknown(why) => return Ok(Incoming::Unhandled { event_id: envelope.id, why, is_unknown: true }),
    };
    // Checked last. AWS Health sends a copy of each event to another Region, and an unhandled copy must cause no error.
    envelope.is_from(home)?;
    let zone = envelope.zone().map(str::to_owned);
    let (event_id, time) = (envelope.id, envelope.time);
    let ParsedNotice { kind, deadline, hook, maintenance } = parsed;
    let instance = match (&history.instance, which) {
        (Some(instance), _) => InstanceId::read("instance", instance)?,
        (None, Concerns::One(instance)) => instance,
        (None, Concerns::Several(Instances::Named(named))) if named.len() < 2 => {
            let Some((id, _)) = named.first_key_value() else {
                let why = "it names no instance".to_owned();
                return Ok(Incoming::Unhandled { event_id, why, is_unknown: false });
            };
            InstanceId::read("detail.affectedEntities[].entityValue", id)?
        }
        (None, Concerns::Several(instances)) => {
            return Ok(Incoming::Several(Several {
                event_id,
                kind,
                time,
                instances,
                history: history.without_entities(),
            }));
        }
    };
    let notice = Notice { event_id, kind, instance, zone, time, deadline, hook, maintenance };
    Ok(Incoming::Notice { notice, history })
}

fn parse(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    match (envelope.source.as_str(), envelope.detail_type.as_str()) {
        ("aws.ec2", spot::DETAIL_TYPE) => spot::read(envelope),
        ("aws.ec2", rebalance::DETAIL_TYPE) => rebalance::read(envelope),
        ("aws.ec2", state_change::DETAIL_TYPE) => state_change::read(envelope),
        ("aws.ec2", capacity_reservation::DETAIL_TYPE | capacity_reservation::OLDER_DETAIL_TYPE) => {
            capacity_reservation::read(envelope)
        }
        ("aws.ec2", capacity_block::DETAIL_TYPE) => capacity_block::read(envelope),
        ("aws.health", health::DETAIL_TYPE) => health::read(envelope),
        ("aws.autoscaling", terminate::DETAIL_TYPE) => terminate::read(envelope),
        ("aws.autoscaling", launch::DETAIL_TYPE) => launch::read(envelope),
        // Any principal that may put events on a bus can write this source.
        (SOURCE, detail_type) => Ok(Parsed::Nothing(format!(
            "{} came over an event bus, where any principal may put events: Spillway's own payloads come by invocation only",
            quoted(detail_type)
        ))),
        (source, detail_type) => Ok(Parsed::Nothing(format!(
            "Spillway does not handle the notice {} of {}",
            quoted(detail_type),
            quoted(source)
        ))),
    }
}

#[cfg(test)]
mod tests;
