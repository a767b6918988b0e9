//! Lambda, as the function sees it: a built binary behind the Runtime API.
//!
//! # Layout
//! * this file: the API for tests, and the choice of an execution environment;
//! * `environment`: one process through its init and one invocation at a time;
//! * `runtime_api`: the HTTP server that the process polls;
//! * `process`: start, freeze, thaw, kill, and the lines that the process writes;
//! * `queue`: the asynchronous invocation with its retries;
//! * `outcome`: results of invocations.
//!
//! Like Lambda, it starts a process when an invocation finds none idle, keeps the process for the next invocation, and starts
//! a second one for an invocation that comes while the first is busy.

mod environment;
mod outcome;
mod process;
mod queue;
mod runtime_api;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use crate::aws::{Credentials, FunctionLimits};
use crate::error::BedError;
use crate::layout::{ACCOUNT, REGION};
use crate::usage::Usage;
use crate::world::World;

use environment::Environment;
pub use outcome::{InvocationError, Outcome};
use process::LiveProcesses;
pub use queue::Delivery;

const ROLE: &str = "spillway-drain";
/// Concurrent executions of an account by default.
const ACCOUNT_CONCURRENCY: usize = 1_000;
/// Defaults of an `EventInvokeConfig`.
const RETRIES: usize = 2;
const MAXIMUM_AGE: Duration = Duration::from_hours(6);

/// Options of a function. An absent limit is the template's.
#[derive(Debug, Clone)]
pub struct LambdaOptions {
    pub binary: PathBuf,
    /// The function's own variables. They win over Lambda's.
    pub env: BTreeMap<String, String>,
    pub function_name: String,
    pub timeout: Duration,
    pub reserved_concurrency: Option<usize>,
    /// Part of the queue's waits that really passes. 1 is as in Lambda; 0 would lose the order of events that wait.
    pub wait_factor: f64,
}

impl Default for LambdaOptions {
    fn default() -> Self {
        Self {
            binary: built("SPILLWAY_DRAIN", "spillway-drain"),
            env: BTreeMap::new(),
            function_name: "spillway-drain".to_owned(),
            timeout: Duration::from_mins(15),
            reserved_concurrency: None,
            wait_factor: 0.001,
        }
    }
}

/// Returns the function that a variable names, else its dev build in the target folder of this program.
pub(crate) fn built(variable: &str, name: &str) -> PathBuf {
    if let Some(named) = std::env::var_os(variable) {
        return named.into();
    }
    // A test is target/debug/deps/name-hash, a program target/debug/name.
    let own = std::env::current_exe().unwrap_or_default();
    let debug = own.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    debug.unwrap_or(&own).join(name)
}

/// AWS account of a function.
#[derive(Debug, Clone)]
struct Account {
    /// `AWS_ENDPOINT_URL` of the function.
    endpoint: String,
    region: String,
    id: String,
    /// Credentials of the function's role.
    credentials: Credentials,
}

/// A function. Its processes end with the last clone.
#[derive(Debug, Clone)]
pub struct Lambda {
    function: Arc<Function>,
}

#[derive(Debug)]
struct Function {
    account: Account,
    options: LambdaOptions,
    idle: Mutex<Vec<Environment>>,
    live: LiveProcesses,
    /// Has busy environments kill their processes.
    kill: watch::Sender<()>,
    retries: usize,
    maximum_age: Duration,
    /// Free executions.
    free: Semaphore,
}

impl Lambda {
    /// The function in a world, with the template's variables. The session of its credentials is the function's name.
    pub async fn start(world: &World, mut options: LambdaOptions) -> Result<Self, BedError> {
        let mut variables = world.aws_side().variables().await?;
        variables.append(&mut options.env);
        options.env = variables;
        Self::in_role(world, ROLE, options).await
    }

    pub(crate) async fn in_role(world: &World, role: &str, options: LambdaOptions) -> Result<Self, BedError> {
        let aws = world.aws_side();
        let credentials = aws.credentials_of_function(role, &options.function_name, &options.env).await?;
        let limits = aws.limits_of_function(role).await?;
        let (endpoint, region, id) = (world.aws.clone(), world.region.clone(), world.account.clone());
        Ok(Self::limited(Account { endpoint, region, id, credentials }, options, limits))
    }

