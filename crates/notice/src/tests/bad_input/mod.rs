//! Tests: malformed notices. Each event is read, not handled for a reason, or refused with the path of the error; and its instance is
//! one that the event names in the right place.
mod each_field;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::super::{Incoming, InstanceId, Instances, Kind, NoticeError, Several, read};
use super::super::{continued, undo_check};
use super::{continuation, home, notice, notice_samples, sample, unhandled};

/// Samples by their names.
static SAMPLES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| notice_samples().collect());

/// Reads an event, and compares the result with the event.
fn examine(event: &Value) -> Result<Incoming, NoticeError> {
    let result = read(event.clone(), &home());
    match &result {
        Ok(Incoming::Notice { notice, .. } | Incoming::UndoCheck { notice, .. }) => {
            assert!(names(event, notice.instance.as_str()), "{} is not in {event}", notice.instance);
        }
        Ok(Incoming::Several(several)) => examine_several(event, several),
        Ok(Incoming::MaintenanceLookup) => {}
        Ok(Incoming::Unhandled { why, .. }) => assert!(!why.is_empty() && why.len() < 1000, "{why}"),
        Err(error) => assert!(error.to_string().len() < 2000, "{error}"),
    }
    result
}

/// Reads the continuation of each instance of several: the instance itself, or the error about it.
fn examine_several(event: &Value, several: &Several) {
    let Instances::Named(named) = &several.instances else { return };
    assert!(named.len() > 1);
    for (name, entry) in named.iter().take(3) {
        assert!(names(event, name), "{name} is not in {event}");
        match (read(continuation(&several.history.for_entry(name, entry)), &home()), InstanceId::parse(name)) {
            (Ok(Incoming::Notice { notice, .. }), Some(instance)) => {
                assert_eq!(notice.instance, instance);
                let is_over = entry["status"] == "RESOLVED";
                assert_eq!(notice.kind, if is_over { Kind::MaintenanceOver } else { several.kind });
            }
            (Err(error), None) => assert!(error.to_string().contains("instance"), "{error}"),
            (other, _) => panic!("{name} becomes {other:?}"),
        }
    }
}

/// Returns `true` if an event names the instance where a notice of its kind does.
fn names(event: &Value, instance: &str) -> bool {
    let own = [continued::KEY, undo_check::KEY].into_iter().find_map(|key| event.get(key));
    if let Some(own) = own {
        return own["instance"] == instance || own["instance"].is_null() && names(&own["notice"], instance);
    }
    let detail = &event["detail"];
    let is_it = |value: &Value| value.as_str() == Some(instance);
    let ends_with_it =
        |entity: &Value| entity["entityValue"].as_str().is_some_and(|value| value.rsplit('/').next() == Some(instance));
    match event["source"].as_str() {
        Some("aws.ec2") => is_it(&detail["instance-id"]),
        Some("aws.autoscaling") => is_it(&detail["EC2InstanceId"]),
        Some("aws.health") => detail["affectedEntities"].as_array().is_some_and(|all| all.iter().any(ends_with_it)),
        _ => false,
    }
}

/// Every field: the JSON pointer of its parent, and its key.
fn fields(value: &Value) -> Vec<(String, String)> {
    fn below(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
        let mut each = |key: String, value| {
            below(value, &format!("{at}/{key}"), found);
            found.push((at.to_owned(), key));
        };
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| each(key.clone(), value)),
            Value::Array(items) => items.iter().enumerate().for_each(|(n, value)| each(n.to_string(), value)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    below(value, "", &mut found);
    found
}

#[test]
fn unknown_source_or_detail_type_is_not_handled() {
    let spot = "EC2 Spot Instance Interruption Warning";
    for source in ["aws.ec2", "aws.autoscaling", "aws.health", "my.tool", ""] {
        for detail_type in ["", "EC2 Fleet Instance Change", "spillway drain continuation", "\u{0}", "🦀", spot] {
            let mut event = sample("spot-interruption");
            (event["source"], event["detail-type"]) = (source.into(), detail_type.into());
            if (source, detail_type) != ("aws.ec2", spot) {
                let why = format!("Spillway does not handle the notice {detail_type:?} of {source:?}");
                assert_eq!(unhandled(event), why);
            }
        }
    }
}

#[test]
fn date_of_each_place_is_read_or_named() {
    let places = [
        ("spot-interruption", "/time", "time"),
        ("capacity-reservation-interruption", "/detail/instance-termination-time", "detail.instance-termination-time"),
        ("capacity-block-expiry", "/detail/end-date", "detail.end-date"),
        ("health-scheduled-maintenance", "/detail/startTime", "detail.startTime"),
    ];
    for (name, pointer, place) in places {
        let with = |text: &str| {
            let mut event = sample(name);
            *event.pointer_mut(pointer).unwrap() = text.into();
            examine(&event)
        };
        assert!(with("2026-11-21T05:12:00+02:00").is_ok(), "{name}");
        let why = with("now").unwrap_err().to_string();
        assert!(why.starts_with(&format!("cannot read the notice: at {place}: ")), "{why}");
        // The ends of the calendar do not panic.
        for text in ["0001-01-01T00:00:00Z", "9999-12-30T21:59:59Z", "-009999-01-02T00:00:00Z"] {
            let _ = with(text);
        }
    }
}

#[test]
fn each_of_ten_thousand_instances_gets_a_small_event() {
    let mut event = sample("health-scheduled-maintenance");
    let ids = (0..10_000).map(|n| format!("i-{n:017x}"));
    let entities: Vec<Value> = ids.map(|id| json!({"entityValue": id, "status": "PENDING"})).collect();
    event["detail"]["affectedEntities"] = entities.into();
    let Incoming::Several(several) = examine(&event).unwrap() else { panic!("not several") };
    let Instances::Named(named) = &several.instances else { panic!("not named") };
    assert_eq!(named.len(), 10_000);
    let history = serde_json::to_string(&several.history).unwrap();
    assert!(history.len() < 4096, "the copy of each has no list: {} bytes", history.len());
    let (last, entry) = named.last_key_value().unwrap();
    let one = continuation(&several.history.for_entry(last, entry));
    assert!(one.to_string().len() < 4096, "{}", one.to_string().len());
    assert_eq!(notice(one).instance.as_str(), "i-0000000000000270f");
}
