//! Tests of all kinds of notice, and their samples.

mod bad_input;

use serde_json::json;

use super::*;

/// The notice about one instance.
pub(crate) fn notice(event: Value) -> Notice {
    match read(event, &home()).unwrap() {
        Incoming::Notice { notice, .. } => notice,
        other => panic!("not about one instance: {other:?}"),
    }
}

/// The reason not to handle a notice.
pub(crate) fn unhandled(event: Value) -> String {
    match read(event, &home()).unwrap() {
        Incoming::Unhandled { why, .. } => why,
        other => panic!("handled: {other:?}"),
    }
}

/// The error about an unreadable notice.
pub(crate) fn refused(event: Value) -> String {
    read(event, &home()).unwrap_err().to_string()
}

/// Account and Region of the samples.
pub(crate) fn home() -> Home {
    Home::of_function("arn:aws:lambda:us-east-1:123456789012:function:spillway")
}

/// The payload that continues a history.
pub(crate) fn continuation(history: &History) -> Value {
    serde_json::from_str(&payload(continued::KEY, history)).unwrap()
}

/// Sample in `events/`.
pub(crate) fn sample(name: &str) -> Value {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Samples in `events/` that are notices, by their names.
pub(crate) fn notice_samples() -> impl Iterator<Item = (String, Value)> {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events")).unwrap();
    let names = folder.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    let samples = names.map(|name| (name.clone(), sample(&name)));
    let of_the_doctor = ["Spillway Doctor", "CloudFormation Stack Status Change"];
    samples.filter(move |(_, event)| !of_the_doctor.iter().any(|detail_type| event["detail-type"] == *detail_type))
}

#[test]
fn each_sample_has_its_kind_and_its_deadline() {
    let token = Some("87654321-4321-4321-4321-210987654321".to_owned());
    let hook = Hook { group: "my-asg".to_owned(), name: "my-lifecycle-hook".to_owned(), token };
    for (name, kind, deadline) in [
        // The form of a capacity block, whose deadline has passed.
        ("capacity-block-interruption", Kind::CapacityReservation, "Hard(2026-11-21T03:12:00Z)"),
        ("capacity-reservation-interruption", Kind::CapacityReservation, "Hard(2026-11-21T03:14:05Z)"),
        // The form of an older edition, without a time.
        ("interruptible-capacity-reservation-interruption", Kind::CapacityReservation, "Hard(2026-11-21T03:14:00Z)"),
        ("health-expedited-retirement", Kind::Maintenance, "Hard(2026-11-21T09:00:00Z)"),
        ("health-scheduled-maintenance", Kind::Maintenance, "Hard(2026-12-05T13:19:03Z)"),
        ("health-scheduled-maintenance-closed", Kind::MaintenanceOver, "Open"),
        ("health-scheduled-maintenance-older-form", Kind::Maintenance, "Hard(2026-12-05T05:01:10Z)"),
        ("launch-from-warm-pool", Kind::LaunchFromWarmPool, "HeldByHook"),
        ("launch-into-warm-pool", Kind::LaunchIntoWarmPool, "HeldByHook"),
        ("launch-lifecycle-action", Kind::Launch, "HeldByHook"),
        ("rebalance-recommendation", Kind::Rebalance, "Open"),
        ("replace-root-volume", Kind::ReplaceRootVolume, "HeldByHook"),
        ("return-to-warm-pool", Kind::ReturnToWarmPool, "HeldByHook"),
        ("root-volume-replaced", Kind::RootVolumeReplaced, "HeldByHook"),
        ("spot-interruption", Kind::Spot, "Hard(2026-11-21T03:14:00Z)"),
        ("state-change-running", Kind::Running, "Open"),
        ("state-change-shutting-down", Kind::ShuttingDown, "Unknown"),
        ("state-change-stopped", Kind::Stopped, "Open"),
        ("state-change-stopping", Kind::Stopping, "Unknown"),
        ("state-change-terminated", Kind::Terminated, "Open"),
        ("terminate-from-warm-pool", Kind::Terminate, "HeldByHook"),
        ("terminate-lifecycle-action", Kind::Terminate, "HeldByHook"),
    ] {
        let event = sample(name);
        let read = notice(event.clone());
        assert_eq!((read.kind, format!("{:?}", read.deadline)), (kind, deadline.to_owned()), "{name}");
        assert_eq!((read.instance.as_str(), event["id"] == *read.event_id), ("i-1234567890abcdef0", true), "{name}");
        assert_eq!(read.time, "2026-11-21T03:12:00Z".parse().unwrap(), "{name}");
        assert_eq!(read.zone.as_deref(), (kind == Kind::Spot).then_some("us-east-1a"), "{name}");
        assert_eq!(read.hook, (deadline == "HeldByHook").then(|| hook.clone()), "{name}");
    }
}

/// Any principal that may put events on the bus can write such an event.
#[test]
fn own_payload_from_an_event_bus_is_refused() {
    for (name, key) in [("drain-continuation", continued::KEY), ("undo-check", undo_check::KEY)] {
        let mut forged = sample("spot-interruption");
        forged["source"] = SOURCE.into();
        forged["detail-type"] = "Spillway Drain Continuation".into();
        forged["detail"] = sample(name)[key].clone();
        let why = "\"Spillway Drain Continuation\" came over an event bus, where any principal may put events: Spillway's own \
                   payloads come by invocation only";
        assert_eq!(unhandled(forged.clone()), why);
        // Our key beside EventBridge's does not help.
        forged[key] = sample(name)[key].clone();
        assert_eq!(unhandled(forged), why);
        let mut genuine = sample(name);
        genuine["source"] = SOURCE.into();
        assert!(read(genuine, &home()).is_err(), "one key too many");
    }
}

#[test]
fn payload_without_an_event_is_refused_and_quoted() {
    let continuation = sample("drain-continuation").to_string();
    let message = sample("terminate-lifecycle-action")["detail"].clone();
    let queue = "arn:aws:sqs:us-east-1:999999999999:theirs";
    let queued = |body: &str| json!({"messageId": "m", "receiptHandle": "h", "body": body, "eventSourceARN": queue});
    for payload in [
        json!({"Records": [queued(&continuation)]}),
        json!({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": sample("spot-interruption").to_string()}}]}),
        message,
        json!([sample("spot-interruption")]),
        json!(continuation),
        json!({"detail": {}}),
        json!({"source": "aws.ec2"}),
        json!(null),
    ] {
        let start: String = payload.to_string().chars().take(20).collect();
        let error = refused(payload);
        let expected = format!("this function takes EventBridge events; got {start:?}");
        assert!(error.starts_with(expected.trim_end_matches('"')) && error.len() < 600, "{error}");
    }
}

#[test]
fn notice_of_another_account_or_region_is_refused() {
    let refused = |key: &str, value: &str| {
        let mut event = sample("spot-interruption");
        event[key] = value.into();
        read(event, &home()).unwrap_err().to_string()
    };
    assert_eq!(
        refused("account", "999999999999"),
        "the notice is of account 999999999999 in us-east-1, and this function acts in account 123456789012 in us-east-1"
    );
    assert_eq!(
        refused("region", "eu-west-1"),
        "the notice is of account 123456789012 in eu-west-1, and this function acts in account 123456789012 in us-east-1"
    );
    let mut event = sample("drain-continuation");
    event[continued::KEY]["notice"]["account"] = "999999999999".into();
    assert!(matches!(read(event, &home()), Err(NoticeError::Foreign { .. })));
}
