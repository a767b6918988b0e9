//! From an EventBridge event to what it means for one instance. Pure: JSON in, plain data out.
//!
//! Each kind of notice has a file of its own, which says what AWS promises there. Of an event only what is
//! needed is taken, and never an ARN where an id can be had: documented ARNs are malformed.

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

/// The source of the events that the function puts on the bus, for people.
pub const SOURCE: &str = "spillway";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// The instance goes at that time, whatever we do.
    Hard(Timestamp),
    /// The instance is going, or what was announced has begun: nobody says how long is left.
    Unknown,
    /// AWS waits for as long as the hook is held.
    HeldByHook,
    /// Nothing happens at a certain time: the settings say how long is enough.
    Open,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub group: String,
    pub name: String,
    /// Names this very action; without it, the instance does.
    pub token: Option<String>,
}

/// Scheduled maintenance: the one notice that is about another time than now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// What names it in all its updates: the last part of the event's ARN.
    pub id: String,
    /// Whether the instance comes back by itself, having been rebooted.
    pub reboots: bool,
    pub starts: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The event's id: the same in every delivery of the same event.
    pub event_id: String,
    pub kind: Kind,
    pub instance: InstanceId,
    /// The Availability Zone that AWS wrote into the notice, if it did: a hint.
    pub zone: Option<String>,
    pub time: Timestamp,
    pub deadline: Deadline,
    pub hook: Option<Hook>,
    pub maintenance: Option<Maintenance>,
}

impl Notice {
    /// What it means at that time: maintenance that should have begun may begin any moment, be under way or over.
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
    /// One that concerns one instance.
    Notice {
        notice: Notice,
        /// The notice itself, and how far earlier invocations came with it.
        history: History,
    },
    /// An event of ours, about a notice for which a node was cordoned: whether it may be uncordoned.
    UndoCheck { notice: Notice, check: UndoCheck },
    /// A request of ours to look for scheduled maintenance that no notice has brought.
    MaintenanceLookup,
    /// One that concerns several, or an unknown number: each gets an invocation of its own.
    Several(Several),
    Unhandled {
        event_id: String,
        why: String,
        /// Whether AWS has added something that matters to a node.
        is_unknown: bool,
    },
}

/// A notice that does not concern just one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Several {
    pub event_id: String,
    pub kind: Kind,
    pub time: Timestamp,
    pub instances: Instances,
    pub history: History,
}

/// The instances of a notice that does not concern just one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instances {
    /// What stands in the notice, with the entry that names it. Each is checked where it is alone, so that one that
    /// is no instance id fails by itself.
    Named(BTreeMap<String, Value>),
    /// All of this capacity reservation; EC2 knows them.
    OfReservation(String),
}

enum Concerns {
    One(InstanceId),
    Several(Instances),
}

/// What a notice says, whichever instance it says it of. Read by the file of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParsedNotice {
    kind: Kind,
    deadline: Deadline,
    hook: Option<Hook>,
    maintenance: Option<Maintenance>,
}

enum Parsed {
    /// A notice of ours: whom it concerns, and what it says.
    Of(Concerns, ParsedNotice),
    Nothing(String),
    /// A notice of ours that AWS has extended.
    Unknown(String),
}

impl ParsedNotice {
    fn of(kind: Kind, deadline: Deadline) -> Self {
        Self { kind, deadline, hook: None, maintenance: None }
    }
}

/// What the function tells itself, by an invocation or a schedule: data under one key that says what it is. What came over an
/// event bus has a dozen keys, of which a sender chooses none, so that nobody can write this without the right to invoke the
/// function.
pub fn payload(key: &str, data: &impl Serialize) -> String {
    serde_json::to_string(&BTreeMap::from([(key, data)])).expect("it is plain data with text for keys")
}

fn own<T: DeserializeOwned>(payload: &Value, key: &str) -> Option<Result<T, NoticeError>> {
    let fields = payload.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(key).map(|data| envelope::parse(data.clone(), key))
}

/// Reads an EventBridge event or a payload of the function's own. Every other shape is an error. An event of another kind is no
/// error; one of ours that cannot be read is, and one from another account or Region.
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
    // Only now: a copy that AWS Health sends to another Region is no error.
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
            return Ok(Incoming::Several(Several { event_id, kind, time, instances, history: history.without_list() }));
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
        // Whoever may put events on a bus can write this.
        (SOURCE, detail_type) => Ok(Parsed::Nothing(format!(
            "{} came over an event bus, where anybody may have put it: what Spillway tells itself comes by invocations alone",
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
