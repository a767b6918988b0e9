//! Lambda, as the function sees it: it drives a built binary over the Runtime API.
//!
//! # Layout
//! * this file: what a test holds, and which environment an invocation gets;
//! * `environment`: one process through its init and one invocation at a time;
//! * `runtime_api`: the HTTP server that this process polls;
//! * `process`: start, freeze, thaw, kill, and the lines it writes;
//! * `variables`: what Lambda puts into its environment;
//! * `queue`: the asynchronous invocation, with its retries and the record of a failure;
//! * `retry`: when an event is tried again, and when it is given up;
//! * `poller`: what takes messages from an SQS queue to a function;
//! * `outcome`: what came of an invocation, in Lambda's own words.
//!
//! Like Lambda, it starts a process when an invocation finds none idle, keeps it for the next one,
//! and starts a second one for an invocation that comes while the first is busy.

mod environment;
mod outcome;
mod poller;
mod process;
mod queue;
mod retry;
mod runtime_api;
mod variables;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::aws::{Credentials, FunctionLimits};
use crate::error::BedError;
use crate::usage::Usage;
use crate::world::World;

use environment::Environment;
pub use outcome::{Init, InvocationError, Outcome};
pub(crate) use poller::Poller;
use process::Roll;
pub use queue::Delivery;
use retry::EventInvokeConfig;

/// The role whose credentials the function gets.
const ROLE: &str = "spillway-drain";

/// How many executions an account has at a time, where nobody has asked AWS for more.
const ACCOUNT_CONCURRENCY: usize = 1_000;

/// How a function is set up.
#[derive(Debug, Clone)]
pub struct LambdaOptions {
    pub binary: PathBuf,
    /// The function's own variables. They win over those that Lambda gives.
    pub env: BTreeMap<String, String>,
    pub function_name: String,
    pub timeout: Duration,
    /// Only told to the function: nothing holds it to it.
    pub memory_mb: u32,
    /// Stop the process whenever no invocation runs, as Lambda does.
    pub freeze: bool,
    /// How often the asynchronous queue tries again after an error; the template's, if nobody says.
    pub maximum_retry_attempts: Option<usize>,
    /// How old an event may be in that queue; the template's, if nobody says.
    pub maximum_event_age: Option<Duration>,
    /// How many executions the function may have at a time; the template's, if nobody says.
    pub reserved_concurrency: Option<usize>,
    /// What part of the queue's waits really passes. 1 is as in Lambda; 0 would lose the order of events that wait.
    pub wait_factor: f64,
    /// How long a process may take until it asks for its first event.
    pub init_timeout: Duration,
}

impl Default for LambdaOptions {
    fn default() -> Self {
        Self {
            binary: built("SPILLWAY_DRAIN", "spillway-drain"),
            env: BTreeMap::new(),
            function_name: "spillway-drain".to_owned(),
            timeout: Duration::from_mins(15),
            memory_mb: 128,
            freeze: true,
            maximum_retry_attempts: None,
            maximum_event_age: None,
            reserved_concurrency: None,
            wait_factor: 0.001,
            init_timeout: Duration::from_secs(10),
        }
    }
}

/// The function that a variable names, else its dev build in the target folder this program runs from.
pub(crate) fn built(variable: &str, name: &str) -> PathBuf {
    if let Some(named) = std::env::var_os(variable) {
        return named.into();
    }
    // A test is target/debug/deps/name-hash, a program target/debug/name.
    let own = std::env::current_exe().unwrap_or_default();
    let debug = own.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    debug.unwrap_or(&own).join(name)
}

/// The AWS account that the function is deployed in.
#[derive(Debug, Clone)]
pub struct Account {
    /// Where the function finds every AWS API: `AWS_ENDPOINT_URL`.
    pub endpoint: String,
    pub region: String,
    pub id: String,
    /// Of the function's role.
    pub credentials: Credentials,
}

/// A function that can be invoked. Its processes end with the last clone.
#[derive(Debug, Clone)]
pub struct Lambda {
    function: Arc<Function>,
}

#[derive(Debug)]
struct Function {
    account: Account,
    options: LambdaOptions,
    idle: Mutex<Vec<Environment>>,
    roll: Roll,
    /// Tells the environments that serve to kill their processes.
    kill: watch::Sender<()>,
    event_invoke_config: EventInvokeConfig,
    reserved_concurrency: Option<usize>,
    /// The executions that are free.
    free: Semaphore,
    /// How often none was.
    refused: watch::Sender<usize>,
}

/// What an event is made from: JSON, or any text at all.
#[derive(Debug, Clone)]
pub struct Payload(String);

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&Value> for Payload {
    fn from(event: &Value) -> Self {
        Self(event.to_string())
    }
}

impl From<Value> for Payload {
    fn from(event: Value) -> Self {
        Self::from(&event)
    }
}

impl Lambda {
    /// The function in a world, with credentials of its own: the session is the function's name. What the
    /// template tells it of its stack is told here too.
    pub async fn start(world: &World, mut options: LambdaOptions) -> Result<Self, BedError> {
        let mut variables = world.aws_side().variables().await?;
        variables.append(&mut options.env);
        options.env = variables;
        Self::in_role(world, ROLE, options).await
    }

    /// A function in a world, with credentials of that role and of its own.
    pub(crate) async fn in_role(world: &World, role: &str, options: LambdaOptions) -> Result<Self, BedError> {
        let aws = world.aws_side();
        let credentials = aws.credentials_of_function(role, &options.function_name, &options.env).await?;
        let limits = aws.limits_of_function(role).await?;
        let account = Account {
            endpoint: world.aws.clone(),
            region: world.region.clone(),
            id: world.account.clone(),
            credentials,
        };
        Ok(Self::limited(account, options, limits))
    }

