//! The Lambda driver, driving a small Python function.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod lambda {
    pub(crate) mod sink;
}

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use lambda::sink::Sink;
use serde_json::{Value, json};
use spillway_bed::aws::Credentials;
use spillway_bed::lambda::{Account, Lambda, LambdaOptions};

/// `function.py` as an executable. Its interpreter is named whole: Lambda's PATH may not have it.
static FUNCTION: LazyLock<PathBuf> = LazyLock::new(|| {
    let python =
        Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().expect("python3 is there");
    let python = String::from_utf8(python.stdout).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Renamed when complete: another process of these tests may be running the one before.
    let (new, path) = (folder.join(format!("new-{}", std::process::id())), folder.join("bootstrap"));
    fs::write(&new, format!("#!{}\n{}", python.trim(), include_str!("lambda/function.py"))).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, &path).unwrap();
    path
});

fn options() -> LambdaOptions {
    LambdaOptions {
        binary: FUNCTION.clone(),
        env: BTreeMap::new(),
        function_name: "under-test".to_owned(),
        timeout: Duration::from_secs(60),
        memory_mb: 192,
        freeze: true,
        maximum_retry_attempts: 2,
        init_timeout: Duration::from_secs(10),
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

fn with_init(what: &str) -> LambdaOptions {
    LambdaOptions { env: BTreeMap::from([("INIT".to_owned(), what.to_owned())]), ..options() }
}

/// The state letter of a process, or none when it is gone.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in brackets and may hold anything.
    stat.rsplit(") ").next()?.chars().next()
}

/// The kernel stops and ends processes a moment after the signal; on a busy machine, after who sends it has woken.
async fn until_state(pid: u32, wanted: impl Fn(Option<char>) -> bool) {
    let begin = Instant::now();
    while !wanted(state(pid)) {
        assert!(begin.elapsed() < Duration::from_secs(60), "process {pid} is {:?}", state(pid));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn is_gone(state: Option<char>) -> bool {
    // Nobody may have waited for a process whose parent died first.
    matches!(state, None | Some('Z'))
}

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
async fn a_process_that_exits_is_an_error_and_the_next_start_is_cold() {
    let lambda = start(options());
    for (code, reason) in
        [(7, "Runtime exited with error: exit status 7"), (0, "Runtime exited without providing a reason")]
    {
        let outcome = lambda.invoke(&json!({"do": "exit", "code": code})).await;
        let error = outcome.result.unwrap_err();
        assert_eq!(error.error_type, "Runtime.ExitError");
        assert_eq!(error.message, format!("RequestId: {} Error: {reason}", outcome.request_id));
        assert_eq!(outcome.logs, ["leaving"]);
        assert!(outcome.init.is_some());
    }
    let error = lambda.invoke(&json!({"do": "abort"})).await.result.unwrap_err();
    assert!(error.message.ends_with("Runtime exited with error: signal: aborted"), "{error}");

    let next = lambda.invoke(&json!({"do": "count"})).await;
    assert_eq!(next.result.unwrap()["invocations"], 1);
    assert_eq!(lambda.process_ids().len(), 1);
}

#[tokio::test]
async fn a_process_that_is_killed_fails_its_invocation_and_the_next_start_is_cold() {
    let lambda = start(options());
    let serving = lambda.clone();
    let invocation = tokio::spawn(async move { serving.invoke(json!({"do": "hang"})).await });
    while lambda.process_ids().is_empty() {
        assert!(!invocation.is_finished(), "there is a process to kill");
        tokio::task::yield_now().await;
    }
    lambda.kill();

    let error = invocation.await.unwrap().result.unwrap_err();
    assert_eq!(error.error_type, "Runtime.ExitError");
    assert!(error.message.ends_with("Runtime exited with error: signal: killed"), "{error}");
    let next = lambda.invoke(json!({"do": "count"})).await;
    assert_eq!(next.result.unwrap()["invocations"], 1, "a kill is not kept for the next one");
}

#[tokio::test]
async fn a_process_past_its_deadline_is_killed() {
    let timeout = Duration::from_secs(15);
    let lambda = start(LambdaOptions { timeout, ..options() });
    lambda.invoke(&json!({"do": "count"})).await.result.unwrap();
    let pid = lambda.process_ids()[0];
    let begin = Instant::now();
    let outcome = lambda.invoke(&json!({"do": "hang"})).await;

    // It would hang for a minute.
    assert!(begin.elapsed() >= timeout && begin.elapsed() < Duration::from_secs(50));
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
async fn an_answer_stands_though_the_process_hangs_after_it() {
    let timeout = Duration::from_secs(15);
    let lambda = start(LambdaOptions { timeout, ..options() });
    let outcome = lambda.invoke(&json!({"do": "answer-and-hang"})).await;
    assert_eq!(outcome.result.unwrap(), "answered");
    assert!(outcome.duration < timeout);
    assert!(lambda.process_ids().is_empty());
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

#[tokio::test]
async fn a_start_that_fails_is_the_invocations_error() {
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
async fn a_process_is_frozen_whenever_no_invocation_runs() {
    let folder = tempfile::tempdir().unwrap();
    let ticks = folder.path().join("ticks");
    let length = || fs::metadata(&ticks).map_or(0, |file| file.len());
    let lambda = start(options());
    lambda.invoke(&json!({"do": "tick", "file": ticks})).await.result.unwrap();
    let pid = lambda.process_ids()[0];
    until_state(pid, |state| state == Some('T')).await;

    // What it left running stands still too, once its last tick is written, and goes on with the next invocation.
    let begin = Instant::now();
    loop {
        let frozen = length();
        // As long as twenty ticks take.
        tokio::time::sleep(Duration::from_millis(100)).await;
        if length() == frozen {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it goes on");
    }
    let thawed = lambda.invoke(&json!({"do": "count"})).await;
    assert_eq!(thawed.result.unwrap()["invocations"], 2);
    until_state(pid, |state| state == Some('T')).await;
    assert!(lambda.peak_memory().unwrap() > 1024 * 1024, "readable while frozen");

    let awake = start(LambdaOptions { freeze: false, ..options() });
    let ticks = folder.path().join("awake");
    awake.invoke(&json!({"do": "tick", "file": ticks})).await.result.unwrap();
    let length = || fs::metadata(&ticks).map_or(0, |file| file.len());
    let (then, begin) = (length(), Instant::now());
    while length() <= then {
        assert!(begin.elapsed() < Duration::from_secs(60), "it stands still");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_process_that_ended_between_invocations_is_replaced() {
    let lambda = start(options());
    lambda.invoke(&json!({"do": "count"})).await.result.unwrap();
    let pid = lambda.process_ids()[0];
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    until_state(pid, is_gone).await;
    let next = lambda.invoke(&json!({"do": "count"})).await;
    assert_eq!(next.result.unwrap()["invocations"], 1);
}

#[tokio::test]
async fn initialize_and_recycle_start_and_end_a_process() {
    let lambda = start(options());
    let init = lambda.initialize().await.unwrap();
    assert!(init.duration > Duration::ZERO);
    let pid = lambda.process_ids()[0];
    until_state(pid, |state| state == Some('T')).await;
    let warm = lambda.invoke(&json!({"do": "count"})).await;
    assert_eq!(warm.result.unwrap()["pid"], pid);
    lambda.recycle();
    until_state(pid, is_gone).await;
    assert!(lambda.process_ids().is_empty());
}

#[tokio::test]
async fn dropping_the_lambda_ends_the_process_and_what_it_started() {
    let lambda = start(options());
    let child = lambda.invoke(&json!({"do": "start-child"})).await.result.unwrap();
    let child = u32::try_from(child.as_u64().unwrap()).unwrap();
    let pid = lambda.process_ids()[0];
    drop(lambda);
    until_state(pid, is_gone).await;
    until_state(child, is_gone).await;
}

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

#[tokio::test]
async fn no_process_outlives_a_test_that_was_killed() {
    // Another process of this program holds two, below, and is killed by one of them.
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_processes_until_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(holder.stdout.take().unwrap());
    let held: Vec<u32> = output
        .lines()
        .find_map(|line| serde_json::from_str(line.unwrap().split_once("held: ")?.1).ok())
        .expect("the holder says which processes it holds");
    let [frozen, busy] = held[..] else { panic!("{held:?} are not two") };
    holder.wait().unwrap();
    until_state(frozen, is_gone).await;
    until_state(busy, is_gone).await;
}

#[tokio::test]
#[ignore = "only for no_process_outlives_a_test_that_was_killed"]
async fn holds_processes_until_killed() {
    let (frozen, busy) = (start(options()), start(LambdaOptions { freeze: false, ..options() }));
    frozen.invoke(&json!({"do": "count"})).await.result.unwrap();
    busy.initialize().await.unwrap();
    until_state(frozen.process_ids()[0], |state| state == Some('T')).await;
    println!("held: {:?}", [frozen.process_ids(), busy.process_ids()].concat());
    busy.invoke(&json!({"do": "kill-the-test-and-hang"})).await.result.unwrap();
}
