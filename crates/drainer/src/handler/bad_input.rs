//! Events that are not as AWS sends them, through the handler: the error type or the reason, and no call before it.

use serde_json::{Map, Value, json};

use super::tests::{event, invocation};
use super::{Failure, handle};
use crate::receipt::Ending;
use crate::test_support::context::TestContext;

/// What becomes of an event: the sentence's part, after the error type of a failure.
enum Becomes {
    Failed(&'static str, &'static str),
    Ignored(&'static str),
}
use Becomes::{Failed, Ignored};

/// A spot notice, changed.
fn spot(change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut spot = event("spot-interruption", "instance-id");
    change(spot.as_object_mut().unwrap());
    spot
}

/// A scheduled maintenance of so many instances, of which none has an id.
fn without_ids(count: usize) -> Value {
    let mut maintenance = event("health-scheduled-maintenance", "unused");
    let entities: Vec<_> = (0..count).map(|n| json!({"entityValue": format!("no instance {n}")})).collect();
    maintenance["detail"]["affectedEntities"] = json!(entities);
    maintenance
}

fn table() -> Vec<(&'static str, Value, Becomes)> {
    let unreadable = |sentence| Failed("UnreadableNotice", sentence);
    let twice =
        r#"{"instance-id": "i-0123456789abcdef0", "instance-id": "no instance", "instance-action": "terminate"}"#;
    let twice: Value = serde_json::from_str(twice).unwrap();
    vec![
        ("no time", spot(|event| drop(event.remove("time"))), unreadable("at time: it is missing")),
        (
            "time ahead",
            spot(|event| drop(event.insert("time".to_owned(), json!("1970-01-02T00:00:00Z")))),
            Ignored("ahead of the function's clock"),
        ),
        (
            "two days old",
            spot(|event| drop(event.insert("time".to_owned(), json!("1969-12-30T00:00:00Z")))),
            Ignored("AWS brings none of this kind so late"),
        ),
        (
            "detail as a string",
            spot(|event| drop(event.insert("detail".to_owned(), json!("i-0123456789abcdef0")))),
            unreadable("at detail"),
        ),
        (
            "a megabyte of detail",
            spot(|event| event["detail"]["instance-id"] = json!("x".repeat(1 << 20))),
            unreadable("at detail.instance-id"),
        ),
        (
            "an id of 100 characters",
            spot(|event| event["detail"]["instance-id"] = json!(format!("i-{}", "0".repeat(98)))),
            unreadable("at detail.instance-id"),
        ),
        (
            "an unknown detail-type",
            spot(|event| drop(event.insert("detail-type".to_owned(), json!("EC2 Instance Teleportation")))),
            Ignored("Spillway does not handle the notice"),
        ),
        (
            "a key twice",
            spot(|event| drop(event.insert("detail".to_owned(), twice))),
            unreadable("at detail.instance-id"),
        ),
        ("one entity that is no instance", without_ids(1), Ignored("it names no instance")),
    ]
}

#[tokio::test(start_paused = true)]
async fn bad_event_is_named_and_costs_no_call() {
    for (name, event, becomes) in table() {
        // A call that is not in the script fails the test.
        let context = TestContext::new(&[], [], []);
        let invocation = invocation(900, &event);
        let answer = handle(&context, event, &invocation).await;
        match (becomes, answer) {
            (Failed(error_type, sentence), Err(failure)) => {
                let text = Failure::text(&failure);
                assert_eq!(failure.error_type(), error_type, "{name}: {text}");
                assert!(text.contains(sentence) && text.len() < 1_000, "{name}: {text}");
            }
            (Ignored(sentence), Ok(receipt)) => {
                assert_eq!(receipt.ending, Some(Ending::Ignored), "{name}");
                assert!(
                    receipt.reason.contains(sentence) && receipt.reason.len() < 1_000,
                    "{name}: {}",
                    receipt.reason
                );
            }
            (_, answer) => panic!("{name}: {answer:?}"),
        }
    }
}
