//! `EC2 Instance State-change Notification`: an instance stops or ends, whoever asked for it; or runs.

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

    use super::super::tests::{notice, refused, sample, unhandled};
    use super::*;

    fn state(state: impl Into<Value>) -> Value {
        let mut event = sample("state-change-stopping");
        event["detail"]["state"] = state.into();
        event
    }

    #[test]
    fn each_state_of_an_instance_is_a_notice_of_its_own() {
        for (name, kind, deadline) in [
            ("stopping", Kind::Stopping, Deadline::Unknown),
            ("stopped", Kind::Stopped, Deadline::Open),
            ("shutting-down", Kind::ShuttingDown, Deadline::Unknown),
            ("terminated", Kind::Terminated, Deadline::Open),
            ("running", Kind::Running, Deadline::Open),
        ] {
            let read = notice(sample(&format!("state-change-{name}")));
            assert_eq!((read.kind, read.deadline), (kind, deadline), "{name}");
            assert_eq!(notice(state(name.to_uppercase())).kind, kind, "{name}");
        }
    }

    #[test]
    fn a_state_that_asks_for_nothing_is_not_handled() {
        assert_eq!(unhandled(state("pending")), "an instance that is about to run needs nothing");
        // NTH takes each of these for a state, because it looks for them in one text of all states.
        for name in ["", "stop", "down,terminated", "on fire"] {
            assert_eq!(unhandled(state(name)), format!("Spillway does not know the instance state {name:?}"));
        }
        let why = "cannot read the notice: at detail.state: invalid type: null, expected a string";
        assert_eq!(refused(state(Value::Null)), why);
    }
}
