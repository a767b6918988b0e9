//! What has been done with a pod: the requests that it leave, and what they were answered. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::drain::answer::Answer;
use crate::drain::deadline::Grace;
use crate::drain::request::Method;

/// What has been done with a pod, for pacing and for the receipt.
#[derive(Debug, Clone)]
pub struct PodHistory {
    /// When the drain first saw it.
    seen_at: Instant,
    requests: Option<RequestsMade>,
    /// Refusal of the last request by the API server.
    is_refused: bool,
    /// How often each answer was given.
    pub answers: BTreeMap<&'static str, u32>,
    /// When a request that it leave was accepted.
    pub accepted_at: Option<Instant>,
    /// The least grace that the API server said it was given, by whomever.
    pub least_given: Option<Duration>,
    /// Whose request it followed when it left, if that is known.
    pub followed: Option<RequestedBy>,
}

/// The requests that a pod leave.
#[derive(Debug, Clone, Copy)]
struct RequestsMade {
    first_at: Instant,
    evictions: u32,
    last: LastRequest,
}

/// The last request that a pod leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRequest {
    pub at: Instant,
    pub method: Method,
    pub grace: Grace,
}

/// Whose request made a pod leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedBy {
    /// This drain's.
    ThisDrain,
    /// That of another notice's drain of the node, or a person's.
    Another,
}

impl PodHistory {
    /// Of a pod that is seen for the first time.
    pub fn since(now: Instant) -> Self {
        Self {
            seen_at: now,
            requests: None,
            is_refused: false,
            answers: BTreeMap::new(),
            accepted_at: None,
            least_given: None,
            followed: None,
        }
    }

    /// The last request that it leave.
    pub fn last_request(&self) -> Option<LastRequest> {
        self.requests.map(|requests| requests.last)
    }

    /// How it was last requested to leave, if it was.
    pub fn last_method(&self) -> Option<Method> {
        self.last_request().map(|last| last.method)
    }

    /// Whether it was last requested to leave in spite of what blocks it.
    pub fn is_forced(&self) -> bool {
        self.last_method().is_some_and(Method::is_forced)
    }

    /// Returns `true` if it was last requested to leave by a deletion, and the API server refused that.
    pub fn is_deletion_refused(&self) -> bool {
        self.is_refused && self.is_forced()
    }

    /// Whether a request that it leave was accepted, or may have been: it is under way, or was not answered.
    pub fn may_be_accepted(&self) -> bool {
        self.accepted_at.is_some() || self.answers.is_empty() || self.answers.contains_key("no-answer")
    }

    /// When it was first requested to leave.
    pub fn requested_at(&self) -> Option<Instant> {
        self.requests.map(|requests| requests.first_at)
    }

    /// When it was last requested to leave; when it was first seen, before that.
    pub fn last_requested_at(&self) -> Instant {
        self.last_request().map_or(self.seen_at, |last| last.at)
    }

    /// How many evictions were requested.
    pub fn evictions(&self) -> u32 {
        self.requests.map_or(0, |requests| requests.evictions)
    }

    /// Counts an answer to the last request; returns how often it has been given by now.
    pub fn count(&mut self, answer: &Answer) -> u32 {
        self.is_refused = answer.is_refusal();
        let count = self.answers.entry(answer.name(self.last_method().unwrap_or(Method::Evict))).or_default();
        *count += 1;
        *count
    }

    /// Notes a request.
    pub fn request(&mut self, last: LastRequest) {
        let requests = self.requests.get_or_insert(RequestsMade { first_at: last.at, evictions: 0, last });
        requests.evictions += u32::from(last.method != Method::Delete);
        requests.last = last;
    }
}
