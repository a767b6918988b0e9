//! Which requests go wrong, and how.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderValue;
use tokio::sync::{Notify, Semaphore};

use super::answers::Answer;

/// How a request goes wrong.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Not passed on: this is answered instead.
    Answer(Answer),
    /// The answer breaks off in the middle of its first piece.
    CutShort,
    /// The answer is a success, and a page for a person.
    NotData,
    /// Not passed on: the stream is reset; over HTTP/1 the connection ends.
    Reset,
    /// Not passed on and never answered, while the connection lives.
    Silence,
    /// Passed on this much later.
    Slow(Duration),
    /// Passed on, and the client is told to use another connection from now on.
    GoAway,
    /// Refused with 401, and so is every later request with the same token.
    TokenExpires,
    /// Stands still until released.
    Hold(Side, Held),
}

/// On which side of the server's work a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The server has not seen the request.
    Before,
    /// The server has answered, and the client has not seen it.
    After,
    /// The server never sees the request: released, it is reset.
    Instead,
}

/// Requests that stand still, as the test sees them.
#[derive(Debug, Clone)]
pub struct Held {
    reached: Arc<Notify>,
    /// Closed when they may go on: nobody is ever let in one by one.
    gate: Arc<Semaphore>,
}

impl Default for Held {
    fn default() -> Self {
        Self { reached: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }
}

impl Held {
    /// Waits until one stands. It panics when none does within a minute: a test would say nothing, for ever.
    pub async fn reached(&self) {
        let reached = tokio::time::timeout(Duration::from_mins(1), self.reached.notified());
        reached.await.expect("a request stands within a minute");
    }

    /// Lets them go on, and those that come later do not stand.
    pub fn release(&self) {
        self.gate.close();
    }

    pub(super) async fn stand(&self) {
        self.reached.notify_one();
        // An error: the gate is open.
        let _ = self.gate.acquire().await;
    }
}

/// Which of the requests that a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// One, counted from 1.
    Nth(usize),
    All,
    /// All that come within this time of the first.
    For(Duration),
}

/// A fault, and the requests that it strikes.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What the request asks for, such as `create pods/eviction`; any request when absent.
    pub call: Option<String>,
    pub which: Which,
    pub fault: Fault,
}

impl Rule {
    #[must_use]
    pub fn new(call: &str, which: Which, fault: Fault) -> Self {
        Self { call: Some(call.to_owned()), which, fault }
    }

    /// For every request, whatever it asks for.
    #[must_use]
    pub fn any(which: Which, fault: Fault) -> Self {
        Self { call: None, which, fault }
    }
}

/// The rules of one or more gateways, and what has come through.
#[derive(Debug, Clone, Default)]
pub struct Rules(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    rules: Vec<Kept>,
    calls: Vec<String>,
    struck: usize,
    expired_tokens: Vec<HeaderValue>,
}

#[derive(Debug)]
struct Kept {
    rule: Rule,
    /// Requests so far that the rule is for.
    met: usize,
    first_met: Option<Instant>,
}

impl Rules {
    /// Of several rules for a request the one that was added first strikes.
    pub fn add(&self, rule: Rule) {
        self.book().rules.push(Kept { rule, met: 0, first_met: None });
    }

    /// Everything passes again.
    pub fn clear(&self) {
        self.book().rules.clear();
    }

    /// What has been asked for so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.book().calls.clone()
    }

    /// How many requests have gone wrong so far.
    #[must_use]
    pub fn struck(&self) -> usize {
        self.book().struck
    }

    /// Counts a request, and tells how it goes wrong.
    pub(super) fn strike(&self, call: String, token: Option<&HeaderValue>) -> Option<Fault> {
        let mut book = self.book();
        let now = Instant::now();
        let mut fault = None;
        for kept in &mut book.rules {
            if kept.meets(&call, now) && fault.is_none() {
                fault = Some(kept.rule.fault.clone());
            }
        }
        if fault.is_none() && token.is_some_and(|token| book.expired_tokens.contains(token)) {
            fault = Some(Fault::TokenExpires);
        } else if let (Some(Fault::TokenExpires), Some(token)) = (&fault, token) {
            book.expired_tokens.push(token.clone());
        }
        book.calls.push(call);
        book.struck += usize::from(fault.is_some());
        fault
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn meets(&mut self, call: &str, now: Instant) -> bool {
        if self.rule.call.as_deref().is_some_and(|wanted| wanted != call) {
            return false;
        }
        self.met += 1;
        let first = *self.first_met.get_or_insert(now);
        match self.rule.which {
            Which::Nth(number) => self.met == number,
            Which::All => true,
            Which::For(time) => now - first <= time,
        }
    }
}
