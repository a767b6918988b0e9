//! An event that is delivered: tried again, and kept when it always fails.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_bed::lambda::LambdaOptions;

use super::sink::Sink;
use super::under_test::{options, start_with_endpoint};

#[tokio::test]
async fn an_event_is_tried_again_under_one_request_id() {
    let sink = Sink::start().await;
    let lambda = start_with_endpoint(&sink.url(), options());
    let delivery = lambda.invoke_async(&json!({"do": "fail-until", "attempt": 3})).await.unwrap();
    assert_eq!(delivery.failed.len(), 2);
    assert_eq!(delivery.last.result, Ok(json!(3)));
    assert!(delivery.failed.iter().all(|attempt| attempt.request_id == delivery.last.request_id));
    assert!(delivery.failure_record.is_none() && sink.bodies().is_empty());
}

#[tokio::test]
async fn an_event_that_always_fails_ends_in_the_failure_queue() {
    let sink = Sink::start().await;
    let one_retry = LambdaOptions { maximum_retry_attempts: 1, ..options() };
    let lambda = start_with_endpoint(&sink.url(), one_retry);
    let event = json!({"do": "fail", "message": "no instance id"});
    let delivery = lambda.invoke_async(&event).await.unwrap();
    assert_eq!(delivery.failed.len(), 1);

    let [body] = &sink.bodies()[..] else { panic!("one message is sent, not {:?}", sink.bodies()) };
    let record: Value = serde_json::from_str(body["body"].as_str().unwrap()).unwrap();
    assert_eq!(delivery.failure_record.as_ref(), Some(&record));
    let timestamp = record["timestamp"].as_str().unwrap();
    assert_eq!(timestamp.len(), "2019-11-14T18:16:05.568Z".len(), "{timestamp}");
    let age = Timestamp::now().duration_since(timestamp.parse().unwrap());
    assert!(age.unsigned_abs() < Duration::from_secs(60), "{timestamp}");
    let expected = json!({
        "version": "1.0",
        "timestamp": timestamp,
        "requestContext": {
            "requestId": delivery.last.request_id,
            "functionArn": "arn:aws:lambda:us-east-1:123456789012:function:under-test:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 2,
        },
        "requestPayload": event,
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": {
            "errorType": "Unreadable",
            "errorMessage": "no instance id",
            "chain": ["because"],
        },
    });
    assert_eq!(record, expected);

    lambda.invoke_async("no JSON").await.unwrap();
    let record: Value = serde_json::from_str(sink.bodies()[1]["body"].as_str().unwrap()).unwrap();
    assert_eq!(record["requestPayload"], "no JSON", "the text is kept");
}
