//! What is told of, node by node: two notices about one node are one node, and a pod that both tell of is one pod.

use std::collections::HashSet;

use serde::Serialize;
use spillway_receipt::{Ending, Fate, Pod, PodRecord, Receipt};

use crate::event::Event;
use crate::receipt::is_over;

/// A node with everything that is told of it.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    /// Never none.
    pub(crate) events: Vec<&'a Event>,
}

/// How many pods came to which end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Tally {
    pub(crate) clean: usize,
    pub(crate) clamped: usize,
    pub(crate) forced: usize,
    pub(crate) unconfirmed: usize,
    /// The pods that were still there at the end, with no later invocation to go on with them.
    pub(crate) lost: usize,
}

/// The nodes that these events tell of, in their order.
pub(crate) fn nodes<'a>(events: &[&'a Event]) -> Vec<Node<'a>> {
    let mut nodes: Vec<Node<'a>> = Vec::new();
    for event in events {
        match nodes.iter_mut().find(|node| node.is_told_of_by(event)) {
            Some(node) => node.events.push(event),
            None => nodes.push(Node::of(event)),
        }
    }
    nodes
}

impl<'a> Node<'a> {
    /// As one event tells of it.
    pub(crate) fn of(event: &'a Event) -> Self {
        Self { events: vec![event] }
    }

    /// Each receipt about it.
    pub(crate) fn receipts(&self) -> impl Iterator<Item = &'a Receipt> {
        self.events.iter().map(|event| &event.receipt)
    }

    /// Its name; a notice may not have got so far.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.receipts().find_map(|receipt| receipt.node.as_deref())
    }

    /// Its cluster, if it was found out.
    pub(crate) fn cluster(&self) -> Option<&'a str> {
        self.receipts().find_map(|receipt| receipt.cluster.as_deref())
    }

    /// Its availability zone, if it was found out.
    pub(crate) fn zone(&self) -> Option<&'a str> {
        self.receipts().find_map(|receipt| receipt.zone.as_deref())
    }

    /// Whether one of its notices ended so.
    pub(crate) fn ended(&self, how: Ending) -> bool {
        self.receipts().any(|receipt| receipt.ending == Some(how))
    }

    /// Its pods, the worst off first. Of a pod with two fates the worse one counts: whoever forced it knows better than
    /// whoever saw it go.
    pub(crate) fn pods(&self) -> Vec<&'a Pod> {
        let mut pods: Vec<_> = self.receipts().flat_map(|receipt| &receipt.pods).collect();
        pods.sort_by_key(|pod| place(pod));
        let mut seen = HashSet::new();
        pods.retain(|pod| seen.insert(pod.name()));
        pods
    }

    /// The pods that were still there when the time was up, and that no later invocation goes on with.
    pub(crate) fn lost(&self) -> Vec<&'a PodRecord> {
        let is_over = self.receipts().any(is_over);
        let records = self.pods().into_iter().filter_map(Pod::record);
        records.filter(|pod| is_over && pod.fate == Fate::Lost).collect()
    }

    /// How its pods fared, those of earlier invocations too.
    pub(crate) fn tally(&self) -> Tally {
        let pods = self.pods();
        let now = |fate| pods.iter().filter(|pod| pod.fate() == Some(fate)).count();
        // Of these only the numbers are known. Who drained the longest has counted the others' too.
        let of_one = |receipt: &Receipt, fate| receipt.earlier.iter().map(|earlier| earlier.count(fate)).sum::<usize>();
        let before = |fate| self.receipts().map(|receipt| of_one(receipt, fate)).max().unwrap_or_default();
        Tally {
            clean: now(Fate::Clean) + before(Fate::Clean),
            clamped: now(Fate::Clamped) + before(Fate::Clamped),
            forced: now(Fate::Forced) + before(Fate::Forced),
            unconfirmed: now(Fate::Unconfirmed),
            lost: self.lost().len(),
        }
    }

    /// An instance is one node for as long as it lives. A notice that names none is about nothing else's node.
    fn is_told_of_by(&self, event: &Event) -> bool {
        let instance = &event.receipt.instance;
        instance.is_some() && self.receipts().any(|receipt| receipt.instance == *instance)
    }
}

/// Where a pod comes among others, the worst off first. Last is what came to no end that is counted: a pod that was not to
/// leave, that a later invocation goes on with, or whose fate only a newer drain function knows.
fn place(pod: &Pod) -> usize {
    const WORST_FIRST: [Fate; 5] = [Fate::Lost, Fate::Unconfirmed, Fate::Forced, Fate::Clamped, Fate::Clean];
    let worse = |fate| WORST_FIRST.iter().position(|worse| *worse == fate);
    pod.fate().and_then(worse).unwrap_or(WORST_FIRST.len())
}

