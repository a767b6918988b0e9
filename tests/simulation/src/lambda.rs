//! Lambda: delivers events at least once, retries failures, kills attempts.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use spillway_notice::continued::KEY;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::dice::Dice;
use crate::event::Effects;
use crate::fact::Fact;
use crate::plan::Plan;

pub(crate) const ACCOUNT: &str = "123456789012";
/// Delays of Lambda's retries.
const RETRIES_AFTER_S: [u64; 2] = [60, 120];

/// Number of an attempt at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AttemptId(pub(crate) usize);

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) event: Value,
    pub(crate) instance: Option<String>,
    /// Begin, by the function's clock.
    pub(crate) began: Timestamp,
    pub(crate) is_killed: bool,
    pub(crate) requests: u32,
    kill: Arc<Notify>,
}

/// An event in Lambda's queue.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) event: Value,
    pub(crate) request: String,
    retries: usize,
}

#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) id: AttemptId,
    pub(crate) delivery: Delivery,
    /// Begin, by the function's clock.
    pub(crate) began: Timestamp,
    pub(crate) timeout: Duration,
    pub(crate) kill: Arc<Notify>,
}

/// End of an attempt.
#[derive(Debug)]
pub(crate) enum Ending {
    Succeeded(String),
    Failed(String),
    Killed,
    TimedOut,
    Panicked(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded(ending) => write!(f, "ends: {ending}"),
            Self::Failed(why) => write!(f, "fails: {why}"),
            Self::Killed => f.write_str("is killed"),
            Self::TimedOut => f.write_str("times out"),
            Self::Panicked(how) => write!(f, "panics: {how}"),
        }
    }
}

#[derive(Debug)]
pub(crate) enum LambdaEvent {
    Sent { event: Value, after: Duration },
    Arrives(Value),
    Retries(Delivery),
}

#[derive(Debug)]
pub(crate) struct Lambda {
    plan: Arc<Plan>,
    clock: Clock,
    dice: Dice,
    effects: Effects,
    attempts: Vec<Attempt>,
    deliveries: usize,
    at_work: usize,
    /// Events without another retry.
    failed: Vec<Value>,
}

impl Lambda {
    pub(crate) fn of(plan: Arc<Plan>, clock: Clock, seed: u64) -> Self {
        Self {
            plan,
            clock,
            dice: Dice::of(seed, "lambda"),
            effects: Effects::default(),
            attempts: Vec::new(),
            deliveries: 0,
            at_work: 0,
            failed: Vec::new(),
        }
    }

    pub(crate) fn handle(&mut self, event: LambdaEvent) -> Effects {
        match event {
            LambdaEvent::Sent { event, after } => {
                if self.dice.perhaps(self.plan.duplicates) {
                    let later = self.dice.ms(0..90_000);
                    self.effects.after(after + later, LambdaEvent::Arrives(event.clone()));
                }
                self.effects.after(after, LambdaEvent::Arrives(event));
            }
            LambdaEvent::Arrives(event) => self.deliver(event),
            LambdaEvent::Retries(delivery) => self.begin(delivery),
        }
        mem::take(&mut self.effects)
    }

    fn deliver(&mut self, event: Value) {
        self.deliveries += 1;
        let request = format!("request-{}", self.deliveries);
        self.begin(Delivery { event, request, retries: 0 });
    }

    fn begin(&mut self, delivery: Delivery) {
        let id = AttemptId(self.attempts.len());
        let (event, request) = (delivery.event.clone(), delivery.request.clone());
        let began = self.clock.now() + SignedDuration::from_millis(self.dice.around(self.plan.skew_ms));
        let (instance, kill) = (instance_of(&event).map(str::to_owned), Arc::new(Notify::new()));
        self.effects.fact(Fact::AttemptBegan { id, request, event: event.clone() });
        self.effects.begin(Begun { id, delivery, began, timeout: self.plan.invocation, kill: Arc::clone(&kill) });
        self.attempts.push(Attempt { event, instance, began, is_killed: false, requests: 0, kill });
        self.at_work += 1;
    }

    /// Ends an attempt, and retries its event.
    pub(crate) fn ended(&mut self, id: AttemptId, delivery: Delivery, ending: Ending) -> Effects {
        self.at_work -= 1;
        let is_done = matches!(ending, Ending::Succeeded(_));
        self.effects.fact(Fact::AttemptEnded { id, ending });
        match RETRIES_AFTER_S.get(delivery.retries) {
            _ if is_done => {}
            Some(seconds) => {
                let delivery = Delivery { retries: delivery.retries + 1, ..delivery };
                self.effects.after(Duration::from_secs(*seconds), LambdaEvent::Retries(delivery));
            }
            None => {
                self.effects.fact(Fact::GivenUp { request: delivery.request });
                self.failed.push(delivery.event);
            }
        }
        mem::take(&mut self.effects)
    }

    /// Counts a request of an attempt. Returns `true` if the attempt was killed.
    pub(crate) fn made_request(&mut self, id: AttemptId) -> bool {
        let attempt = &mut self.attempts[id.0];
        attempt.requests += 1;
        let requests = attempt.requests;
        if self.plan.kills.iter().any(|kill| kill.attempt as usize == id.0 && kill.after_requests == requests) {
            attempt.is_killed = true;
            attempt.kill.notify_one();
        }
        attempt.is_killed
    }

    pub(crate) fn is_at_work(&self) -> bool {
        self.at_work > 0
    }

    pub(crate) fn attempt(&self, id: AttemptId) -> &Attempt {
        &self.attempts[id.0]
    }

    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Returns the attempts at events about an instance.
    pub(crate) fn about<'a>(&'a self, instance: &'a str) -> impl Iterator<Item = &'a Attempt> {
        self.attempts.iter().filter(move |attempt| attempt.instance.as_deref() == Some(instance))
    }

    /// Returns `true` if an event has no retry left.
    pub(crate) fn has_given_up(&self, event: &Value) -> bool {
        self.failed.contains(event)
    }

    /// Returns `true` if an event about an instance has no retry left.
    pub(crate) fn has_failed(&self, instance: &str) -> bool {
        self.failed.iter().any(|event| instance_of(event) == Some(instance))
    }
}

impl Attempt {
    /// Returns the notice of its event or continuation.
    pub(crate) fn notice(&self) -> &Value {
        self.event.get(KEY).map_or(&self.event, |continued| &continued["notice"])
    }

    /// Returns `true` if its event is not a continuation.
    pub(crate) fn is_first(&self) -> bool {
        self.event.get(KEY).is_none()
    }
}

/// Instance of an event.
fn instance_of(event: &Value) -> Option<&str> {
    if let Some(own) = [KEY, "spillway-undo-check"].into_iter().find_map(|key| event.get(key)) {
        return own["instance"].as_str().or_else(|| instance_of(&own["notice"]));
    }
    let detail = &event["detail"];
    let named = [&detail["instance"], &detail["instance-id"], &detail["EC2InstanceId"]];
    let entity = || detail["affectedEntities"][0]["entityValue"].as_str()?.rsplit('/').next();
    named.into_iter().find_map(Value::as_str).or_else(entity)
}
