//! What every kind of notice has in common, and the samples that the tests of each kind read.

mod bad_input;

use serde_json::json;

use super::*;

/// What a notice means for its one instance.
pub(crate) fn notice(event: Value) -> Notice {
    match read(event, &home()).unwrap() {
        Incoming::Notice { notice, .. } => notice,
        other => panic!("it is not about one instance: {other:?}"),
    }
}

/// Why a notice is not handled.
pub(crate) fn unhandled(event: Value) -> String {
    match read(event, &home()).unwrap() {
        Incoming::Unhandled { why, .. } => why,
        other => panic!("it is handled: {other:?}"),
    }
}

/// Why a notice cannot be read.
pub(crate) fn refused(event: Value) -> String {
    read(event, &home()).unwrap_err().to_string()
}

/// Where the samples come from.
pub(crate) fn home() -> Home {
    Home::of_function("arn:aws:lambda:us-east-1:123456789012:function:spillway")
}

/// The event that brings a history back.
pub(crate) fn continuation(history: &History) -> Value {
    serde_json::from_str(&payload(continued::KEY, history)).unwrap()
}

/// Reads one of the samples that the documents, the demo and the tests share.
pub(crate) fn sample(name: &str) -> Value {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Whether an event asks for the doctor: it is no notice.
pub(crate) fn asks_for_the_doctor(event: &Value) -> bool {
    let asking = ["Spillway Doctor", "CloudFormation Stack Status Change", "AWS API Call via CloudTrail"];
    asking.iter().any(|what| event["detail-type"] == *what)
}

#[test]
fn every_sample_in_events_is_read() {
    let folder = format!("{}/../../events", env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let event: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if !asks_for_the_doctor(&event) {
            let is_handled = !matches!(read(event, &home()).unwrap(), Incoming::Unhandled { .. });
            assert_eq!(is_handled, !path.ends_with("health-dedicated-host.json"), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 20, "the samples are gone");
}

#[test]
fn a_notice_of_another_kind_is_not_handled_and_is_no_error() {
    let mut event = sample("spot-interruption");
    event["detail-type"] = "EC2 Fleet Instance Change".into();
    let Incoming::Unhandled { why, .. } = read(event, &home()).unwrap() else { panic!("it is handled") };
    assert_eq!(why, "Spillway does not handle the notice \"EC2 Fleet Instance Change\" of \"aws.ec2\"");
}

#[test]
fn only_aws_own_notices_are_read() {
    let mut event = sample("spot-interruption");
    event["source"] = "my.tool".into();
    assert!(matches!(read(event, &home()).unwrap(), Incoming::Unhandled { .. }));
}

/// Whoever may put events on the bus, or has a rule of another's lead to the function, writes such an event.
#[test]
fn what_looks_like_our_own_and_came_over_a_bus_is_refused() {
    for (name, key) in [("drain-continuation", continued::KEY), ("undo-check", undo_check::KEY)] {
        let mut forged = sample("spot-interruption");
        forged["source"] = SOURCE.into();
        forged["detail-type"] = "Spillway Drain Continuation".into();
        forged["detail"] = sample(name)[key].clone();
        let why = "\"Spillway Drain Continuation\" came over an event bus, where anybody may have put it: what Spillway tells \
                   itself comes by invocations alone";
        assert_eq!(unhandled(forged.clone()), why);
        // Nor does it help to have our key beside what EventBridge writes.
        forged[key] = sample(name)[key].clone();
        assert_eq!(unhandled(forged), why);
        let mut genuine = sample(name);
        genuine["source"] = SOURCE.into();
        assert!(read(genuine, &home()).is_err(), "a key too many");
    }
}

#[test]
fn payload_that_is_no_event_is_refused_and_quoted() {
    let continuation = sample("drain-continuation").to_string();
    let message = sample("terminate-lifecycle-action")["detail"].clone();
    let queue = "arn:aws:sqs:us-east-1:999999999999:theirs";
    let queued = |body: &str| json!({"messageId": "m", "receiptHandle": "h", "body": body, "eventSourceARN": queue});
    let body = json!({"due": "2026-11-25T12:00:00Z", "payload": sample("drain-continuation")}).to_string();
    for payload in [
        json!({"Records": [queued(&continuation)]}),
        json!({"Records": [queued(&body)]}),
        json!({"Records": [queued(&sample("spot-interruption").to_string())]}),
        json!({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": sample("spot-interruption").to_string()}}]}),
        message,
        json!({"Event": "autoscaling:TEST_NOTIFICATION", "AutoScalingGroupName": "workers", "RequestId": "r"}),
        json!([sample("spot-interruption")]),
        json!(continuation),
        json!({"detail": {}}),
        json!({"source": "aws.ec2"}),
        json!({}),
        json!(null),
        json!(7),
    ] {
        let start: String = payload.to_string().chars().take(20).collect();
        let error = refused(payload);
        let expected = format!("this function takes EventBridge events; got {start:?}");
        assert!(error.starts_with(expected.trim_end_matches('"')) && error.len() < 600, "{error}");
    }
}

#[test]
fn a_notice_from_another_account_or_region_is_refused() {
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
