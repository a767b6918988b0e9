//! The Lambda stand-in refuses and ends as Lambda does. The function under test is a small Python program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::{Json, Router};
use serde_json::{Value, json};
use spillway_bed::aws::Credentials;
use spillway_bed::lambda::{Account, Lambda, LambdaOptions};
use tokio::net::TcpListener;

/// `function.py` as an executable, with an absolute interpreter: Lambda's PATH may lack Python.
static FUNCTION: LazyLock<PathBuf> = LazyLock::new(|| {
    let python =
        Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().expect("python3 is there");
    let python = String::from_utf8(python.stdout).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Renamed when complete: another process of these tests may run an earlier copy.
    let (new, path) = (folder.join(format!("new-{}", std::process::id())), folder.join("bootstrap"));
    fs::write(&new, format!("#!{}\n{}", python.trim(), include_str!("lambda/function.py"))).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, &path).unwrap();
    path
});

fn options() -> LambdaOptions {
    LambdaOptions {
        binary: FUNCTION.clone(),
        function_name: "under-test".to_owned(),
        timeout: Duration::from_secs(60),
        ..LambdaOptions::default()
    }
}

fn start(options: LambdaOptions) -> Lambda {
    start_with_endpoint("http://127.0.0.1:1", options)
}

fn start_with_endpoint(endpoint: &str, options: LambdaOptions) -> Lambda {
    let account = Account {
        endpoint: endpoint.to_owned(),
        region: "us-east-1".to_owned(),
        id: "123456789012".to_owned(),
        credentials: Credentials {
            access_key_id: "AKID".to_owned(),
            secret_access_key: "secret".to_owned(),
            session_token: "token".to_owned(),
            role_arn: "arn:aws:iam::123456789012:role/spillway-drain".to_owned(),
        },
    };
    Lambda::in_account(account, options)
}

fn with_init(init: &str) -> LambdaOptions {
    LambdaOptions { env: BTreeMap::from([("INIT".to_owned(), init.to_owned())]), ..options() }
}

/// URL of a failure queue that accepts everything.
async fn failure_queue() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let take = Router::new().fallback(async || Json(Value::Null));
    tokio::spawn(async move { axum::serve(listener, take).await });
    url
}

#[tokio::test]
async fn misplaced_answer_is_refused() {
    let lambda = start(options());
    let outcome = lambda.invoke(&json!({"do": "wrong-request"})).await;
    assert_eq!(outcome.result.unwrap(), json!([400, "InvalidRequestID", 403]));
    let outcome = lambda.invoke(&json!({"do": "answer-twice"})).await;
    assert_eq!(outcome.result.unwrap(), 1);
    assert_eq!(outcome.logs, ["the second was answered 400"]);
}

/// The state letter of a process; absent if the process is gone.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may have any text.
    stat.rsplit(") ").next()?.chars().next()
}

