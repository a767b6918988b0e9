//! One execution environment: a process, through its init and one invocation at a time.
//!
//! An environment serves until its process ends: by itself, past a deadline, or with the [`Lambda`].
//!
//! [`Lambda`]: super::Lambda

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::outcome::{Init, InvocationError, Outcome};
use super::process::FunctionProcess;
use super::runtime_api::{Event, RuntimeApi, Signal, Verdict};
use super::{Function, random, variables};

#[derive(Debug)]
pub(super) struct Environment {
    process: FunctionProcess,
    signals: mpsc::Receiver<Signal>,
    /// The poll that waits for an event.
    poll: Option<oneshot::Sender<Event>>,
    init: Init,
    /// Invocations so far.
    invocations: u64,
    killed: watch::Receiver<()>,
    _runtime_api: RuntimeApi,
}

/// An environment that did not come up, and what its process had to say.
#[derive(Debug)]
pub(super) struct FailedStart {
    pub(super) error: InvocationError,
    logs: Vec<String>,
    started: Timestamp,
    duration: Duration,
}

impl FailedStart {
    /// As the invocation that wanted the environment ends.
    pub(super) fn outcome(self, request_id: &str) -> Outcome {
        let Self { error, logs, started, duration } = self;
        Outcome { result: Err(error), logs, started, duration, request_id: request_id.to_owned(), init: None }
    }
}

/// What happens next in an environment.
enum Step {
    Polled { at: Instant, reply: oneshot::Sender<Event> },
    Answered { at: Instant, answer: Result<Bytes, InvocationError> },
    Failed(InvocationError),
}

/// What the process is in the middle of.
#[derive(Clone, Copy)]
enum Phase {
    Init,
    Invocation,
    /// The event is answered; the process has not asked for the next one yet.
    Answered,
}

/// For whom it is, and how long it may take.
#[derive(Clone, Copy)]
struct Task<'a> {
    request_id: &'a str,
    begin: Instant,
    limit: Duration,
}

impl Environment {
    /// Starts a process, for the invocation of this id, and waits until it asks for its first event.
    pub(super) async fn start(function: &Function, request_id: &str) -> Result<Self, FailedStart> {
        let options = &function.options;
        let (timestamp, instant) = (Timestamp::now(), Instant::now());
        let failed = |error, logs| FailedStart { error, logs, started: timestamp, duration: instant.elapsed() };
        let unable = |error: io::Error| {
            let message = format!("cannot start {}: {error}", options.binary.display());
            failed(InvocationError::new("Runtime.InvalidEntrypoint", message), Vec::new())
        };

        let (runtime_api, signals) = RuntimeApi::start().await.map_err(unable)?;
        let variables = variables::of(function, runtime_api.address);
        let process = FunctionProcess::start(&options.binary, variables, function.roll.clone()).map_err(unable)?;
        let (started, begin) = process.started;
        let init = Init { started, first_poll: started, duration: Duration::ZERO };
        let killed = function.kill.subscribe();
        let mut environment =
            Self { process, signals, poll: None, init, invocations: 0, killed, _runtime_api: runtime_api };

        let task = Task { request_id, begin, limit: options.init_timeout };
        match environment.step(Phase::Init, task).await {
            Step::Polled { at, reply } => {
                environment.poll = Some(reply);
                environment.init.duration = at - begin;
                environment.init.first_poll = started + (at - begin);
                Ok(environment)
            }
            Step::Failed(error) => {
                environment.end().await;
                Err(failed(error, environment.process.take_lines()))
            }
            Step::Answered { .. } => unreachable!("no answer is accepted during init"),
        }
    }

