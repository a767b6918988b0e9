//! The function's processes: when they start, stand still and end.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use spillway_bed::lambda::LambdaOptions;

use super::under_test::{options, start, with_init};

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
async fn no_process_outlives_a_test_that_was_killed() {
    // Another process of this program holds two, below, and is killed by one of them.
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lambda::processes::holds_processes_until_killed", "--ignored", "--nocapture"])
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
