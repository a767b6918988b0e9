//! Events from Lambda: a notice has an instance of its event, and means the same in a later invocation.

use serde_json::Value;
use spillway_notice::continued::{self, History};
use spillway_notice::undo_check::{self, UndoCheck};
use spillway_notice::{Home, Incoming, InstanceId, Instances, Kind, Notice, NoticeError, Several, payload, read};

use crate::{Target, seeds};

pub(super) const TARGET: Target = Target {
    name: "notices",
    seeds: seeds::events,
    examine: |input| {
        if let Ok(event) = serde_json::from_slice(input) {
            examine(&event);
        }
    },
};

/// Reads an event, and compares the result with the event.
pub(super) fn examine(event: &Value) {
    match read(event.clone(), &home()) {
        Ok(Incoming::Notice { notice, history }) => {
            assert!(names(event, notice.instance.as_str()), "the event has no {}", notice.instance);
            assert_eq!(read_again(&history), Ok(notice), "its continuation has another meaning");
        }
        Ok(Incoming::UndoCheck { notice, check }) => {
            assert!(names(event, notice.instance.as_str()), "the event has no {}", notice.instance);
            examine_check(&notice, &check.next());
        }
        Ok(Incoming::MaintenanceLookup) => assert_eq!(event.as_object().map(serde_json::Map::len), Some(1)),
        Ok(Incoming::Several(several)) => examine_several(event, &several),
        Ok(Incoming::Unhandled { why, .. }) => assert!(!why.is_empty() && why.len() < 1_000, "{why}"),
        Err(NoticeError::Field { path, why }) => {
            assert!(!path.is_empty() && !why.is_empty(), "no path, or no reason");
            assert!(path.len() + why.len() < 2_000, "a long error: at {path}: {why}");
        }
        Err(NoticeError::Foreign { from, .. }) => assert!(from.len() < 1_000, "{from}"),
        Err(NoticeError::NotAnEvent(payload)) => assert!(payload.len() < 1_000, "{payload}"),
    }
}

fn home() -> Home {
    Home { account: "123456789012".to_owned(), region: "us-east-1".to_owned() }
}

/// Reads the continuation of a history.
fn read_again(history: &History) -> Result<Notice, NoticeError> {
    let event = serde_json::from_str(&payload(continued::KEY, history)).expect("a payload is JSON");
    match read(event, &home())? {
        Incoming::Notice { notice, history: later } => {
            assert_eq!(later.earlier, history.earlier);
            Ok(notice)
        }
        other => panic!("read as {other:?}"),
    }
}

/// Compares the next undo check with its notice.
fn examine_check(of: &Notice, next: &UndoCheck) {
    let event = serde_json::from_str(&payload(undo_check::KEY, next)).expect("a payload is JSON");
    match read(event, &home()) {
        Ok(Incoming::UndoCheck { notice, check }) => assert_eq!((&notice, check.number), (of, next.number)),
        other => panic!("read as {other:?}"),
    }
}

/// Compares an event of several instances with their continuations.
fn examine_several(event: &Value, several: &Several) {
    let Instances::Named(named) = &several.instances else { return };
    assert!(named.len() > 1, "one instance is several");
    let mut affected = affected(&event["detail"]["affectedEntities"]).filter(|id| InstanceId::parse(id).is_some());
    assert!(affected.all(|id| named.contains_key(id)), "an instance of {event} is not in {named:?}");
    for (name, entry) in named.iter().take(3) {
        assert!(names(event, name), "the event has no {name}");
        match (read_again(&several.history.for_entry(name, entry)), InstanceId::parse(name)) {
            (Ok(notice), Some(instance)) => {
                assert_eq!(notice.instance, instance);
                let is_over = entry["status"] == "RESOLVED";
                assert_eq!(notice.kind, if is_over { Kind::MaintenanceOver } else { several.kind });
            }
            (Err(error), None) => assert!(error.to_string().contains("instance"), "{error}"),
            (other, _) => panic!("{name} is read as {other:?}"),
        }
    }
}

/// Returns `true` if an event has an instance in the field of its kind.
fn names(event: &Value, instance: &str) -> bool {
    let own = [continued::KEY, undo_check::KEY].into_iter().find_map(|key| event.get(key));
    if let Some(own) = own {
        return own["instance"] == instance || own["instance"].is_null() && names(&own["notice"], instance);
    }
    let detail = &event["detail"];
    match event["source"].as_str() {
        Some("aws.ec2") => detail["instance-id"] == instance,
        Some("aws.autoscaling") => detail["EC2InstanceId"] == instance,
        Some("aws.health") => affected(&detail["affectedEntities"]).any(|id| id == instance),
        _ => false,
    }
}

/// Last parts of the values of AWS Health's list.
fn affected(entities: &Value) -> impl Iterator<Item = &str> {
    let values = entities.as_array().into_iter().flatten().filter_map(|entity| entity["entityValue"].as_str());
    values.filter_map(|value| value.rsplit('/').next())
}