    /// A function without an AWS side, for [`Lambda::initialize`].
    pub fn without_aws(options: LambdaOptions) -> Self {
        let credentials = Credentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "secret".to_owned(),
            session_token: "token".to_owned(),
        };
        let (endpoint, region, id) = ("http://127.0.0.1:9".to_owned(), REGION.to_owned(), ACCOUNT.to_owned());
        Self::limited(Account { endpoint, region, id, credentials }, options, FunctionLimits::default())
    }

    fn limited(account: Account, options: LambdaOptions, limits: FunctionLimits) -> Self {
        let executions = options.reserved_concurrency.or(limits.reserved_concurrency).unwrap_or(ACCOUNT_CONCURRENCY);
        let function = Function {
            idle: Mutex::default(),
            live: LiveProcesses::default(),
            kill: watch::Sender::default(),
            retries: limits.maximum_retry_attempts.unwrap_or(RETRIES),
            maximum_age: limits.maximum_event_age_s.map_or(MAXIMUM_AGE, Duration::from_secs),
            free: Semaphore::new(executions),
            account,
            options,
        };
        Self { function: Arc::new(function) }
    }

    /// Invokes with a text, JSON or anything else, until the process polls for the next event.
    pub async fn invoke(&self, payload: impl Display) -> Outcome {
        let (request_id, payload) = (random_uuid(), payload.to_string());
        let ran = self.attempt(&request_id, &payload).await;
        ran.unwrap_or_else(|| Outcome::refused(request_id))
    }

    /// An event through the asynchronous queue, with all its attempts.
    pub async fn invoke_async(&self, payload: impl Display) -> Result<Delivery, BedError> {
        let payload = payload.to_string();
        queue::deliver(self, &payload).await
    }

    /// Starts a process and lets it wait for an event, as provisioned concurrency would. Returns the time to its first poll.
    pub async fn initialize(&self) -> Result<Duration, InvocationError> {
        let started = Environment::start(&self.function, &random_uuid()).await;
        let mut environment = started.map_err(|failed| failed.result.expect_err("a failed start is an error"))?;
        let init = environment.init;
        environment.freeze();
        self.idle().push(environment);
        Ok(init)
    }

    /// Ends the idle processes, so that the next invocation is a cold start.
    pub fn recycle(&self) {
        self.idle().clear();
    }

    /// Kills the processes that serve an invocation. Their invocations fail as Lambda words it; the queue's are retried.
    pub fn kill(&self) {
        self.function.kill.send_replace(());
    }

    /// Key by which the AWS side knows the function's calls and faults.
    pub fn access_key_id(&self) -> &str {
        &self.function.account.credentials.access_key_id
    }

    /// Live processes, the oldest first.
    pub fn process_ids(&self) -> Vec<u32> {
        self.function.live.ids()
    }

    /// Largest peak memory of the live processes, in bytes.
    pub fn peak_memory(&self) -> io::Result<u64> {
        Ok(self.usage()?.iter().map(|usage| usage.peak_memory).max().unwrap_or(0))
    }

    /// Usage of each live process.
    pub fn usage(&self) -> io::Result<Vec<Usage>> {
        self.process_ids().into_iter().map(Usage::of).collect()
    }

    /// Attempts an event in an idle environment, or after a cold start. `None`: no execution was free.
    async fn attempt(&self, request_id: &str, payload: &str) -> Option<Outcome> {
        let function = &*self.function;
        let _execution = function.free.try_acquire().ok()?;
        let mut environment = match self.take_idle() {
            Some(environment) => environment,
            None => match Environment::start(function, request_id).await {
                Ok(environment) => environment,
                Err(failed) => return Some(*failed),
            },
        };
        let outcome = environment.invoke(function, request_id, payload.to_owned()).await;
        if environment.is_alive() {
            environment.freeze();
            self.idle().push(environment);
        }
        Some(outcome)
    }

    /// The live idle environment that was used last.
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
