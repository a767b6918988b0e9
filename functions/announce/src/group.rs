//! Groups the events of an SQS batch into messages: one message for each phase of the drains.

use std::collections::HashSet;

use spillway_receipt::Ending;

use crate::event::{Event, Phase};
use crate::nodes::{Node, nodes};
use crate::receipt::{are_of_one_drain, is_over};

#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) phase: Phase,
    /// Never empty.
    pub(crate) events: Vec<&'a Event>,
    /// Log group of the drain function; empty if unknown.
    pub(crate) log_group: &'a str,
}

impl<'a> Message<'a> {
    pub(crate) fn nodes(&self) -> Vec<Node<'a>> {
        nodes(&self.events)
    }

    /// Splits the message into one message for each event.
    pub(crate) fn singles(&self) -> impl Iterator<Item = Message<'a>> {
        self.events.iter().map(|event| Message { events: vec![*event], ..*self })
    }
}

/// Returns at most one message for each phase, in the order of the phases.
pub(crate) fn messages<'a>(events: &[&'a Event], log_group: &'a str) -> Vec<Message<'a>> {
    let mut known = HashSet::new();
    let news: Vec<&Event> =
        events.iter().copied().filter(|event| is_news(event) && known.insert(event.id.as_str())).collect();
    let of = |phase| news.iter().copied().filter(move |event| event.phase == phase).collect::<Vec<_>>();
    let is_among =
        |event: &Event, others: &[&Event]| others.iter().any(|other| are_of_one_drain(&other.receipt, &event.receipt));
    let ended = decisive_attempts(&of(Phase::Ended));
    // If the batch has the end of a drain, the drain's beginning and blockage are obsolete.
    let without = |phase, others: &[&Event]| {
        let events = of(phase).into_iter().filter(|event| !is_among(event, &ended) && !is_among(event, others));
        Message { phase, events: events.collect(), log_group }
    };
    [
        without(Phase::Begun, &[]),
        without(Phase::Blocked, &of(Phase::Unblocked)),
        without(Phase::Unblocked, &of(Phase::Blocked)),
        Message { phase: Phase::Ended, events: ended.clone(), log_group },
    ]
    .into_iter()
    .filter(|message| !message.events.is_empty())
    .collect()
}

/// Keeps one event per request id, because Lambda's retries share the id. A successful event is preferred to failed events, and
/// a failed event with more lost pods to one with fewer.
fn decisive_attempts<'a>(ended: &[&'a Event]) -> Vec<&'a Event> {
    let weight = |event: &Event| (event.receipt.ending != Some(Ending::Failed), Node::of(event).lost().len());
    let mut attempts: Vec<&Event> = Vec::new();
    for event in ended {
        match attempts.iter_mut().find(|attempt| attempt.receipt.request_id == event.receipt.request_id) {
            Some(attempt) if weight(event) > weight(attempt) => *attempt = event,
            Some(_) => {}
            None => attempts.push(event),
        }
    }
    attempts
}

/// Returns `false` for a receipt without a final result.
fn is_news(event: &Event) -> bool {
    event.phase != Phase::Ended || is_over(&event.receipt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{begun, blocked, ended, lossy, unblocked};

    /// Phase and event ids of each message.
    fn grouped(events: &[Event]) -> Vec<(Phase, Vec<String>)> {
        let all: Vec<&Event> = events.iter().collect();
        let ids = |message: Message<'_>| message.events.iter().map(|event| event.id.clone()).collect();
        messages(&all, "").into_iter().map(|message| (message.phase, ids(message))).collect()
    }

    #[test]
    fn later_phase_in_the_batch_replaces_the_earlier_one() {
        let phases = |events: &[Event]| {
            let phases = grouped(events).into_iter().map(|(phase, events)| (phase, events.len()));
            phases.collect::<Vec<_>>()
        };
        assert_eq!(phases(&[begun(1), begun(2), ended(1, "failed")]), [(Phase::Begun, 1), (Phase::Ended, 1)]);
        assert_eq!(phases(&[begun(1), ended(1, "continued")]), [(Phase::Begun, 1)]);
        assert_eq!(phases(&[begun(1), begun(1)]), [(Phase::Begun, 1)], "delivered twice");
        assert_eq!(phases(&[blocked(1), begun(2), blocked(3)]), [(Phase::Begun, 1), (Phase::Blocked, 2)]);
        assert_eq!(phases(&[unblocked(1)]), [(Phase::Unblocked, 1)]);
        assert_eq!(phases(&[blocked(1), ended(1, "failed")]), [(Phase::Ended, 1)]);
        assert_eq!(phases(&[unblocked(1), ended(1, "drained")]), [(Phase::Ended, 1)]);
        assert_eq!(phases(&[blocked(1), unblocked(1), blocked(2)]), [(Phase::Blocked, 1)]);
    }

    #[test]
    fn only_final_endings_make_a_message() {
        for ending in ["drained", "done", "failed"] {
            assert_eq!(grouped(&[ended(1, ending)]).len(), 1, "{ending}");
        }
        for ending in ["joined", "ignored", "continued", "paused"] {
            assert!(grouped(&[ended(1, ending)]).is_empty(), "{ending}");
        }
        assert!(grouped(&[]).is_empty());
    }

    #[test]
    fn success_or_most_losses_decide_among_attempts() {
        let attempt = |id: &str, event: Event| Event { id: id.to_owned(), ..event };
        let decisive = |attempts: &[Event]| grouped(attempts).remove(0).1;
        let (late, lossy) = (attempt("late", ended(1, "failed")), attempt("lossy", lossy(1)));
        let later = attempt("later", ended(1, "failed"));
        assert_eq!(decisive(&[late.clone(), lossy.clone(), later]), ["lossy"]);
        assert_eq!(decisive(&[lossy.clone(), attempt("again", lossy.clone())]), ["lossy"]);
        assert_eq!(decisive(&[lossy, attempt("well", ended(1, "drained")), late]), ["well"]);
    }
}