    /// A function that no template knows. Starts no process yet: the first invocation does, or [`Lambda::initialize`].
    #[must_use]
    pub fn in_account(account: Account, options: LambdaOptions) -> Self {
        Self::limited(account, options, FunctionLimits::default())
    }

    fn limited(account: Account, options: LambdaOptions, limits: FunctionLimits) -> Self {
        let lambdas_own = EventInvokeConfig::default();
        let (retries, age) = (limits.maximum_retry_attempts, limits.maximum_event_age_s.map(Duration::from_secs));
        let event_invoke_config = EventInvokeConfig {
            maximum_retry_attempts: options
                .maximum_retry_attempts
                .or(retries)
                .unwrap_or(lambdas_own.maximum_retry_attempts),
            maximum_event_age: options.maximum_event_age.or(age).unwrap_or(lambdas_own.maximum_event_age),
        };
        let reserved_concurrency = options.reserved_concurrency.or(limits.reserved_concurrency);
        let function = Function {
            account,
            options,
            idle: Mutex::default(),
            roll: Roll::default(),
            kill: watch::Sender::default(),
            event_invoke_config,
            reserved_concurrency,
            free: Semaphore::new(reserved_concurrency.unwrap_or(ACCOUNT_CONCURRENCY)),
            refused: watch::Sender::default(),
        };
        Self { function: Arc::new(function) }
    }

    /// One synchronous invocation. It is over when the process has asked for the next event.
    pub async fn invoke(&self, payload: impl Into<Payload>) -> Outcome {
        let request_id = random_uuid();
        let ran = self.attempt(&request_id, &payload.into()).await;
        ran.unwrap_or_else(|| Outcome::refused(&request_id))
    }

    /// An event through the asynchronous queue: all attempts, and of the minutes between them a part.
    pub async fn invoke_async(&self, payload: impl Into<Payload>) -> Result<Delivery, BedError> {
        queue::deliver(self, &payload.into()).await
    }

    /// Starts a process and lets it wait for an event, as provisioned concurrency would.
    pub async fn initialize(&self) -> Result<Init, InvocationError> {
        let mut environment =
            Environment::start(&self.function, &random_uuid()).await.map_err(|failed| failed.error)?;
        let init = environment.init();
        environment.rest(self.function.options.freeze);
        self.idle().push(environment);
        Ok(init)
    }

    /// Ends the processes that are idle, so that the next invocation is a cold start.
    pub fn recycle(&self) {
        self.idle().clear();
    }

    /// Kills the processes that serve an invocation, as SIGKILL does at any moment. Their invocations
    /// fail as Lambda words it, and those of the queue are tried again.
    pub fn kill(&self) {
        self.function.kill.send_replace(());
    }

    /// Waits until so many attempts have found no free execution. It panics when they have not within a minute: a test
    /// would say nothing, for ever.
    pub async fn until_refused(&self, times: usize) {
        let mut refused = self.function.refused.subscribe();
        let refused = timeout(Duration::from_mins(1), refused.wait_for(|refused| *refused >= times));
        refused.await.expect("attempts find no free execution").expect("the function has the other end");
    }

    /// Who the function is to the AWS side: its calls and faults go by this key.
    #[must_use]
    pub fn access_key_id(&self) -> &str {
        &self.function.account.credentials.access_key_id
    }

    /// The processes that live, oldest first.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        self.function.roll.ids()
    }

    /// The most memory that any living process has had in use at a time, in bytes.
    pub fn peak_memory(&self) -> io::Result<u64> {
        Ok(self.usage()?.iter().map(|usage| usage.peak_memory).max().unwrap_or(0))
    }

    /// What each living process has used so far.
    pub fn usage(&self) -> io::Result<Vec<Usage>> {
        self.process_ids().into_iter().map(Usage::of).collect()
    }

    /// One attempt: in an idle environment if there is one, else after a cold start. None: no execution was free.
    async fn attempt(&self, request_id: &str, payload: &Payload) -> Option<Outcome> {
        let function = &*self.function;
        let Ok(_execution) = function.free.try_acquire() else {
            function.refused.send_modify(|times| *times += 1);
            return None;
        };
        let environment = match self.take_idle() {
            Some(environment) => Ok(environment),
            None => Environment::start(function, request_id).await,
        };
        let mut environment = match environment {
            Ok(environment) => environment,
            Err(failed) => return Some(failed.outcome(request_id)),
        };
        let outcome = environment.invoke(function, request_id, payload.0.clone()).await;
        if environment.is_alive() {
            environment.rest(function.options.freeze);
            self.idle().push(environment);
        }
        Some(outcome)
    }

    /// The idle environment that was used last. One whose process has ended is not handed out.
    fn take_idle(&self) -> Option<Environment> {
        let mut idle = self.idle();
        while let Some(mut environment) = idle.pop() {
            if environment.is_alive() {
                return Some(environment);
            }
        }
        None
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Environment>> {
        self.function.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Function {
    fn arn(&self) -> String {
        let (region, account) = (&self.account.region, &self.account.id);
        format!("arn:aws:lambda:{region}:{account}:function:{}", self.options.function_name)
    }
}

/// Random enough for ids: the standard library seeds its hash maps from the system.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(())
}

/// A version 4 UUID, as Lambda's request ids are.
pub(crate) fn random_uuid() -> String {
    let (high, low) = (random(), random());
    let digits = format!("{:016x}{:016x}", high & !0xf000 | 0x4000, low >> 2 | 1 << 63);
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}