/// Waits for a state: the kernel stops and ends processes a moment after the signal.
async fn until_state(pid: u32, wanted: impl Fn(Option<char>) -> bool) {
    let begin = Instant::now();
    while !wanted(state(pid)) {
        assert!(begin.elapsed() < Duration::from_secs(60), "process {pid} is {:?}", state(pid));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn is_gone(state: Option<char>) -> bool {
    // A process whose parent died first may be a zombie.
    matches!(state, None | Some('Z'))
}

#[tokio::test]
async fn process_past_its_deadline_is_killed() {
    let timeout = Duration::from_secs(15);
    let lambda = start(LambdaOptions { timeout, ..options() });
    lambda.invoke(&json!({"do": "count"})).await.result.unwrap();
    let pid = lambda.process_ids()[0];
    let outcome = lambda.invoke(&json!({"do": "hang"})).await;

    let error = outcome.result.unwrap_err();
    assert_eq!(error.error_type, "Sandbox.Timedout");
    let text = format!("RequestId: {} Error: Task timed out after 15.00 seconds", outcome.request_id);
    assert_eq!(error.message, text);
    assert_eq!(outcome.logs, ["hanging"]);
    assert_eq!(state(pid), None);

    let next = lambda.invoke(&json!({"do": "count"})).await;
    assert_eq!(next.result.unwrap()["invocations"], 1);
}

#[tokio::test]
async fn failed_start_is_the_invocations_error() {
    let outcome = start(with_init("error")).invoke(&json!({"do": "count"})).await;
    let error = outcome.result.unwrap_err();
    assert_eq!((error.error_type.as_str(), error.message.as_str()), ("Settings", "SPILLWAY_X is wrong"));
    assert_eq!(outcome.logs, ["a setting is wrong"]);

    let error = start(with_init("exit")).invoke(&json!({"do": "count"})).await.result.unwrap_err();
    assert_eq!(error.error_type, "Runtime.ExitError");
    assert!(error.message.ends_with("exit status 3"), "{error}");

    let slow = LambdaOptions { init_timeout: Duration::from_millis(300), ..with_init("hang") };
    let error = start(slow).invoke(&json!({"do": "count"})).await.result.unwrap_err();
    assert_eq!(error.error_type, "Sandbox.Timedout");
    assert!(error.message.ends_with("Task timed out after 0.30 seconds"), "{error}");

    let missing = LambdaOptions { binary: "/nowhere/bootstrap".into(), ..options() };
    let error = start(missing).invoke(&json!({"do": "count"})).await.result.unwrap_err();
    assert_eq!(error.error_type, "Runtime.InvalidEntrypoint");
    assert!(error.message.contains("/nowhere/bootstrap"), "{error}");
}

#[tokio::test]
async fn process_is_frozen_between_invocations() {
    let lambda = start(options());
    for invocations in 1..=2 {
        let outcome = lambda.invoke(&json!({"do": "count"})).await;
        assert_eq!(outcome.result.unwrap()["invocations"], invocations);
        until_state(lambda.process_ids()[0], |state| state == Some('T')).await;
    }
}

#[tokio::test]
async fn dropped_lambda_ends_the_process_and_its_children() {
    let lambda = start(options());
    let child = lambda.invoke(&json!({"do": "start-child"})).await.result.unwrap();
    let child = u32::try_from(child.as_u64().unwrap()).unwrap();
    let pid = lambda.process_ids()[0];
    drop(lambda);
    until_state(pid, is_gone).await;
    until_state(child, is_gone).await;
}

#[tokio::test]
async fn event_that_always_fails_ends_in_the_failure_queue() {
    let one_retry = LambdaOptions { maximum_retry_attempts: Some(1), ..options() };
    let lambda = start_with_endpoint(&failure_queue().await, one_retry);
    let event = json!({"do": "fail", "message": "no instance id"});
    let delivery = lambda.invoke_async(&event).await.unwrap();
    assert_eq!(delivery.failed.len(), 1);
    let record = delivery.failure_record.unwrap();
    let timestamp = record["timestamp"].as_str().unwrap();
    assert_eq!(timestamp.len(), "2019-11-14T18:16:05.568Z".len(), "{timestamp}");
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
        "responsePayload": {"errorType": "Unreadable", "errorMessage": "no instance id"},
    });
    assert_eq!(record, expected);
}

#[tokio::test]
async fn event_without_a_free_execution_is_given_up() {
    let none = LambdaOptions { reserved_concurrency: Some(0), ..options() };
    let lambda = start_with_endpoint(&failure_queue().await, none);
    let delivery = lambda.invoke_async(&json!({"do": "count"})).await.unwrap();
    let record = delivery.failure_record.unwrap();
    let context = &record["requestContext"];
    assert_eq!(
        (&context["condition"], &context["approximateInvokeCount"]),
        (&json!("ZeroReservedConcurrency"), &json!(0))
    );
    assert_eq!((delivery.waits.len(), record.get("responsePayload")), (0, None));
}
