//! Which messages a batch of events makes: one for all drains that began, one for all that something blocks, one for all
//! that nothing blocks any more, one for all that ended. Fifty nodes that go at once are one piece of news.

use std::collections::HashSet;

use spillway_receipt::Ending;

use crate::event::{Event, Phase};
use crate::nodes::{Node, nodes};
use crate::receipt::{are_of_one_drain, is_over};

/// One message to people.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) phase: Phase,
    /// What it tells of; never none.
    pub(crate) events: Vec<&'a Event>,
}

impl<'a> Message<'a> {
    /// The nodes that it tells of.
    pub(crate) fn nodes(&self) -> Vec<Node<'a>> {
        nodes(&self.events)
    }

    /// The same news, one message for each notice.
    pub(crate) fn singles(&self) -> impl Iterator<Item = Message<'a>> {
        self.events.iter().map(|event| Message { phase: self.phase, events: vec![*event] })
    }
}

/// The messages, in their order.
pub(crate) fn messages<'a>(events: &[&'a Event]) -> Vec<Message<'a>> {
    let mut seen = HashSet::new();
    let news: Vec<&Event> =
        events.iter().copied().filter(|event| is_news(event) && seen.insert(event.id.as_str())).collect();
    let of = |phase| news.iter().copied().filter(move |event| event.phase == phase).collect::<Vec<_>>();
    let is_among =
        |event: &Event, others: &[&Event]| others.iter().any(|other| are_of_one_drain(&other.receipt, &event.receipt));
    let ended = attempts_that_count(&of(Phase::Ended));
    // Who reads that a drain has ended need not be told that it began. What was over before anybody read of it is no news.
    let without = |phase, others: &[&Event]| {
        let events = of(phase).into_iter().filter(|event| !is_among(event, &ended) && !is_among(event, others));
        Message { phase, events: events.collect() }
    };
    [
        without(Phase::Begun, &[]),
        without(Phase::Blocked, &of(Phase::Unblocked)),
        without(Phase::Unblocked, &of(Phase::Blocked)),
        Message { phase: Phase::Ended, events: ended.clone() },
    ]
    .into_iter()
    .filter(|message| !message.events.is_empty())
    .collect()
}

/// How each notice ended. Lambda tries one that failed again, with the same request id, and each attempt tells its own end:
/// of these one that did not fail counts, or else the one that lost most, the first of several.
fn attempts_that_count<'a>(ended: &[&'a Event]) -> Vec<&'a Event> {
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

/// A drain that another notice's message tells of, or that goes on, is no news, and neither is a notice that nothing
/// came of.
fn is_news(event: &Event) -> bool {
    event.phase != Phase::Ended || is_over(&event.receipt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{begun, blocked, ended, lossy, unblocked};

    /// Each message's phase and the ids of its events.
    fn grouped(events: &[Event]) -> Vec<(Phase, Vec<String>)> {
        let all: Vec<&Event> = events.iter().collect();
        let ids = |message: Message<'_>| message.events.iter().map(|event| event.id.clone()).collect();
        messages(&all).into_iter().map(|message| (message.phase, ids(message))).collect()
    }

    #[test]
    fn fifty_nodes_make_one_message_when_they_begin_and_one_when_they_end() {
        let begins: Vec<_> = (0..50).map(begun).collect();
        assert_eq!(grouped(&begins), [(Phase::Begun, begins.iter().map(|event| event.id.clone()).collect())]);
        let ends: Vec<_> = (0..50).map(|n| ended(n, "drained")).collect();
        assert_eq!(grouped(&ends), [(Phase::Ended, ends.iter().map(|event| event.id.clone()).collect())]);
    }

    #[test]
    fn a_drain_that_begins_and_ends_in_one_batch_is_told_once() {
        let events = [begun(1), begun(2), ended(1, "failed")];
        assert_eq!(
            grouped(&events),
            [(Phase::Begun, vec!["begun-2".to_owned()]), (Phase::Ended, vec!["ended-1".to_owned()])]
        );
    }

    #[test]
    fn a_beginning_is_told_while_its_drain_goes_on() {
        assert_eq!(grouped(&[begun(1), ended(1, "continued")]), [(Phase::Begun, vec!["begun-1".to_owned()])]);
    }

    #[test]
    fn a_blocked_drain_is_told_while_it_is_blocked_and_then_that_it_is_over() {
        let told = |events: &[Event]| {
            let phases = grouped(events).into_iter().map(|(phase, events)| (phase, events.len()));
            phases.collect::<Vec<_>>()
        };
        assert_eq!(told(&[blocked(1), begun(2), blocked(3)]), [(Phase::Begun, 1), (Phase::Blocked, 2)]);
        assert_eq!(told(&[unblocked(1)]), [(Phase::Unblocked, 1)]);
        assert_eq!(told(&[blocked(1), ended(1, "failed")]), [(Phase::Ended, 1)]);
        assert_eq!(told(&[unblocked(1), ended(1, "drained")]), [(Phase::Ended, 1)]);
        assert_eq!(told(&[blocked(1), unblocked(1), blocked(2)]), [(Phase::Blocked, 1)]);
    }

    #[test]
    fn only_what_is_news_makes_a_message() {
        for ending in ["drained", "done", "failed"] {
            assert_eq!(grouped(&[ended(1, ending)]).len(), 1, "{ending}");
        }
        for ending in ["joined", "ignored", "continued", "paused"] {
            assert!(grouped(&[ended(1, ending)]).is_empty(), "{ending}");
        }
        assert!(grouped(&[]).is_empty());
    }

    #[test]
    fn of_several_attempts_at_one_notice_one_is_told() {
        let attempt = |id: &str, event: Event| Event { id: id.to_owned(), ..event };
        let told = |attempts: &[Event]| grouped(attempts).remove(0).1;
        let (late, lossy) = (attempt("late", ended(1, "failed")), attempt("lossy", lossy(1)));
        let later = attempt("later", ended(1, "failed"));
        assert_eq!(told(&[late.clone(), lossy.clone(), later]), ["lossy"]);
        assert_eq!(told(&[lossy, attempt("well", ended(1, "drained")), late]), ["well"]);
    }

    #[test]
    fn of_attempts_that_fared_alike_the_first_is_told() {
        let again = Event { id: "again".to_owned(), ..lossy(1) };
        assert_eq!(grouped(&[lossy(1), again]).remove(0).1, ["ended-1"]);
    }

    #[test]
    fn an_event_that_was_delivered_twice_is_told_once() {
        assert_eq!(grouped(&[begun(1), begun(1)]), [(Phase::Begun, vec!["begun-1".to_owned()])]);
    }
}
