//! Rules: faults and the requests that they strike.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::{Notify, Semaphore};

use super::answers::Answer;

/// A fault of a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers in place of the server.
    Answer(Answer),
    /// Breaks off the server's answer in the middle of its first piece.
    CutShort,
    /// Answers with success and a page of HTML.
    NotData,
    /// Resets the stream, unseen by the server; over HTTP/1 the connection ends.
    Reset,
    /// Never answers, unseen by the server, while the connection lives.
    Silence,
    /// Passes the request on this much later.
    Slow(Duration),
    /// Passes the request on, and sends GOAWAY.
    GoAway,
    /// Refuses this and every later request with the same token with 401.
    TokenExpires,
    /// Holds the request until released.
    Hold(Side, Held),
}

/// Side of the server's work on which a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before the server receives the request.
    Before,
    /// Before the client receives the answer.
    After,
    /// The server never receives the request: released, its stream is reset.
    Instead,
}

/// Held requests.
#[derive(Debug, Clone)]
pub struct Held {
    reached: Arc<Notify>,
    /// Closed on release.
    gate: Arc<Semaphore>,
}

impl Default for Held {
    fn default() -> Self {
        Self { reached: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }
}

impl Held {
    /// Waits until a request is held. Panics after a minute.
    pub async fn reached(&self) {
        let reached = tokio::time::timeout(Duration::from_mins(1), self.reached.notified());
        reached.await.expect("a request is held within a minute");
    }

    /// Lets the held requests go on; later ones are not held.
    pub fn release(&self) {
        self.gate.close();
    }

    pub(super) async fn stand(&self) {
        self.reached.notify_one();
        // Fails when the gate is open.
        let _ = self.gate.acquire().await;
    }
}

/// Choice among the requests of a rule's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Counted from 1.
    Nth(usize),
    All,
}

/// A fault, and the requests that it strikes.
#[derive(Debug, Clone)]
pub struct Rule {
    call: String,
    which: Which,
    fault: Fault,
    /// Count of the call's requests so far.
    met: usize,
}

impl Rule {
    /// A rule for requests of a name such as `create pods/eviction`.
    pub fn new(call: &str, which: Which, fault: Fault) -> Self {
        Self { call: call.to_owned(), which, fault, met: 0 }
    }

    fn meets(&mut self, call: &str) -> bool {
        if self.call != call {
            return false;
        }
        self.met += 1;
        match self.which {
            Which::Nth(number) => self.met == number,
            Which::All => true,
        }
    }
}

/// Rules of one or more gateways, and the requests so far.
#[derive(Debug, Clone, Default)]
pub struct Rules(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    rules: Vec<Rule>,
    calls: Vec<String>,
    struck: usize,
    expired_tokens: Vec<HeaderValue>,
}

impl Rules {
    /// The first of several rules for a request strikes.
    pub fn add(&self, rule: Rule) {
        self.book().rules.push(rule);
    }

    pub fn clear(&self) {
        self.book().rules.clear();
    }

    /// Names of all requests so far, in order.
    pub fn calls(&self) -> Vec<String> {
        self.book().calls.clone()
    }

    /// Count of requests that a rule struck.
    pub fn struck(&self) -> usize {
        self.book().struck
    }

    /// Counts a request; returns its fault.
    pub(super) fn strike(&self, call: String, token: Option<&HeaderValue>) -> Option<Fault> {
        let mut book = self.book();
        let mut fault = None;
        for rule in &mut book.rules {
            if rule.meets(&call) && fault.is_none() {
                fault = Some(rule.fault.clone());
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
