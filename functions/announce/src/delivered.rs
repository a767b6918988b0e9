//! Remembers the events that a sink (webhook or SNS topic) has delivered.
//!
//! If one sink fails, SQS sends the event again. Sinks that have delivered the event ignore the repetition.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spillway_receipt::{Ending, Receipt};

use crate::event::{Event, Phase};
use crate::nodes::Node;

/// Maximum number of remembered events. Older events are forgotten.
const MOST: usize = 5_000;

/// Delivered events, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Delivered(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    id: String,
    request_id: String,
    event_id: Option<String>,
    instance: Option<String>,
    /// Result of the drain. `None` before the drain has ended.
    ending: Option<Ending>,
    /// Names of the lost pods.
    lost: Vec<String>,
}

impl Delivered {
    pub(crate) fn record(&self, event: &Event) {
        let mut entries = self.entries();
        entries.push_back(Entry::of(event));
        if entries.len() > MOST {
            entries.pop_front();
        }
    }

    pub(crate) fn has(&self, event: &Event) -> bool {
        self.entries().iter().any(|entry| entry.id == event.id)
    }

    /// Returns `true` if a delivered event makes this event obsolete. For example, `Ended` makes `Begun` obsolete.
    pub(crate) fn supersedes(&self, event: &Event) -> bool {
        match (event.phase, event.receipt.ending) {
            (Phase::Begun | Phase::Blocked | Phase::Unblocked, _) => self.has_end_of(event),
            (Phase::Ended, Some(Ending::Failed)) => self.supersedes_failure(event),
            (Phase::Ended, _) => false,
        }
    }

    fn has_end_of(&self, begun: &Event) -> bool {
        let Receipt { instance, notice, .. } = &begun.receipt;
        let is_end =
            |entry: &Entry| entry.ending.is_some() && entry.instance == *instance && entry.event_id == notice.event_id;
        self.entries().iter().any(is_end)
    }

    /// Returns `true` if the failure needs no message: a repeated invocation succeeded, or all lost pods have been reported.
    fn supersedes_failure(&self, failure: &Event) -> bool {
        let receipt = &failure.receipt;
        let entries = self.entries();
        // Lambda's retries share the request id.
        let attempts = entries.iter().filter(|entry| entry.request_id == receipt.request_id);
        let attempts: Vec<_> = attempts.filter_map(|entry| entry.ending).collect();
        let of_node = || entries.iter().filter(|entry| entry.instance == receipt.instance);
        let lost = Node::of(failure).lost();
        let all_known = lost.iter().all(|pod| of_node().any(|entry| entry.lost.contains(&pod.pod)));
        let has_success = attempts.iter().any(|ending| *ending != Ending::Failed);
        has_success || (all_known && !(attempts.is_empty() && lost.is_empty()))
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn of(event: &Event) -> Self {
        let Event { id, receipt, .. } = event;
        Self {
            id: id.clone(),
            request_id: receipt.request_id.clone(),
            event_id: receipt.notice.event_id.clone(),
            instance: receipt.instance.clone(),
            ending: receipt.ending,
            lost: Node::of(event).lost().iter().map(|pod| pod.pod.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{begun, blocked, ended, unblocked};

    #[test]
    fn only_the_end_of_the_same_drain_supersedes_its_beginning() {
        let after = |event: Event| {
            let delivered = Delivered::default();
            delivered.record(&event);
            delivered.supersedes(&begun(1))
        };
        let mut another_notice = ended(1, "drained");
        another_notice.receipt.notice.event_id = Some("e-2".to_owned());
        let mut another_instance = ended(1, "drained");
        another_instance.receipt.instance = Some("i-2".to_owned());
        assert!(after(ended(1, "drained")));
        assert!(!after(another_notice));
        assert!(!after(another_instance));
        assert!(!after(begun(1)));
        let delivered = Delivered::default();
        assert!(!delivered.supersedes(&blocked(1)));
        delivered.record(&ended(1, "drained"));
        assert!(delivered.supersedes(&blocked(1)) && delivered.supersedes(&unblocked(1)));
    }

    #[test]
    fn oldest_entry_is_dropped_at_the_limit() {
        let delivered = Delivered::default();
        for n in 0..=MOST {
            delivered.record(&begun(n));
        }
        assert!(!delivered.has(&begun(0)));
        assert!(delivered.has(&begun(1)) && delivered.has(&begun(MOST)));
        assert!(!delivered.has(&begun(MOST + 1)));
    }
}
