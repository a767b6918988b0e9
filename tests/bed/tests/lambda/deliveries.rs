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
    assert_eq!(delivery.waits, [Duration::from_mins(1), Duration::from_mins(2)]);
    assert_eq!(delivery.last.result, Ok(json!(3)));
    assert!(delivery.failed.iter().all(|attempt| attempt.request_id == delivery.last.request_id));
    assert!(delivery.failure_record.is_none() && sink.bodies().is_empty());
}

#[tokio::test]
async fn an_event_that_always_fails_ends_in_the_failure_queue() {
    let sink = Sink::start().await;
    let one_retry = LambdaOptions { maximum_retry_attempts: Some(1), ..options() };
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

#[tokio::test]
async fn an_event_that_is_too_old_for_another_attempt_is_given_up_with_its_last_answer() {
    let sink = Sink::start().await;
    // Its second attempt comes after a minute, and the third would come two minutes later.
    let short = LambdaOptions { maximum_event_age: Some(Duration::from_secs(170)), ..options() };
    let lambda = start_with_endpoint(&sink.url(), short);
    let delivery = lambda.invoke_async(&json!({"do": "fail", "message": "again"})).await.unwrap();
    let record = delivery.failure_record.expect("it is given up");
    let context = &record["requestContext"];
    assert_eq!((&context["condition"], &context["approximateInvokeCount"]), (&json!("EventAgeExceeded"), &json!(2)));
    assert_eq!(record["responsePayload"]["errorMessage"], "again");
    assert_eq!((delivery.failed.len(), delivery.waits), (1, vec![Duration::from_mins(1)]));
}

#[tokio::test]
async fn an_event_that_finds_no_free_execution_waits_for_one_and_is_no_failed_attempt() {
    let sink = Sink::start().await;
    let one_at_a_time = LambdaOptions {
        reserved_concurrency: Some(1),
        timeout: Duration::from_secs(2),
        wait_factor: 0.05,
        ..options()
    };
    let lambda = start_with_endpoint(&sink.url(), one_at_a_time);
    let (hang, count) = (json!({"do": "hang"}), json!({"do": "count"}));
    let (busy, refused, delivery) =
        tokio::join!(lambda.invoke(&hang), lambda.invoke(&count), lambda.invoke_async(&count));

    assert_eq!(busy.result.unwrap_err().error_type, "Sandbox.Timedout");
    assert_eq!(refused.result.unwrap_err().error_type, "TooManyRequestsException", "who waits for the answer is told");
    let delivery = delivery.unwrap();
    assert!(delivery.last.result.is_ok() && delivery.failed.is_empty(), "{delivery:#?}");
    assert!(delivery.waits.starts_with(&[1, 2, 4].map(Duration::from_secs)), "{delivery:#?}");
    assert!(sink.bodies().is_empty());
}

#[tokio::test]
async fn an_event_that_finds_no_free_execution_in_its_time_is_given_up_without_an_answer() {
    for (reserved, condition, waits) in [(1, "EventAgeExceeded", 5), (0, "ZeroReservedConcurrency", 0)] {
        let sink = Sink::start().await;
        let limited = LambdaOptions {
            reserved_concurrency: Some(reserved),
            maximum_event_age: Some(Duration::from_mins(1)),
            timeout: Duration::from_secs(5),
            ..options()
        };
        let lambda = start_with_endpoint(&sink.url(), limited);
        let (hang, event) = (json!({"do": "hang"}), json!({"do": "count"}));
        let (_, delivery) = tokio::join!(lambda.invoke(&hang), lambda.invoke_async(&event));

        let delivery = delivery.unwrap();
        assert_eq!(delivery.waits.len(), waits, "{delivery:#?}");
        let record = delivery.failure_record.expect("it is given up");
        let context = &record["requestContext"];
        assert_eq!((&context["condition"], &context["approximateInvokeCount"]), (&json!(condition), &json!(0)));
        assert_eq!((&record["requestPayload"], record.get("responsePayload")), (&event, None));
        assert_eq!(sink.bodies().len(), 1);
    }
}
