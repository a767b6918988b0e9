//! An execution environment: a process, through its init and one invocation at a time.
//!
//! An environment serves until its process ends: by itself, past a deadline, or with the [`Lambda`](super::Lambda).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::Function;
use super::outcome::{InvocationError, Outcome};
use super::process::FunctionProcess;
use super::runtime_api::{Event, RuntimeApi, Signal};

/// Time from the start of a process to its first poll.
const INIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Environment {
    process: FunctionProcess,
    _runtime_api: RuntimeApi,
    signals: mpsc::UnboundedReceiver<Signal>,
    /// The poll that waits for an event.
    poll: Option<oneshot::Sender<Event>>,
    killed: watch::Receiver<()>,
    /// From the execution of the binary to its first poll.
    pub(super) init: Duration,
}

/// Time of one init or invocation.
#[derive(Clone, Copy)]
struct Task<'a> {
    request_id: &'a str,
    begin: Instant,
    limit: Duration,
}

impl Environment {
    /// Starts a process for an invocation, and waits for its first poll. The error is the invocation's outcome.
    pub(super) async fn start(function: &Function, request_id: &str) -> Result<Self, Box<Outcome>> {
        let failed = |error, logs| Box::new(Outcome { result: Err(error), logs, request_id: request_id.to_owned() });
        let unable = |error: io::Error| {
            let message = format!("cannot start {}: {error}", function.options.binary.display());
            failed(InvocationError::new("Runtime.InvalidEntrypoint", message), Vec::new())
        };
        let (runtime_api, signals) = RuntimeApi::start().await.map_err(unable)?;
        let variables = variables(function, runtime_api.address);
        let process = FunctionProcess::start(&function.options.binary, variables, function.live.clone());
        let (process, killed) = (process.map_err(unable)?, function.kill.subscribe());
        let begin = process.started;
        let mut environment =
            Self { process, _runtime_api: runtime_api, signals, poll: None, killed, init: Duration::ZERO };
        let error = match environment.signal(Task { request_id, begin, limit: INIT }).await {
            Ok(Signal::Poll(reply)) => {
                environment.poll = Some(reply);
                environment.init = begin.elapsed();
                return Ok(environment);
            }
            Ok(Signal::Failed(error) | Signal::Answer(Err(error))) | Err(error) => error,
            Ok(Signal::Answer(Ok(_))) => unreachable!("there is no event to answer"),
        };
        environment.end().await;
        Err(failed(error, environment.process.take_lines()))
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Freezes the process between invocations, as Lambda does after each poll.
    pub(super) fn freeze(&mut self) {
        self.process.freeze();
    }

    /// Hands out one event, until the process polls again, has ended or was killed.
    pub(super) async fn invoke(&mut self, function: &Function, request_id: &str, payload: String) -> Outcome {
        // An earlier kill was not this invocation's.
        self.killed.mark_unchanged();
        self.process.thaw();
        let limit = function.options.timeout;
        let task = Task { request_id, begin: Instant::now(), limit };
        let deadline = (SystemTime::now() + limit).duration_since(UNIX_EPOCH).expect("now is after 1970");
        let (function_arn, request_id) = (function.arn(), request_id.to_owned());
        let poll = self.poll.take().expect("an environment serves only after a poll");
        // Fails if the process has ended, which the next signal reports.
        let _ = poll.send(Event { request_id: request_id.clone(), deadline, function_arn, payload });

        let mut answer = None;
        let failure = loop {
            match self.signal(task).await {
                Ok(Signal::Answer(body)) => answer = Some(body.and_then(|body| parse(&body))),
                Ok(Signal::Poll(reply)) => {
                    self.poll = Some(reply);
                    break None;
                }
                Ok(Signal::Failed(error)) | Err(error) => break Some(error),
            }
        };
        if failure.is_some() {
            self.end().await;
        }
        // An answer stands, whatever the process did afterwards.
        let unanswered = || InvocationError::new("Runtime.NoResponse", "polled without an answer".to_owned());
        let result = answer.unwrap_or_else(|| Err(failure.unwrap_or_else(unanswered)));
        Outcome { result, logs: self.process.take_lines(), request_id }
    }

    /// Waits for the next signal, the end of the process or the task's deadline.
    async fn signal(&mut self, task: Task<'_>) -> Result<Signal, InvocationError> {
        let Task { request_id, begin, limit } = task;
        tokio::select! {
            // Signals before the end of the process, or before the deadline, count.
            biased;
            Some(signal) = self.signals.recv() => Ok(signal),
            status = self.process.exit() => Err(ended(request_id, status)),
            () = until_killed(&mut self.killed) => Err(ended(request_id, self.process.kill().await)),
            () = tokio::time::sleep_until((begin + limit).into()) => {
                let message = format!("RequestId: {request_id} Error: Task timed out after {} seconds", limit.as_secs());
                Err(InvocationError::new("Sandbox.Timedout", message))
            }
        }
    }

    /// Kills the process, and waits until it is gone.
    async fn end(&mut self) {
        // Fails only if the process has been waited for.
        let _ = self.process.kill().await;
    }
}

async fn until_killed(killed: &mut watch::Receiver<()>) {
    if killed.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn ended(request_id: &str, status: io::Result<ExitStatus>) -> InvocationError {
    let how = status.map_or_else(|error| error.to_string(), |status| format!("Runtime exited with {status}"));
    InvocationError::new("Runtime.ExitError", format!("RequestId: {request_id} Error: {how}"))
}

/// Lambda hands on any answer; here it must be JSON, as ours always is.
fn parse(body: &[u8]) -> Result<Value, InvocationError> {
    serde_json::from_slice(body).map_err(|error| {
        let text = String::from_utf8_lossy(body);
        InvocationError::new("Runtime.InvalidResponse", format!("the answer is not JSON ({error}): {text}"))
    })
}

/// All variables of the process: those that Lambda gives and its runtime requires, and the function's own.
fn variables(function: &Function, runtime_api: SocketAddr) -> BTreeMap<String, String> {
    let Function { options, account, .. } = function;
    let name = &options.function_name;
    let given = [
        ("AWS_LAMBDA_RUNTIME_API", runtime_api.to_string()),
        ("AWS_LAMBDA_FUNCTION_NAME", name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{name}")),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/21/[$LATEST]0123456789abcdef0123456789abcdef".to_owned()),
        ("AWS_LAMBDA_LOG_LEVEL", "INFO".to_owned()),
        ("AWS_REGION", account.region.clone()),
        ("AWS_DEFAULT_REGION", account.region.clone()),
        ("AWS_ACCESS_KEY_ID", account.credentials.access_key_id.clone()),
        ("AWS_SECRET_ACCESS_KEY", account.credentials.secret_access_key.clone()),
        ("AWS_SESSION_TOKEN", account.credentials.session_token.clone()),
        ("PATH", "/usr/local/bin:/usr/bin/:/bin:/opt/bin".to_owned()),
        // Not Lambda's: the address of the AWS side.
        ("AWS_ENDPOINT_URL", account.endpoint.clone()),
    ];
    let mut variables: BTreeMap<_, _> = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    variables.extend(options.env.clone());
    variables
}