    pub(super) fn init(&self) -> Init {
        self.init
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Between invocations. Lambda freezes the process as soon as it has asked for the next event.
    pub(super) fn rest(&mut self, freeze: bool) {
        if freeze {
            self.process.freeze();
        }
    }

    /// Hands out one event and sees it through, until the process has asked for the next one, has
    /// ended, or had to be killed.
    pub(super) async fn invoke(&mut self, function: &Function, request_id: &str, payload: String) -> Outcome {
        let cold = self.invocations == 0;
        // What was to be killed before was not this invocation.
        self.killed.mark_unchanged();
        self.invocations += 1;
        self.process.thaw();

        let started = Timestamp::now();
        let task = Task { request_id, begin: Instant::now(), limit: function.options.timeout };
        let poll = self.poll.take().expect("it serves only after a poll");
        // A process that has ended no longer hears it, and the next step says so.
        let _ = poll.send(event(function, request_id, payload));

        let mut answer = None;
        let failure = loop {
            let phase = if answer.is_none() { Phase::Invocation } else { Phase::Answered };
            match self.step(phase, task).await {
                Step::Answered { at, answer: body } => {
                    answer = Some((at, body.and_then(|body| parse(&body))));
                }
                Step::Polled { reply, .. } => {
                    self.poll = Some(reply);
                    break None;
                }
                Step::Failed(error) => break Some(error),
            }
        };
        if failure.is_some() {
            self.end().await;
        }

        // An answer that was given stands, whatever the process did afterwards.
        let (at, result) = answer.unwrap_or_else(|| {
            let unanswered = || {
                let message = format!("RequestId: {request_id} Error: asked for the next event without an answer");
                InvocationError::new("Runtime.NoResponse", message)
            };
            (Instant::now(), Err(failure.unwrap_or_else(unanswered)))
        });
        Outcome {
            result,
            logs: self.process.take_lines(),
            started,
            duration: at - task.begin,
            request_id: request_id.to_owned(),
            init: cold.then_some(self.init),
        }
    }

    /// Waits for what happens next. Refuses what has no place in this phase by itself.
    async fn step(&mut self, phase: Phase, task: Task<'_>) -> Step {
        let Task { request_id: current, begin, limit } = task;
        loop {
            let signal = tokio::select! {
                // What the process said before it ended, or before the deadline, counts.
                biased;
                Some(signal) = self.signals.recv() => signal,
                status = self.process.exit() => return Step::Failed(ended(current, status)),
                () = until_killed(&mut self.killed) => return Step::Failed(ended(current, self.process.kill().await)),
                () = tokio::time::sleep_until((begin + limit).into()) => {
                    return Step::Failed(InvocationError::timed_out(current, limit));
                }
            };
            let (step, verdict, reply) = match (phase, signal) {
                (_, Signal::Poll { at, reply }) => return Step::Polled { at, reply },
                (Phase::Invocation, Signal::Answer { at, request_id, answer, verdict }) if request_id == current => {
                    (Some(Step::Answered { at, answer }), Verdict::Accepted, verdict)
                }
                (_, Signal::Answer { verdict, .. }) => (None, Verdict::UnknownRequest, verdict),
                (Phase::Init, Signal::InitFailed { error, verdict }) => {
                    (Some(Step::Failed(error)), Verdict::Accepted, verdict)
                }
                (_, Signal::InitFailed { verdict, .. }) => (None, Verdict::WrongState, verdict),
            };
            // A process that does not wait for the verdict does not need it.
            let _ = reply.send(verdict);
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Kills the process, if it still lives, and waits until it is gone.
    async fn end(&mut self) {
        // It cannot be waited for only when it has been already.
        let _ = self.process.kill().await;
    }
}

/// Waits until the processes that serve are to be killed.
async fn until_killed(killed: &mut watch::Receiver<()>) {
    if killed.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The event, as it is handed out now.
fn event(function: &Function, request_id: &str, payload: String) -> Event {
    let deadline = SystemTime::now() + function.options.timeout;
    let root = format!("{:016x}{:016x}", random(), random());
    Event {
        request_id: request_id.to_owned(),
        deadline_ms: deadline.duration_since(UNIX_EPOCH).expect("now is after 1970").as_millis(),
        function_arn: function.arn(),
        // An X-Ray trace that nobody samples.
        trace_id: format!(
            "Root=1-{:08x}-{};Parent={:016x};Sampled=0",
            Timestamp::now().as_second(),
            &root[..24],
            random()
        ),
        payload,
    }
}

fn ended(request_id: &str, status: io::Result<ExitStatus>) -> InvocationError {
    match status {
        Ok(status) => InvocationError::exited(request_id, status),
        Err(error) => InvocationError::new("Runtime.ExitError", format!("RequestId: {request_id} Error: {error}")),
    }
}

/// Lambda hands on whatever the function answers; here it must be JSON, as ours always is.
fn parse(body: &[u8]) -> Result<Value, InvocationError> {
    serde_json::from_slice(body).map_err(|error| {
        let text = String::from_utf8_lossy(body);
        InvocationError::new("Runtime.InvalidResponse", format!("the answer is not JSON ({error}): {text}"))
    })
}
