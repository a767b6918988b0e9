//! The EventBridge envelope, read leniently where AWS is inexact and strictly where it matters.

use aws_lambda_events::eventbridge::EventBridgeEvent;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Home, InstanceId};

/// An event that ought to be ours and cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoticeError {
    /// A field is missing or of the wrong type.
    #[error("cannot read the notice: at {path}: {why}")]
    Field {
        /// Where, as in `detail.instance-id`.
        path: String,
        /// What is wrong there.
        why: String,
    },
    /// The instance id is none.
    #[error("cannot read the notice: at {path}: {given:?} is no instance id")]
    InstanceId {
        /// Where.
        path: &'static str,
        /// What stands there.
        given: String,
    },
    /// Some of what ought to be instances is none; the others are on their way.
    #[error(
        "cannot read some of the notice's instances: {}; the other {read} are handed on",
        unreadable.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
    )]
    Instances {
        /// How many could be read.
        read: usize,
        /// What stands in the place of the others.
        unreadable: Vec<String>,
    },
    /// It is about another account's instances, or another Region's.
    #[error("the notice is of account {from}, and this function acts in account {home}")]
    Foreign {
        /// The notice's account and Region.
        from: String,
        /// The function's.
        home: String,
    },
}

/// What every notice has.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    pub(super) id: String,
    pub(super) source: String,
    pub(super) detail_type: String,
    pub(super) time: Timestamp,
    account: Option<String>,
    region: Option<String>,
    detail: Value,
}

/// Reads the envelope; the detail stays as it is.
pub(super) fn read(mut payload: Value) -> Result<Envelope, NoticeError> {
    mend_resources(&mut payload);
    let event: EventBridgeEvent<Value> = parse(payload, "")?;
    let time = event.time.ok_or_else(|| missing("time"))?;
    Ok(Envelope {
        id: event.id.ok_or_else(|| missing("id"))?,
        account: event.account,
        region: event.region,
        source: event.source,
        detail_type: event.detail_type,
        time: Timestamp::from_second(time.timestamp())
            .map_err(|error| NoticeError::Field { path: "time".to_owned(), why: error.to_string() })?,
        detail: event.detail,
    })
}

fn missing(path: &str) -> NoticeError {
    NoticeError::Field { path: path.to_owned(), why: "it is missing".to_owned() }
}

/// AWS documents one notice with `resources` as a bare string. We never read it, so it goes.
fn mend_resources(payload: &mut Value) {
    if let Some(event) = payload.as_object_mut() {
        event.remove("resources");
    }
}

impl Envelope {
    /// A rule may well route another account's notices here; their instances are not ours to look for.
    pub(super) fn is_from(&self, home: &Home) -> Result<(), NoticeError> {
        let account = self.account.as_ref().ok_or_else(|| missing("account"))?;
        let region = self.region.as_ref().ok_or_else(|| missing("region"))?;
        if (account, region) == (&home.account, &home.region) {
            return Ok(());
        }
        let Home { account: our_account, region: our_region } = home;
        Err(NoticeError::Foreign {
            from: format!("{account} in {region}"),
            home: format!("{our_account} in {our_region}"),
        })
    }

    /// The detail as the notice's own structure.
    pub(super) fn detail<T: DeserializeOwned>(&self) -> Result<T, NoticeError> {
        parse(self.detail.clone(), "detail")
    }
}

/// The instance id that stands at `path`.
pub(super) fn instance_id(path: &'static str, given: &str) -> Result<InstanceId, NoticeError> {
    InstanceId::parse(given).ok_or_else(|| NoticeError::InstanceId { path, given: given.to_owned() })
}

fn parse<T: DeserializeOwned>(value: Value, root: &str) -> Result<T, NoticeError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = match (root, error.path().to_string().as_str()) {
            ("", ".") => "the top level".to_owned(),
            ("", path) => path.to_owned(),
            (root, ".") => root.to_owned(),
            (root, path) => format!("{root}.{path}"),
        };
        NoticeError::Field { path, why: error.into_inner().to_string() }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::super::tests::{home, sample};
    use super::*;

    fn refused(event: Value) -> String {
        super::super::read(event, &home()).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_place() {
        assert_eq!(
            refused(json!("spot")),
            "cannot read the notice: at the top level: invalid type: string \"spot\", expected struct EventBridgeEvent"
        );
        let mut event = sample("spot-interruption");
        event["detail"] = json!({"instance-action": "terminate"});
        assert_eq!(refused(event.clone()), "cannot read the notice: at detail: missing field `instance-id`");
        event["detail"] = json!({"instance-id": 7});
        assert_eq!(
            refused(event.clone()),
            "cannot read the notice: at detail.instance-id: invalid type: integer `7`, expected a string"
        );
        event["detail"] = json!({"instance-id": "i-1; rm"});
        assert_eq!(
            refused(event.clone()),
            "cannot read the notice: at detail.instance-id: \"i-1; rm\" is no instance id"
        );
        event["time"] = json!("yesterday");
        assert!(refused(event.clone()).starts_with("cannot read the notice: at time: "));
        event.as_object_mut().unwrap().remove("time");
        assert_eq!(refused(event), "cannot read the notice: at time: it is missing");
    }

    #[test]
    fn resources_as_a_bare_string_are_no_obstacle() {
        let mut event = sample("spot-interruption");
        event["resources"] = json!("arn:aws:ec2:us-east-2a:instance/i-1234567890abcdef0");
        super::super::read(event, &home()).unwrap();
    }
}