impl Tally {
    /// All of them together.
    pub(crate) fn of(nodes: &[Node<'_>]) -> Self {
        nodes.iter().map(Node::tally).fold(Self::default(), |all, one| Self {
            clean: all.clean + one.clean,
            clamped: all.clamped + one.clamped,
            forced: all.forced + one.forced,
            unconfirmed: all.unconfirmed + one.unconfirmed,
            lost: all.lost + one.lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{self, Phase};
    use crate::samples::{ended, ended_with, lossy};

    /// The drain function's own receipt.
    fn written() -> Event {
        const LINE: &str = include_str!(
            "../../../crates/drainer/src/publish/snapshots/spillway_drainer__publish__tests__the_receipt_of_a_drain_as_the_log_has_it.snap"
        );
        let line = LINE.lines().last().expect("the snapshot's last line is the receipt");
        let event = format!(
            r#"{{"id": "b-1", "detail-type": "Spillway Receipt", "source": "spillway", "account": "1", "detail": {line}}}"#
        );
        event::read(&event, "1").expect("an event of ours")
    }

    #[test]
    fn the_pods_of_the_drain_functions_receipt_are_counted_by_their_fates() {
        let event = written();
        let node = Node::of(&event);
        assert_eq!(event.phase, Phase::Ended);
        assert_eq!(node.tally(), Tally { clean: 1, clamped: 1, forced: 1, unconfirmed: 1, lost: 1 });
        let lost: Vec<_> = node.lost().iter().map(|pod| (pod.pod.as_str(), pod.why.as_deref())).collect();
        assert_eq!(lost, [("shop/held", Some("PodDisruptionBudget web blocked it"))]);
    }

    #[test]
    fn two_notices_about_one_node_are_one_node_and_each_pod_counts_once_as_the_worse() {
        let (holder, mut other) = (lossy(1), lossy(1));
        other.receipt = ended_with(
            1,
            "drained",
            &json!([
                {"pod": "shop/cart-1", "fate": "clean"}, {"pod": "shop/web-1", "fate": "clamped"},
                {"pod": "shop/late-1", "fate": "clean"},
            ]),
        )
        .receipt;
        let elsewhere = ended(2, "drained");
        let events = [&holder, &elsewhere, &other];
        let nodes = nodes(&events);
        assert_eq!(nodes.len(), 2);
        assert_eq!(nodes[0].tally(), Tally { clean: 1, clamped: 2, forced: 1, unconfirmed: 1, lost: 2 });
        assert_eq!(Tally::of(&nodes).clean, 2);
    }

    #[test]
    fn notices_without_an_instance_are_not_about_one_node() {
        let (mut one, mut two) = (ended(1, "failed"), ended(1, "failed"));
        (one.receipt.instance, two.receipt.instance) = (None, None);
        assert_eq!(nodes(&[&one, &two]).len(), 2);
    }

    #[test]
    fn pods_of_earlier_invocations_count_once_and_what_was_continued_is_not_lost() {
        let mut event = written();
        event.receipt.earlier = serde_json::from_value(json!([{
            "request_id": "r-0", "from": "2026-11-21T03:12:00Z", "to": "2026-11-21T03:26:00Z",
            "pods": {"clean": 7, "clamped": 5, "forced": 2, "remaining": 3},
        }]))
        .expect("earlier ones");
        let together = Tally { clean: 8, clamped: 6, forced: 3, unconfirmed: 1, lost: 1 };
        assert_eq!(Node::of(&event).tally(), together);
        assert_eq!(nodes(&[&event, &event])[0].tally(), together);
        event.receipt.records_mut().filter(|pod| pod.fate == Fate::Lost).for_each(|pod| pod.fate = Fate::Remaining);
        assert_eq!(Node::of(&event).tally().lost, 0);
    }

    #[test]
    fn a_pod_that_one_notice_continued_and_another_lost_is_lost() {
        let (mut continued, lossy) = (ended(1, "failed"), lossy(1));
        let pods = json!([{"pod": "shop/cart-1", "fate": "remaining"}]);
        continued.receipt.pods = ended_with(1, "failed", &pods).receipt.pods;
        assert_eq!(nodes(&[&continued, &lossy])[0].tally(), Node::of(&lossy).tally());
    }
}
