//! An execution environment: a process, through its init and one invocation at a time.
//!
//! An environment serves until its process ends: by itself, past a deadline, or with the [`Lambda`](super::Lambda).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::outcome::{Init, InvocationError, Outcome};
use super::process::FunctionProcess;
use super::runtime_api::{Event, Phase, RuntimeApi, Signal};
use super::{Function, random};

#[derive(Debug)]
pub(super) struct Environment {
    process: FunctionProcess,
    runtime_api: RuntimeApi,
    signals: mpsc::UnboundedReceiver<Signal>,
    /// The poll that waits for an event.
    poll: Option<oneshot::Sender<Event>>,
    init: Init,
    is_cold: bool,
    killed: watch::Receiver<()>,
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
        let options = &function.options;
        let (timestamp, instant) = (Timestamp::now(), Instant::now());
        let failed = |error, logs| {
            let (duration, request_id) = (instant.elapsed(), request_id.to_owned());
            Box::new(Outcome { result: Err(error), logs, started: timestamp, duration, request_id, init: None })
        };
        let unable = |error: io::Error| {
            let message = format!("cannot start {}: {error}", options.binary.display());
            failed(InvocationError::new("Runtime.InvalidEntrypoint", message), Vec::new())
        };
        let (runtime_api, signals) = RuntimeApi::start().await.map_err(unable)?;
        let variables = variables(function, runtime_api.address);
        let process = FunctionProcess::start(&options.binary, variables, function.live.clone()).map_err(unable)?;
        let (started, begin) = process.started;
        let init = Init { started, first_poll: started, duration: Duration::ZERO };
        let killed = function.kill.subscribe();
        let mut environment = Self { process, runtime_api, signals, poll: None, init, is_cold: true, killed };
        let error = match environment.signal(Task { request_id, begin, limit: options.init_timeout }).await {
            Ok(Signal::Poll { at, reply }) => {
                environment.poll = Some(reply);
                environment.init.duration = at - begin;
                environment.init.first_poll = started + (at - begin);
                environment.runtime_api.set_phase(Phase::Idle);
                return Ok(environment);
            }
            Ok(Signal::InitFailed(error)) | Err(error) => error,
            Ok(Signal::Answer { .. }) => unreachable!("no answer is accepted during init"),
        };
        environment.end().await;
        Err(failed(error, environment.process.take_lines()))
    }

    pub(super) fn init(&self) -> Init {
        self.init
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
        let started = Timestamp::now();
        let task = Task { request_id, begin: Instant::now(), limit: function.options.timeout };
        self.runtime_api.set_phase(Phase::Invocation(request_id.to_owned()));
        let poll = self.poll.take().expect("an environment serves only after a poll");
        // Fails if the process has ended, which the next signal reports.
        let _ = poll.send(event(function, request_id, payload));

        let mut answer = None;
        let failure = loop {
            match self.signal(task).await {
                Ok(Signal::Answer { at, answer: body }) => answer = Some((at, body.and_then(|body| parse(&body)))),
                Ok(Signal::Poll { reply, .. }) => {
                    self.poll = Some(reply);
                    break None;
                }
                Ok(Signal::InitFailed(error)) | Err(error) => break Some(error),
            }
        };
        self.runtime_api.set_phase(Phase::Idle);
        if failure.is_some() {
            self.end().await;
        }
        // An answer stands, whatever the process did afterwards.
        let (at, result) = answer.unwrap_or_else(|| {
            let message = format!("RequestId: {request_id} Error: polled for the next event without an answer");
            let unanswered = || InvocationError::new("Runtime.NoResponse", message);
            (Instant::now(), Err(failure.unwrap_or_else(unanswered)))
        });
        Outcome {
            result,
            logs: self.process.take_lines(),
            started,
            duration: at - task.begin,
            request_id: request_id.to_owned(),
            init: std::mem::take(&mut self.is_cold).then_some(self.init),
        }
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
            () = tokio::time::sleep_until((begin + limit).into()) => Err(InvocationError::timed_out(request_id, limit)),
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

fn event(function: &Function, request_id: &str, payload: String) -> Event {
    let deadline = SystemTime::now() + function.options.timeout;
    let (root, parent) = (format!("{:016x}{:016x}", random(), random()), random());
    Event {
        request_id: request_id.to_owned(),
        deadline_ms: deadline.duration_since(UNIX_EPOCH).expect("now is after 1970").as_millis(),
        function_arn: function.arn(),
        // An X-Ray trace that is not sampled.
        trace_id: format!("Root=1-{:08x}-{};Parent={parent:016x};Sampled=0", Timestamp::now().as_second(), &root[..24]),
        payload,
    }
}

fn ended(request_id: &str, status: io::Result<ExitStatus>) -> InvocationError {
    match status {
        Ok(status) => InvocationError::exited(request_id, status),
        Err(error) => InvocationError::new("Runtime.ExitError", format!("RequestId: {request_id} Error: {error}")),
    }
}

/// Lambda hands on any answer; here it must be JSON, as ours always is.
fn parse(body: &[u8]) -> Result<Value, InvocationError> {
    serde_json::from_slice(body).map_err(|error| {
        let text = String::from_utf8_lossy(body);
        InvocationError::new("Runtime.InvalidResponse", format!("the answer is not JSON ({error}): {text}"))
    })
}

/// All variables of the process: those that Lambda gives an OS-only runtime, and the function's own.
fn variables(function: &Function, runtime_api: SocketAddr) -> BTreeMap<String, String> {
    let Function { options, account, .. } = function;
    let name = &options.function_name;
    let folder = options.binary.parent().unwrap_or(&options.binary);
    let stream = format!("{}/[$LATEST]{:016x}{:016x}", Timestamp::now().strftime("%Y/%m/%d"), random(), random());
    let given = [
        ("AWS_LAMBDA_RUNTIME_API", runtime_api.to_string()),
        ("AWS_LAMBDA_FUNCTION_NAME", name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128".to_owned()),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{name}")),
        ("AWS_LAMBDA_LOG_STREAM_NAME", stream),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON".to_owned()),
        ("AWS_LAMBDA_LOG_LEVEL", "INFO".to_owned()),
        ("AWS_REGION", account.region.clone()),
        ("AWS_DEFAULT_REGION", account.region.clone()),
        ("AWS_ACCESS_KEY_ID", account.credentials.access_key_id.clone()),
        ("AWS_SECRET_ACCESS_KEY", account.credentials.secret_access_key.clone()),
        ("AWS_SESSION_TOKEN", account.credentials.session_token.clone()),
        ("_HANDLER", "bootstrap".to_owned()),
        ("LAMBDA_TASK_ROOT", folder.display().to_string()),
        ("LAMBDA_RUNTIME_DIR", "/var/runtime".to_owned()),
        ("TZ", ":UTC".to_owned()),
        ("LANG", "en_US.UTF-8".to_owned()),
        ("PATH", "/usr/local/bin:/usr/bin/:/bin:/opt/bin".to_owned()),
        // Not Lambda's: the address of the AWS side.
        ("AWS_ENDPOINT_URL", account.endpoint.clone()),
    ];
    let mut variables: BTreeMap<_, _> = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    variables.extend(options.env.clone());
    variables
}
