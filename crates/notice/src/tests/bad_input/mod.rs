//! Notices that are not as AWS sends them. Whatever an event is: it is read, or not handled for a reason, or refused
//! with the place that is wrong; and no instance comes out of it that is not named in it, in the right place.
mod each_field;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::super::{Incoming, InstanceId, Instances, Kind, NoticeError, Several, read};
use super::super::{continued, undo_check};
use super::{continuation, home, notice, sample, unhandled};

/// The samples in `events/` by their names.
static SAMPLES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .map(|name| (name.clone(), sample(&name)))
        .collect()
});

/// Reads an event, and holds what comes out of it against the event.
fn examine(event: &Value) -> Result<Incoming, NoticeError> {
    let said = read(event.clone(), &home());
    match &said {
        Ok(Incoming::Notice { notice, .. } | Incoming::UndoCheck { notice, .. }) => {
            assert!(names(event, notice.instance.as_str()), "{} is not in {event}", notice.instance);
        }
        Ok(Incoming::Several(several)) => examine_several(event, several),
        Ok(Incoming::Unhandled { why, .. }) => assert!(!why.is_empty() && why.len() < 1000, "{why}"),
        Err(error) => assert!(error.to_string().len() < 2000, "{error}"),
    }
    said
}

/// Each instance of several comes back as itself, or as what is wrong.
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
            (other, _) => panic!("{name} comes back as {other:?}"),
        }
    }
}

/// Whether an event names an instance where a notice of its kind does.
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

/// Where every field is: the JSON pointer of what it is in, and its key.
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
fn an_event_that_is_none_says_what_is_wrong() {
    for event in [json!(null), json!(7), json!("spot"), json!([]), json!({}), json!({"detail": {}})] {
        let told = examine(&event).unwrap_err().to_string();
        assert!(told.starts_with("this function takes EventBridge events; got "), "{told}");
    }
}

#[test]
fn a_kind_that_nobody_knows_is_not_handled_whoever_sends_it() {
    for source in ["aws.ec2", "aws.autoscaling", "aws.health", "my.tool", ""] {
        for detail_type in ["", "EC2 Instance Scheduled Change", "spillway drain continuation", "\u{0}", "🦀"] {
            let mut event = sample("spot-interruption");
            (event["source"], event["detail-type"]) = (source.into(), detail_type.into());
            let why = format!("Spillway does not handle the notice {detail_type:?} of {source:?}");
            assert_eq!(unhandled(event), why);
        }
    }
}

#[test]
fn dates_of_every_shape_are_read_or_named() {
    let places = [
        ("spot-interruption", "/time", "time"),
        ("capacity-reservation-interruption", "/detail/instance-termination-time", "detail.instance-termination-time"),
        ("capacity-block-expiry", "/detail/end-date", "detail.end-date"),
        ("health-scheduled-maintenance", "/detail/startTime", "detail.startTime"),
    ];
    let good =
        ["2026-11-21T03:12:00Z", "2026-11-21T03:12:00.123456789Z", "2026-11-21T05:12:00+02:00", "2024-02-29T00:00:00Z"];
    let bad = [
        "",
        "0",
        "1795229520",
        "now",
        "Mon",
        "2026-11-31T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-11-21T25:00:00Z",
        "99999-01-01T00:00:00Z",
        "-0001-01-01",
        "21.11.2026 03:12",
        "Sat, 21 Nov 2026",
        "٢٠٢٦-١١-٢١T00:00:00Z",
    ];
    for (name, pointer, place) in places {
        let with = |text: &str| {
            let mut event = sample(name);
            *event.pointer_mut(pointer).unwrap() = text.into();
            examine(&event)
        };
        for text in good {
            assert!(with(text).is_ok(), "{name}: {text}");
        }
        for text in bad {
            let told = with(text).unwrap_err().to_string();
            assert!(told.starts_with(&format!("cannot read the notice: at {place}: ")), "{told}");
        }
        // The ends of the calendar are dates, and no panic.
        for text in ["0001-01-01T00:00:00Z", "9999-12-30T21:59:59Z", "-009999-01-02T00:00:00Z"] {
            let _ = with(text);
        }
    }
}

#[test]
fn ten_thousand_affected_instances_are_continued_each_in_a_small_event() {
    let mut event = sample("health-scheduled-maintenance");
    let ids = (0..10_000).map(|n| format!("i-{n:017x}"));
    let entities: Vec<Value> = ids.map(|id| json!({"entityValue": id, "status": "PENDING"})).collect();
    event["detail"]["affectedEntities"] = entities.into();
    let Incoming::Several(several) = examine(&event).unwrap() else { panic!("not several") };
    let Instances::Named(named) = &several.instances else { panic!("not named") };
    assert_eq!(named.len(), 10_000);
    let told = serde_json::to_string(&several.history).unwrap();
    assert!(told.len() < 4096, "each gets a copy of this, so the list is not in it: {} bytes", told.len());
    let (last, entry) = named.last_key_value().unwrap();
    let one = continuation(&several.history.for_entry(last, entry));
    assert!(one.to_string().len() < 4096, "{}", one.to_string().len());
    assert_eq!(notice(one).instance.as_str(), "i-0000000000000270f");
}
