//! What a sink has had, so that what fails with one is not sent to another again, and old news not told as new.
//!
//! The rule: each sink gets each event **at least once**, or the queue gives up after five receives and keeps it. An
//! event that one sink did not take comes back from the queue, for all. This function remembers what the others took,
//! as long as it is warm; another environment does not know, and sends it to them once more.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spillway_receipt::{Ending, Receipt};

use crate::event::{Event, Phase};
use crate::nodes::Node;

/// Events come back within minutes; so many more than a storm makes are remembered.
const MOST: usize = 5_000;

/// What a sink has had, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Delivered(Mutex<VecDeque<Had>>);

/// What is remembered of an event.
#[derive(Debug)]
struct Had {
    id: String,
    request_id: String,
    event_id: Option<String>,
    instance: Option<String>,
    /// `None`: that the drain has begun.
    ending: Option<Ending>,
    /// The names of the pods that were lost.
    lost: Vec<String>,
}

impl Delivered {
    /// Notes that the sink has had an event.
    pub(crate) fn note(&self, event: &Event) {
        let mut all = self.all();
        all.push_back(Had::of(event));
        if all.len() > MOST {
            all.pop_front();
        }
    }

    /// Whether the sink has had it.
    pub(crate) fn has(&self, event: &Event) -> bool {
        self.all().iter().any(|had| had.id == event.id)
    }

    /// Whether it is no news after what the sink has had.
    pub(crate) fn outdates(&self, event: &Event) -> bool {
        match (event.phase, event.receipt.ending) {
            (Phase::Begun | Phase::Blocked | Phase::Unblocked, _) => self.has_end_of(event),
            (Phase::Ended, Some(Ending::Failed)) => self.has_more_than(event),
            (Phase::Ended, _) => false,
        }
    }

    /// Whether the drain of this beginning has ended, and that was told.
    fn has_end_of(&self, begun: &Event) -> bool {
        let Receipt { instance, notice, .. } = &begun.receipt;
        let is_end = |had: &Had| had.ending.is_some() && had.instance == *instance && had.event_id == notice.event_id;
        self.all().iter().any(is_end)
    }

    /// Whether another attempt at the notice did better, or one failed before it, or another notice about the node, and
    /// this failure has lost no other pods.
    fn has_more_than(&self, failure: &Event) -> bool {
        let receipt = &failure.receipt;
        let all = self.all();
        // Lambda's attempts at one notice share its request id.
        let attempts = all.iter().filter(|had| had.request_id == receipt.request_id).filter_map(|had| had.ending);
        let attempts: Vec<_> = attempts.collect();
        let about_the_node = || all.iter().filter(|had| had.instance == receipt.instance);
        let lost = Node::of(failure).lost();
        let all_known = lost.iter().all(|pod| about_the_node().any(|had| had.lost.contains(&pod.pod)));
        let did_better = attempts.iter().any(|ending| *ending != Ending::Failed);
        did_better || (all_known && !(attempts.is_empty() && lost.is_empty()))
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Had>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Had {
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
    fn a_beginning_is_no_news_only_after_the_end_of_its_own_drain() {
        let after = |had: Event| {
            let delivered = Delivered::default();
            delivered.note(&had);
            delivered.outdates(&begun(1))
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
        assert!(!delivered.outdates(&blocked(1)));
        delivered.note(&ended(1, "drained"));
        assert!(delivered.outdates(&blocked(1)) && delivered.outdates(&unblocked(1)));
    }

    #[test]
    fn the_latest_are_remembered_and_no_more() {
        let delivered = Delivered::default();
        for n in 0..=MOST {
            delivered.note(&begun(n));
        }
        assert!(!delivered.has(&begun(0)));
        assert!(delivered.has(&begun(1)) && delivered.has(&begun(MOST)));
        assert!(!delivered.has(&begun(MOST + 1)));
    }
}
