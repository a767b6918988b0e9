//! An invocation: what the function is given, and what becomes of what it says.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde_json::json;
use spillway_bed::lambda::LambdaOptions;

use super::under_test::{options, start};

#[tokio::test]
async fn one_process_serves_one_invocation_after_the_other() {
    let lambda = start(options());
    let first = lambda.invoke(&json!({"do": "count", "x": [1, "ü"]})).await;
    let second = lambda.invoke(r#"{"do": "count"}"#).await;

    let (answer, again) = (first.result.unwrap(), second.result.unwrap());
    assert_eq!(answer["event"], json!({"do": "count", "x": [1, "ü"]}));
    assert_eq!((&answer["invocations"], &again["invocations"]), (&json!(1), &json!(2)));
    assert_eq!(answer["pid"], again["pid"]);
    assert_ne!(first.request_id, second.request_id);

    let init = first.init.expect("the first is a cold start");
    assert!(second.init.is_none(), "the second is warm");
    assert!(init.duration > Duration::ZERO && init.started < init.first_poll);
    assert!(init.first_poll <= first.started, "the event is handed out after the poll");
    // An answer ends it, and not the timeout of a minute.
    assert!(first.started < second.started && second.duration < Duration::from_secs(50));
    assert_eq!(lambda.process_ids(), [u32::try_from(answer["pid"].as_u64().unwrap()).unwrap()]);
}

#[tokio::test]
async fn invocations_at_the_same_time_have_a_process_each() {
    let lambda = start(options());
    let count = json!({"do": "count"});
    let (one, other) = tokio::join!(lambda.invoke(&count), lambda.invoke(&count));
    assert_ne!(one.result.unwrap()["pid"], other.result.unwrap()["pid"]);
    assert_eq!(lambda.process_ids().len(), 2);

    let warm = lambda.invoke(&count).await;
    assert_eq!(warm.result.unwrap()["invocations"], 2);
    assert_eq!(lambda.process_ids().len(), 2);
}

#[tokio::test]
async fn an_event_comes_with_the_headers_of_lambda() {
    let lambda = start(options());
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let outcome = lambda.invoke(&json!({"do": "headers"})).await;
    let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();

    let answer = outcome.result.unwrap();
    let headers: BTreeMap<String, &str> = answer
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.to_lowercase(), value.as_str().unwrap()))
        .collect();
    assert_eq!(headers["lambda-runtime-aws-request-id"], outcome.request_id);
    let is_v4 = |id: &str| {
        let lengths: Vec<_> = id.split('-').map(str::len).collect();
        lengths == [8, 4, 4, 4, 12] && &id[14..15] == "4" && "89ab".contains(&id[19..20])
    };
    assert!(is_v4(&outcome.request_id), "{}", outcome.request_id);
    assert_eq!(
        headers["lambda-runtime-invoked-function-arn"],
        "arn:aws:lambda:us-east-1:123456789012:function:under-test"
    );
    let deadline = Duration::from_millis(headers["lambda-runtime-deadline-ms"].parse().unwrap());
    let slack = Duration::from_millis(1);
    assert!(before + options().timeout <= deadline + slack && deadline <= after + options().timeout);
    let trace = headers["lambda-runtime-trace-id"];
    assert!(trace.starts_with("Root=1-") && trace.ends_with(";Sampled=0"), "{trace}");
    assert_eq!(headers["content-type"], "application/json");
}

#[tokio::test]
async fn the_environment_is_lambdas_and_nothing_of_the_callers() {
    assert!(std::env::var_os("HOME").is_some(), "the caller has a variable to leak");
    let lambda = start(LambdaOptions {
        env: [("SPILLWAY_SPOT", "drain"), ("AWS_LAMBDA_LOG_LEVEL", "DEBUG")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..options()
    });
    let answer = lambda.invoke(&json!({"do": "environment"})).await.result.unwrap();
    let mut found: BTreeMap<&str, &str> =
        answer.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();

    let api = found.remove("AWS_LAMBDA_RUNTIME_API").unwrap();
    assert!(api.starts_with("127.0.0.1:"), "{api}");
    let stream = found.remove("AWS_LAMBDA_LOG_STREAM_NAME").unwrap();
    let day = Timestamp::now().strftime("%Y/%m/%d/[$LATEST]").to_string();
    assert!(stream.starts_with(&day) && stream.len() == day.len() + 32, "{stream}");
    // Python sets this for itself where the locale is missing.
    found.remove("LC_CTYPE");
    let expected = BTreeMap::from([
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "192"),
        ("AWS_LAMBDA_FUNCTION_NAME", "under-test"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/under-test"),
        ("AWS_LAMBDA_LOG_LEVEL", "DEBUG"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_SESSION_TOKEN", "token"),
        ("LAMBDA_RUNTIME_DIR", "/var/runtime"),
        ("LAMBDA_TASK_ROOT", env!("CARGO_TARGET_TMPDIR")),
        ("LANG", "en_US.UTF-8"),
        ("PATH", "/usr/local/bin:/usr/bin/:/bin:/opt/bin"),
        ("SPILLWAY_SPOT", "drain"),
        ("TZ", ":UTC"),
        ("_HANDLER", "bootstrap"),
    ]);
    assert_eq!(found, expected);
}

#[tokio::test]
async fn lines_belong_to_their_invocation_until_the_next_poll() {
    let lambda = start(options());
    let printed = lambda.invoke(&json!({"do": "print"})).await;
    assert_eq!(printed.logs, ["one", "two", "three", "after the answer", "without an end"]);
    let silent = lambda.invoke(&json!({"do": "count"})).await;
    assert!(silent.logs.is_empty(), "{:?}", silent.logs);
    let flood = lambda.invoke(&json!({"do": "flood"})).await;
    assert_eq!(flood.logs.len(), 20_000);
}

#[tokio::test]
async fn an_error_is_kept_as_the_function_told_it() {
    let lambda = start(options());
    let outcome = lambda.invoke("no JSON at all").await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.error_type, "Unreadable");
    assert_eq!(error.message, "not JSON: no JSON at all");
    assert_eq!(error.payload["chain"], json!(["because"]));

    let next = lambda.invoke(&json!({"do": "count"})).await;
    assert_eq!(next.result.unwrap()["invocations"], 2, "the process goes on after an error");
}

#[tokio::test]
async fn what_has_no_place_in_an_invocation_is_refused() {
    let lambda = start(options());
    let outcome = lambda.invoke(&json!({"do": "wrong-request"})).await;
    assert_eq!(outcome.result.unwrap(), json!([400, "InvalidRequestID", 403]));
    let outcome = lambda.invoke(&json!({"do": "answer-twice"})).await;
    assert_eq!(outcome.result.unwrap(), 1);
    assert_eq!(outcome.logs, ["the second was answered 400"]);
}
