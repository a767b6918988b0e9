//! Events, as Lambda hands them over: no instance comes out of one that it does not name, and what is handed on to a later
//! invocation means the same there.

use serde_json::Value;
use spillway_notice::continued::{self, History};
use spillway_notice::undo_check::{self, UndoCheck};
use spillway_notice::{Home, Incoming, InstanceId, Instances, Kind, Notice, NoticeError, Several, payload, read};

use crate::{Form, Target, seeds};

pub(super) const TARGET: Target = Target {
    name: "notices",
    form: Form::Json,
    seeds: seeds::events,
    examine: |input| {
        if let Ok(event) = serde_json::from_slice(input) {
            examine(&event);
        }
    },
};

/// Reads an event, and holds what comes of it against the event.
pub(super) fn examine(event: &Value) {
    match read(event.clone(), &home()) {
        Ok(Incoming::Notice { notice, history }) => {
            assert!(names(event, notice.instance.as_str()), "it does not name {}", notice.instance);
            assert_eq!(again(&history), Ok(notice), "handed on, it means something else");
        }
        Ok(Incoming::UndoCheck { notice, check }) => {
            assert!(names(event, notice.instance.as_str()), "it does not name {}", notice.instance);
            examine_check(&notice, &check.next());
        }
        Ok(Incoming::Several(several)) => examine_several(event, &several),
        Ok(Incoming::Unhandled { why, .. }) => assert!(!why.is_empty() && why.len() < 1_000, "{why}"),
        Err(NoticeError::Field { path, why }) => {
            assert!(!path.is_empty() && !why.is_empty(), "no place, or no reason");
            assert!(path.len() + why.len() < 2_000, "what is said of it is long: at {path}: {why}");
        }
        Err(NoticeError::Foreign { from, .. }) => assert!(from.len() < 1_000, "{from}"),
    }
}

fn home() -> Home {
    Home { account: "123456789012".to_owned(), region: "us-east-1".to_owned() }
}

/// What the invocation is told that a drain is handed on to.
fn again(history: &History) -> Result<Notice, NoticeError> {
    let event = serde_json::from_str(&payload(continued::KEY, history)).expect("what we write is JSON");
    match read(event, &home())? {
        Incoming::Notice { notice, history: later } => {
            assert_eq!(later.earlier, history.earlier);
            Ok(notice)
        }
        other => panic!("it comes back as {other:?}"),
    }
}

/// The next check is about the same notice.
fn examine_check(of: &Notice, next: &UndoCheck) {
    let event = serde_json::from_str(&payload(undo_check::KEY, next)).expect("what we write is JSON");
    match read(event, &home()) {
        Ok(Incoming::UndoCheck { notice, check }) => assert_eq!((&notice, check.number), (of, next.number)),
        other => panic!("it comes back as {other:?}"),
    }
}

/// None of the affected instances is missing, and each comes back as itself, or as what is wrong with it.
fn examine_several(event: &Value, several: &Several) {
    let Instances::Named(named) = &several.instances else { return };
    assert!(named.len() > 1, "it is several");
    let mut affected = affected(&event["detail"]["affectedEntities"]).filter(|id| InstanceId::parse(id).is_some());
    assert!(affected.all(|id| named.contains_key(id)), "one of {event} is not in {named:?}");
    for (name, entry) in named.iter().take(3) {
        assert!(names(event, name), "it does not name {name}");
        match (again(&several.history.for_entry(name, entry)), InstanceId::parse(name)) {
            (Ok(notice), Some(instance)) => {
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
    match event["source"].as_str() {
        Some("aws.ec2") => detail["instance-id"] == instance,
        Some("aws.autoscaling") => detail["EC2InstanceId"] == instance,
        Some("aws.health") => affected(&detail["affectedEntities"]).any(|id| id == instance),
        _ => false,
    }
}

/// What stands last in each value of a list of AWS Health's.
fn affected(entities: &Value) -> impl Iterator<Item = &str> {
    let values = entities.as_array().into_iter().flatten().filter_map(|entity| entity["entityValue"].as_str());
    values.filter_map(|value| value.rsplit('/').next())
}
