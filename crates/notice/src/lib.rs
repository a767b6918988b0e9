//! Notices: EventBridge events, read for one instance. Pure: JSON in, plain data out.
//!
//! Each kind of notice has its own file, which quotes what AWS promises about the kind. Only the needed fields are read. Where
//! possible an id is read instead of an ARN, because some documented ARNs are malformed.

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

/// Source of the function's own events on the bus.
pub const SOURCE: &str = "spillway";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// The instance goes at this time.
    Hard(Timestamp),
    /// The instance is going, or its maintenance has begun, at an unknown time.
    Unknown,
    /// The instance goes when its hook is completed.
    HeldByHook,
    /// The notice names no time. A limit for the kind of notice ends the drain.
    Open,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub group: String,
    pub name: String,
    /// Token of the lifecycle action. Without a token, the instance identifies the action.
    pub token: Option<String>,
}

/// Scheduled maintenance, which AWS announces days or weeks ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// Id that all updates of the maintenance share: the last part of the event's ARN.
    pub id: String,
    /// The instance reboots and comes back.
    pub reboots: bool,
    pub starts: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Id of the event, equal in every delivery.
    pub event_id: String,
    pub kind: Kind,
    pub instance: InstanceId,
    /// Availability Zone that the notice names, unverified.
    pub zone: Option<String>,
    pub time: Timestamp,
    pub deadline: Deadline,
    pub hook: Option<Hook>,
    pub maintenance: Option<Maintenance>,
}

impl Notice {
    /// Updates the deadline to the time `now`. If the planned start of maintenance has passed, the deadline is unknown: the
    /// maintenance may begin at any moment, be under way or be over.
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
        /// The notice as JSON, and the earlier invocations for the notice.
        history: History,
    },
    /// Spillway's own event to check if a node that was drained for the notice may be uncordoned.
    UndoCheck { notice: Notice, check: UndoCheck },
    /// Spillway's own event to look up scheduled maintenance for which no notice came.
    MaintenanceLookup,
    /// A notice that concerns several instances, or an unknown number. Each instance gets its own invocation.
    Several(Several),
    Unhandled {
        event_id: String,
        why: String,
        /// The notice has a value that this version does not know, so the notice may matter to a node.
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
    /// Instance ids in the notice, with their entries. Each id is parsed in its own invocation, because a malformed id must fail
    /// alone.
    Named(BTreeMap<String, Value>),
    /// Capacity reservation whose instances EC2 has to list.
    OfReservation(String),
}

enum Concerns {
    One(InstanceId),
    Several(Instances),
}

/// Contents of a notice, without its instance.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParsedNotice {
    kind: Kind,
    deadline: Deadline,
    hook: Option<Hook>,
    maintenance: Option<Maintenance>,
}

enum Parsed {
    /// A notice that is handled: its instances and its contents.
    Of(Concerns, ParsedNotice),
    /// A notice that needs no action, with the reason.
    Nothing(String),
    /// A notice with a value that this version does not know, such as one that AWS introduced later.
    Unknown(String),
}

impl ParsedNotice {
    fn of(kind: Kind, deadline: Deadline) -> Self {
        Self { kind, deadline, hook: None, maintenance: None }
    }
}

/// Builds Spillway's own payload for an invocation or a schedule: data under a single key. An event from a bus has a dozen keys,
/// which its sender cannot choose. Therefore only a principal that may invoke the function can send such a payload.
pub fn payload(key: &str, data: &impl Serialize) -> String {
    serde_json::to_string(&BTreeMap::from([(key, data)])).expect("it is plain data with text for keys")
}

fn own<T: DeserializeOwned>(payload: &Value, key: &str) -> Option<Result<T, NoticeError>> {
    let fields = payload.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(key).map(|data| envelope::parse(data.clone(), key))
}

/// Reads an EventBridge event or one of Spillway's own payloads. Fails on any other shape, on an unreadable notice, and on a
/// notice of another account or Region. Returns `Unhandled` for an event that is no notice.
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
