//! From an EventBridge event to what it means for one instance. Pure: JSON in, plain data out.
//!
//! Each kind of notice has a file of its own. Nothing but the instance id, the time and the
//! names of the hook is taken from an event: documented ARNs are malformed.

pub(crate) mod continued;
mod envelope;
pub(crate) mod spot;
mod terminate;

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use continued::History;
use envelope::Envelope;
pub(crate) use envelope::NoticeError;

/// An EC2 instance id, checked: `i-` and 8 or 17 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct InstanceId(String);

impl InstanceId {
    /// The id, or `None` if the text is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("i-")?;
        let hexadecimal = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (matches!(digits.len(), 8 | 17) && hexadecimal).then(|| Self(text.to_owned()))
    }

    /// The id as EC2 writes it.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kinds of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// EC2 takes a spot instance back in two minutes.
    Spot,
    /// An Auto Scaling group terminates an instance and waits for its hook.
    Terminate,
}

impl Kind {
    /// The kind as receipts, metrics and the claim on a node name it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Spot => "spot interruption",
            Self::Terminate => "terminate lifecycle action",
        }
    }
}

/// Until when the pods can leave in peace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// The instance goes at that time, whatever we do.
    Hard(Timestamp),
    /// AWS waits for as long as the hook is held.
    HeldByHook,
}

/// The lifecycle hook that waits for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    /// The Auto Scaling group.
    pub(crate) group: String,
    /// The hook's name.
    pub(crate) name: String,
    /// Names this very action; without it, the instance does.
    pub(crate) token: Option<String>,
}

/// What a notice means for one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interruption {
    /// The event's id: the same in every delivery of the same event.
    pub(crate) event_id: String,
    /// Which kind of notice it was.
    pub(crate) kind: Kind,
    /// The instance that goes.
    pub(crate) instance: InstanceId,
    /// When AWS gave notice: the clock starts here.
    pub(crate) time: Timestamp,
    /// Until when its pods can leave.
    pub(crate) deadline: Deadline,
    /// The hook to complete, if one waits.
    pub(crate) hook: Option<Hook>,
}

/// What an event turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// One that concerns an instance.
    Interruption {
        /// What it means for it.
        interruption: Interruption,
        /// The notice itself, and how far earlier invocations came with it.
        history: History,
    },
    /// One that we do not handle, and why.
    Unhandled {
        /// The event's id.
        event_id: String,
        /// Why it is not handled, in plain words.
        why: String,
    },
}

/// Reads an event. An event of another kind is no error; one of ours that cannot be read is.
pub(crate) fn read(payload: Value) -> Result<Notice, NoticeError> {
    let envelope = envelope::read(payload.clone())?;
    match (envelope.source.as_str(), envelope.detail_type.as_str()) {
        (continued::SOURCE, continued::DETAIL_TYPE) => {
            let history = continued::read(&envelope)?;
            of_aws(envelope::read(history.notice.clone())?, history)
        }
        _ => of_aws(envelope, History::of(payload)),
    }
}

/// Reads one of AWS' notices.
fn of_aws(envelope: Envelope, history: History) -> Result<Notice, NoticeError> {
    let interruption = match (envelope.source.as_str(), envelope.detail_type.as_str()) {
        ("aws.ec2", spot::DETAIL_TYPE) => spot::read(envelope)?,
        ("aws.autoscaling", terminate::DETAIL_TYPE) => terminate::read(envelope)?,
        (source, detail_type) => {
            return Ok(Notice::Unhandled {
                why: format!("Spillway does not handle the notice {detail_type:?} of {source}"),
                event_id: envelope.id,
            });
        }
    };
    Ok(Notice::Interruption { interruption, history })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// Reads one of the samples that the documents, the demo and the tests share.
    pub(super) fn sample(name: &str) -> Value {
        let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn every_sample_in_events_is_read() {
        let folder = format!("{}/../../events", env!("CARGO_MANIFEST_DIR"));
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let event: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert!(matches!(read(event).unwrap(), Notice::Interruption { .. }), "{}", path.display());
            seen += 1;
        }
        assert!(seen >= 3, "the samples are gone");
    }

    #[test]
    fn a_notice_of_another_kind_is_not_handled_and_is_no_error() {
        let mut event = sample("spot-interruption");
        event["detail-type"] = "EC2 Fleet Instance Change".into();
        let Notice::Unhandled { why, .. } = read(event).unwrap() else { panic!("it is handled") };
        assert_eq!(why, "Spillway does not handle the notice \"EC2 Fleet Instance Change\" of aws.ec2");
    }

    #[test]
    fn only_aws_own_notices_are_read() {
        let mut event = sample("spot-interruption");
        event["source"] = "my.tool".into();
        assert!(matches!(read(event).unwrap(), Notice::Unhandled { .. }));
    }

    #[test]
    fn an_instance_id_is_checked() {
        for id in ["i-0123456789abcdef0", "i-1a2b3c4d"] {
            assert_eq!(InstanceId::parse(id).unwrap().as_str(), id);
        }
        for text in
            ["", "i-", "i-123", "i-0123456789ABCDEF0", "mi-0123456789abcdef0", "i-0123456789abcdef0 ", "i-xyzxyzxy"]
        {
            assert_eq!(InstanceId::parse(text), None, "{text:?}");
        }
    }
}
