//! Parses the fields around `detail` in an EventBridge event. Also accepts AWS' documented examples, some of which are malformed.

use std::fmt;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::home::Home;

/// Reason why the function refuses a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoticeError {
    /// A field is missing or unreadable.
    #[error("cannot read the notice: at {path}: {why}")]
    Field {
        /// Path of the field, such as `detail.instance-id`.
        path: String,
        why: String,
    },
    /// The payload is neither an EventBridge event nor one of Spillway's own payloads.
    #[error("this function takes EventBridge events; got {0}")]
    NotAnEvent(String),
    /// The notice is about another account or Region.
    #[error("the notice is of account {from}, and this function acts in account {home}")]
    Foreign { from: String, home: String },
}

#[derive(Debug, Clone)]
pub(super) struct Envelope {
    pub(super) id: String,
    pub(super) source: String,
    pub(super) detail_type: String,
    pub(super) time: Timestamp,
    account: Option<String>,
    region: Option<String>,
    zone: Option<String>,
    detail: Value,
}

/// Parses every field except `detail`. `place` is the path of the event in error messages.
pub(super) fn read(place: &str, mut payload: Value) -> Result<Envelope, NoticeError> {
    fix_detail_type(&mut payload);
    let zone = take_zone(&mut payload);
    let event: EventBridgeEvent<Value> = parse(payload, place)?;
    let time = event.time.ok_or_else(|| missing("time"))?;
    Ok(Envelope {
        id: event.id.ok_or_else(|| missing("id"))?,
        account: event.account,
        zone: zone.filter(|zone| event.region.as_ref().is_some_and(|region| is_zone_of(zone, region))),
        region: event.region,
        source: event.source,
        detail_type: event.detail_type,
        time: Timestamp::from_second(time.timestamp()).map_err(|error| unreadable("time", error))?,
        detail: event.detail,
    })
}

/// Refuses a payload that is not an EventBridge event, such as records of SQS or SNS.
pub(super) fn expect_event(payload: &Value) -> Result<(), NoticeError> {
    let has_text = |key: &str| payload.get(key).is_some_and(Value::is_string);
    if has_text("source") && (has_text("detail-type") || has_text("detail_type")) {
        return Ok(());
    }
    Err(NoticeError::NotAnEvent(quoted(&payload.to_string())))
}

/// Accepts the spelling `detail_type`, which one notice has in AWS' documentation.
fn fix_detail_type(payload: &mut Value) {
    if let Some(event) = payload.as_object_mut()
        && let Some(detail_type) = event.remove("detail_type")
    {
        event.entry("detail-type").or_insert(detail_type);
    }
}

/// Removes `resources` and returns the Region part of the first ARN. EC2 writes the Availability Zone there:
/// `arn:aws:ec2:us-east-1a:instance/i-1234567890abcdef0`.
fn take_zone(payload: &mut Value) -> Option<String> {
    let resources = payload.as_object_mut()?.remove("resources")?;
    // One documented notice has a string instead of a list.
    let first = resources.as_str().or_else(|| resources.get(0)?.as_str())?;
    first.split(':').nth(3).map(str::to_owned)
}

/// Returns `true` if `zone` is `region` followed by one letter.
fn is_zone_of(zone: &str, region: &str) -> bool {
    zone.strip_prefix(region).is_some_and(|letter| matches!(letter.as_bytes(), [b'a'..=b'z']))
}

fn missing(path: &str) -> NoticeError {
    unreadable(path, "it is missing")
}

pub(super) fn unreadable(path: &str, why: impl fmt::Display) -> NoticeError {
    NoticeError::Field { path: path.to_owned(), why: shortened(&why.to_string()) }
}

pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// Cuts a text to 200 characters, because a forged notice must not fill the log.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Envelope {
    /// Refuses a notice of another account or Region, because the function cannot reach instances there.
    pub(super) fn is_from(&self, home: &Home) -> Result<(), NoticeError> {
        let (account, region) = (self.account()?, self.region()?);
        if (account, region) == (home.account.as_str(), home.region.as_str()) {
            return Ok(());
        }
        let Home { account: our_account, region: our_region } = home;
        Err(NoticeError::Foreign {
            from: shortened(&format!("{account} in {region}")),
            home: format!("{our_account} in {our_region}"),
        })
    }

    pub(super) fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    pub(super) fn account(&self) -> Result<&str, NoticeError> {
        self.account.as_deref().ok_or_else(|| missing("account"))
    }

    pub(super) fn region(&self) -> Result<&str, NoticeError> {
        self.region.as_deref().ok_or_else(|| missing("region"))
    }

    pub(super) fn detail<T: DeserializeOwned>(&self) -> Result<T, NoticeError> {
        parse(self.detail.clone(), "detail")
    }

    pub(super) fn after(&self, duration: SignedDuration) -> Timestamp {
        self.time.saturating_add(duration).unwrap_or(Timestamp::MAX)
    }
}

pub(super) fn parse<T: DeserializeOwned>(value: Value, root: &str) -> Result<T, NoticeError> {
    // serde would also accept a list for a structure, with the fields in their order.
    if !value.is_object() {
        return Err(unreadable(root, "it is no JSON object"));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = match (root, error.path().to_string().as_str()) {
            ("", ".") => "the top level".to_owned(),
            ("", path) => path.to_owned(),
            (root, ".") => root.to_owned(),
            (root, path) => format!("{root}.{path}"),
        };
        unreadable(&path, error.into_inner())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{notice, refused, sample, unhandled};

    #[test]
    fn unreadable_field_is_named() {
        let place = "cannot read the notice: at";
        for (detail, why) in [
            (json!({"instance-action": "terminate"}), "detail: missing field `instance-id`"),
            (json!(["i-1234567890abcdef0"]), "detail: it is no JSON object"),
            (json!({"instance-id": 7}), "detail.instance-id: invalid type: integer `7`, expected a string"),
            (json!({"instance-id": "i-1; rm"}), "detail.instance-id: \"i-1; rm\" is no instance id"),
        ] {
            let mut event = sample("spot-interruption");
            event["detail"] = detail;
            assert_eq!(refused(event), format!("{place} {why}"));
        }
        let mut event = sample("spot-interruption");
        event["time"] = json!("yesterday");
        assert!(refused(event.clone()).starts_with("cannot read the notice: at time: "));
        event.as_object_mut().unwrap().remove("time");
        assert_eq!(refused(event), "cannot read the notice: at time: it is missing");
    }

    #[test]
    fn zone_is_read_from_the_resources_if_it_is_the_regions() {
        let mut event = sample("spot-interruption");
        event["resources"] = json!("arn:aws:ec2:us-east-1b:instance/i-1234567890abcdef0");
        assert_eq!(notice(event.clone()).zone.as_deref(), Some("us-east-1b"), "a bare string");
        for place in ["us-east-1", "us-east-2a", "us-east-1-atl-2a", "", "us-east-1A"] {
            event["resources"] = json!([format!("arn:aws:ec2:{place}:instance/i-1234567890abcdef0")]);
            assert_eq!(notice(event.clone()).zone, None, "{place}");
        }
    }

    #[test]
    fn detail_type_with_an_underscore_is_read() {
        let mut event = sample("spot-interruption");
        let detail_type = event.as_object_mut().unwrap().remove("detail-type").unwrap();
        event["detail_type"] = detail_type;
        notice(event);
    }

    #[test]
    fn huge_text_is_quoted_shortly() {
        let mut event = sample("spot-interruption");
        event["detail"]["instance-id"] = "ü".repeat(1_000_000).into();
        let why = refused(event.clone());
        assert!(why.starts_with("cannot read the notice: at detail.instance-id: \"üüü") && why.len() < 600, "{why}");
        event["detail-type"] = "x".repeat(1_000_000).into();
        assert!(unhandled(event).len() < 300);
    }
}
