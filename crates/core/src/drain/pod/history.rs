//! Records the requests to evict or delete a pod, and their answers. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::drain::answer::Answer;
use crate::drain::deadline::Grace;
use crate::drain::request::Method;

/// Requests to evict or delete a pod, and the API server's answers. They determine the next request, and are shown in the
/// receipt.
#[derive(Debug, Clone)]
pub struct PodHistory {
    /// Time at which the drain first observed the pod.
    first_seen_at: Instant,
    requests: Option<RequestsMade>,
    /// The API server refused the last request.
    is_refused: bool,
    /// Number of answers by [`Answer::name`].
    pub answers: BTreeMap<&'static str, u32>,
    /// Time at which the API server first accepted a request.
    pub accepted_at: Option<Instant>,
    /// Shortest `deletionGracePeriodSeconds` that was observed in the pod's metadata.
    pub least_given: Option<Duration>,
    /// Client whose request made the pod leave, if known.
    pub left_by: Option<RequestedBy>,
}

#[derive(Debug, Clone, Copy)]
struct RequestsMade {
    first_at: Instant,
    evictions: u32,
    last: LastRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRequest {
    pub at: Instant,
    pub method: Method,
    pub grace: Grace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedBy {
    ThisDrain,
    /// A person or another drain of the node sent the request.
    Another,
}

impl PodHistory {
    /// Creates a history of a pod that is observed for the first time at `now`.
    pub fn since(now: Instant) -> Self {
        Self {
            first_seen_at: now,
            requests: None,
            is_refused: false,
            answers: BTreeMap::new(),
            accepted_at: None,
            least_given: None,
            left_by: None,
        }
    }

    pub fn last_request(&self) -> Option<LastRequest> {
        self.requests.map(|requests| requests.last)
    }

    pub fn last_method(&self) -> Option<Method> {
        self.last_request().map(|last| last.method)
    }

    /// Returns `true` if the last request was a deletion.
    pub fn is_forced(&self) -> bool {
        self.last_method().is_some_and(Method::is_forced)
    }

    pub fn is_deletion_refused(&self) -> bool {
        self.is_refused && self.is_forced()
    }

    /// Returns `false` if there are answers, and none is an acceptance or lost (`no-answer`).
    pub fn may_be_accepted(&self) -> bool {
        self.accepted_at.is_some() || self.answers.is_empty() || self.answers.contains_key("no-answer")
    }

    pub fn requested_at(&self) -> Option<Instant> {
        self.requests.map(|requests| requests.first_at)
    }

    /// Returns the time of the last request, or of the pod's first observation if no request was sent.
    pub fn last_requested_at(&self) -> Instant {
        self.last_request().map_or(self.first_seen_at, |last| last.at)
    }

    pub fn evictions(&self) -> u32 {
        self.requests.map_or(0, |requests| requests.evictions)
    }

    /// Counts the answer to the last request. Returns the number of answers with the same [`Answer::name`].
    pub fn count(&mut self, answer: &Answer) -> u32 {
        self.is_refused = answer.is_refusal();
        let count = self.answers.entry(answer.name(self.last_method().unwrap_or(Method::Evict))).or_default();
        *count += 1;
        *count
    }

    pub fn request(&mut self, last: LastRequest) {
        let requests = self.requests.get_or_insert(RequestsMade { first_at: last.at, evictions: 0, last });
        requests.evictions += u32::from(last.method != Method::Delete);
        requests.last = last;
    }
}
