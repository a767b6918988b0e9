//! Lambda, and what brings events to it: at least once, again after a failure, and killed in the midst of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use spillway_drainer::doubles::{Function, REGION, TestInvocation};
use spillway_notice::Home;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use crate::world::{Shared, World};

pub(crate) const ACCOUNT: &str = "123456789012";
/// Lambda tries an event again after so many seconds.
const RETRIES_AFTER_S: [u64; 2] = [60, 120];

tokio::task_local! {
    static CURRENT: AttemptId;
}

/// One attempt at an event: which of the world's it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AttemptId(pub(crate) usize);

impl AttemptId {
    /// The attempt that is at work.
    pub(crate) fn current() -> Self {
        CURRENT.get()
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// An attempt, and what it did.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) event: Value,
    pub(crate) instance: Option<String>,
    /// When it began, by the function's clock.
    pub(crate) began: Timestamp,
    pub(crate) requests: u32,
    pub(crate) is_killed: bool,
    is_over: bool,
    /// What it wrote in its log in the end.
    pub(crate) receipt: Option<Value>,
    kill: Arc<Notify>,
}

/// All attempts.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    pub(crate) all: Vec<Attempt>,
    deliveries: usize,
    pub(crate) queue: Option<mpsc::UnboundedSender<Value>>,
    /// The events that were tried for the last time.
    pub(crate) failed: Vec<Value>,
}

impl World {
    /// An event comes to the function after a time; some come twice.
    pub(crate) fn deliver(&mut self, event: &Value, after: Duration) {
        let twice = self.perhaps(self.plan.duplicates);
        let copies = [Some(Duration::ZERO), twice.then(|| self.ms(0..90_000))];
        for later in copies.into_iter().flatten() {
            self.busy += 1;
            let event = event.clone();
            self.later(after + later, move |world| {
                let queue = world.attempts.queue.as_ref().expect("there is one as long as the world");
                queue.send(event).expect("it is read as long as the world");
            });
        }
    }

    /// The function has written a line to its log.
    pub(crate) fn logged(&mut self, line: &str) {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        if line.get("receipt").is_none() {
            return;
        }
        let attempt = AttemptId::current();
        self.note(|| format!("  {attempt} writes {line}"));
        self.witness_receipt(attempt, &line);
        self.attempts.all[attempt.0].receipt = Some(line);
    }

    /// Counts a request of an attempt; says whether that was its last one.
    pub(crate) fn made_request(&mut self, id: AttemptId) -> bool {
        let attempt = &mut self.attempts.all[id.0];
        attempt.requests += 1;
        let requests = attempt.requests;
        let is_last = |kill: &crate::draw::Kill| kill.attempt as usize == id.0 && kill.after_requests == requests;
        if self.plan.kills.iter().any(is_last) {
            attempt.is_killed = true;
            attempt.kill.notify_one();
        }
        attempt.is_killed
    }

    pub(crate) fn begin_attempt(&mut self, event: &Value, request: &str) -> (AttemptId, TestInvocation, Arc<Notify>) {
        let id = AttemptId(self.attempts.all.len());
        let kill = Arc::new(Notify::new());
        let event = event.clone();
        let skew = SignedDuration::from_millis(self.rng.i64(-self.plan.skew_ms..=self.plan.skew_ms));
        let now = self.now() + skew;
        let invocation = TestInvocation {
            request_id: request.to_owned(),
            home: Home { account: ACCOUNT.to_owned(), region: REGION.to_owned() },
            began: now,
            lasts: SignedDuration::try_from(self.plan.invocation).unwrap_or_default(),
        };
        self.note(|| format!("{id} begins, {request}: {event}"));
        let instance = instance_of(&event).map(str::to_owned);
        self.attempts.all.push(Attempt {
            event,
            instance,
            began: now,
            requests: 0,
            is_killed: false,
            is_over: false,
            receipt: None,
            kill: Arc::clone(&kill),
        });
        (id, invocation, kill)
    }
}

/// The instance that an event is about, if it is one.
pub(crate) fn instance_of(event: &Value) -> Option<&str> {
    if let Some(own) = ["spillway-continuation", "spillway-undo-check"].into_iter().find_map(|key| event.get(key)) {
        return own["instance"].as_str().or_else(|| instance_of(&own["notice"]));
    }
    let detail = &event["detail"];
    let named = [&detail["instance"], &detail["instance-id"], &detail["EC2InstanceId"]];
    let entity = || detail["affectedEntities"][0]["entityValue"].as_str()?.rsplit('/').next();
    named.into_iter().find_map(Value::as_str).or_else(entity)
}

/// Has the function work on an event until it succeeds, or has been tried often enough.
pub(crate) async fn work(world: Shared, function: Arc<Function>, event: Value) {
    let request = {
        let mut world = world.lock();
        world.attempts.deliveries += 1;
        format!("request-{}", world.attempts.deliveries)
    };
    let _busy = Busy(world.clone());
    let mut pauses = RETRIES_AFTER_S.into_iter();
    while !attempt(&world, &function, &event, &request).await {
        if let Some(pause) = pauses.next() {
            sleep(Duration::from_secs(pause)).await;
            continue;
        }
        let mut world = world.lock();
        world.note(|| format!("{request} is given up"));
        world.attempts.failed.push(event);
        break;
    }
}

/// Keeps the world busy, also if the work ends with a panic.
struct Busy(Shared);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut world = self.0.lock();
        world.busy = world.busy.saturating_sub(1);
    }
}

/// One attempt; whether it succeeded.
async fn attempt(world: &Shared, function: &Function, event: &Value, request: &str) -> bool {
    let (id, invocation, kill) = world.lock().begin_attempt(event, request);
    let longest = world.lock().plan.invocation;
    let handled = CURRENT.scope(id, function.handle(event.clone(), invocation));
    let ended = tokio::select! {
        biased;
        () = kill.notified() => None,
        handled = timeout(longest, handled) => Some(handled),
    };
    let mut world = world.lock();
    world.attempts.all[id.0].is_over = true;
    match ended {
        None => {
            world.note(|| format!("{id} is killed"));
            false
        }
        Some(Err(_)) => {
            world.note(|| format!("{id} is cut off by Lambda"));
            world.witness_cut_off(id);
            false
        }
        Some(Ok(Ok(receipt))) => {
            world.note(|| format!("{id} ends: {:?}", receipt.ending));
            world.witness_end(id);
            true
        }
        Some(Ok(Err(failure))) => {
            world.note(|| format!("{id} fails: {failure}"));
            world.witness_end(id);
            false
        }
    }
}
