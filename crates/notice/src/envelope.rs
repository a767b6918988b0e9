//! The EventBridge envelope, read leniently where AWS is inexact and strictly where it matters.

use std::fmt;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::home::Home;

/// An event that ought to be ours and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoticeError {
    /// A field is missing, or what stands there cannot be read.
    #[error("cannot read the notice: at {path}: {why}")]
    Field {
        /// Where, as in `detail.instance-id`.
        path: String,
        why: String,
    },
    /// The payload is neither an EventBridge event nor one of the function's own.
    #[error("this function takes EventBridge events; got {0}")]
    NotAnEvent(String),
    /// It is about another account's instances, or another Region's.
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

/// Reads the envelope, which stands at `place`; the detail stays as it is.
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

/// Refuses a payload without the fields that EventBridge always writes: records of SQS or SNS, a notification of Auto Scaling.
pub(super) fn expect_event(payload: &Value) -> Result<(), NoticeError> {
    let has_text = |key: &str| payload.get(key).is_some_and(Value::is_string);
    if has_text("source") && (has_text("detail-type") || has_text("detail_type")) {
        return Ok(());
    }
    Err(NoticeError::NotAnEvent(quoted(&payload.to_string())))
}

/// AWS documents one notice with `detail_type` for `detail-type`: a test event that somebody sends may have it too.
fn fix_detail_type(payload: &mut Value) {
    if let Some(event) = payload.as_object_mut()
        && let Some(detail_type) = event.remove("detail_type")
    {
        event.entry("detail-type").or_insert(detail_type);
    }
}

/// Takes the resources out, because AWS documents one notice with a bare string there, and returns what stands in the place of
/// the first ARN's Region: EC2 writes the Availability Zone there, as in `arn:aws:ec2:us-east-1a:instance/i-1234567890abcdef0`.
fn take_zone(payload: &mut Value) -> Option<String> {
    let resources = payload.as_object_mut()?.remove("resources")?;
    let first = resources.as_str().or_else(|| resources.get(0)?.as_str())?;
    first.split(':').nth(3).map(str::to_owned)
}

/// Whether that is a name of an Availability Zone of the Region: the Region's name and a letter.
fn is_zone_of(zone: &str, region: &str) -> bool {
    zone.strip_prefix(region).is_some_and(|letter| matches!(letter.as_bytes(), [b'a'..=b'z']))
}

fn missing(path: &str) -> NoticeError {
    unreadable(path, "it is missing")
}

/// What stands at `path` cannot be read, and why.
pub(super) fn unreadable(path: &str, why: impl fmt::Display) -> NoticeError {
    NoticeError::Field { path: path.to_owned(), why: shortened(&why.to_string()) }
}

/// A text of the notice's, as a sentence quotes it.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// A text cut to as much as anybody reads: what AWS writes is shorter, and nothing else needs to fill the log.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Envelope {
    /// A rule may well route another account's notices here; their instances are not ours to look for.
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

    /// The Availability Zone that the notice names, if it names one.
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

/// Reads what stands at `root`.
pub(super) fn parse<T: DeserializeOwned>(value: Value, root: &str) -> Result<T, NoticeError> {
    // serde would take a list for a structure too, by the order of its entries.
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
    fn what_cannot_be_read_is_said_with_its_place() {
        let mut event = sample("spot-interruption");
        event["detail"] = json!({"instance-action": "terminate"});
        assert_eq!(refused(event.clone()), "cannot read the notice: at detail: missing field `instance-id`");
        event["detail"] = json!(["i-1234567890abcdef0"]);
        assert_eq!(refused(event.clone()), "cannot read the notice: at detail: it is no JSON object");
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
        event["resources"] = json!("arn:aws:ec2:us-east-1b:instance/i-1234567890abcdef0");
        assert_eq!(notice(event).zone.as_deref(), Some("us-east-1b"));
    }

    #[test]
    fn a_resource_that_names_no_zone_of_the_region_is_no_hint() {
        for place in ["us-east-1", "us-east-2a", "us-east-1-atl-2a", "", "us-east-1A"] {
            let mut event = sample("spot-interruption");
            event["resources"] = json!([format!("arn:aws:ec2:{place}:instance/i-1234567890abcdef0")]);
            assert_eq!(notice(event).zone, None, "{place}");
        }
    }

    #[test]
    fn a_detail_type_with_an_underscore_as_aws_documents_it_is_read() {
        let mut event = sample("spot-interruption");
        let detail_type = event.as_object_mut().unwrap().remove("detail-type").unwrap();
        event["detail_type"] = detail_type;
        notice(event);
    }

    #[test]
    fn what_is_told_of_a_huge_text_is_short() {
        let mut event = sample("spot-interruption");
        event["detail"]["instance-id"] = "ü".repeat(1_000_000).into();
        let told = refused(event.clone());
        assert!(told.starts_with("cannot read the notice: at detail.instance-id: \"üüü") && told.len() < 600, "{told}");
        event["detail-type"] = "x".repeat(1_000_000).into();
        assert!(unhandled(event).len() < 300);
    }
}
