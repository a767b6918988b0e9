//! `EC2 Instance State-change Notification`: an instance has a new state, such as `stopping` or `running`.

use serde::Deserialize;

use super::envelope::{Envelope, quoted};
use super::{Concerns, Deadline, InstanceId, Kind, NoticeError, Parsed, ParsedNotice};

pub(super) const DETAIL_TYPE: &str = "EC2 Instance State-change Notification";

#[derive(Deserialize)]
struct StateChangeDetail {
    #[serde(rename = "instance-id")]
    instance: InstanceId,
    state: String,
}

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let StateChangeDetail { instance, state } = envelope.detail()?;
    let (kind, deadline) = match state.to_ascii_lowercase().as_str() {
        "stopping" => (Kind::Stopping, Deadline::Unknown),
        "shutting-down" => (Kind::ShuttingDown, Deadline::Unknown),
        "stopped" => (Kind::Stopped, Deadline::Open),
        "terminated" => (Kind::Terminated, Deadline::Open),
        "running" => (Kind::Running, Deadline::Open),
        "pending" => return Ok(Parsed::Nothing("an instance that is about to run needs nothing".to_owned())),
        _ => return Ok(Parsed::Nothing(format!("Spillway does not know the instance state {}", quoted(&state)))),
    };
    Ok(Parsed::Of(Concerns::One(instance), ParsedNotice::of(kind, deadline)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::{notice, sample, unhandled};
    use super::*;

    fn state(state: &str) -> Value {
        let mut event = sample("state-change-stopping");
        event["detail"]["state"] = state.into();
        event
    }

    #[test]
    fn other_states_are_not_handled() {
        assert_eq!(notice(state("SHUTTING-DOWN")).kind, Kind::ShuttingDown, "in any case");
        assert_eq!(unhandled(state("pending")), "an instance that is about to run needs nothing");
        // NTH searches the state in one text of all states, and accepts each of these.
        for name in ["", "stop", "down,terminated", "on fire"] {
            assert_eq!(unhandled(state(name)), format!("Spillway does not know the instance state {name:?}"));
        }
    }
}
