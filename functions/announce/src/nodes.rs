//! Groups the events of a message by node. If several notices are about one node, each pod of the node is counted once.

use std::collections::HashSet;

use serde::Serialize;
use spillway_receipt::{Ending, Fate, Pod, PodRecord, Receipt};

use crate::event::Event;
use crate::receipt::is_over;

#[derive(Debug)]
pub(crate) struct Node<'a> {
    /// Never empty.
    pub(crate) events: Vec<&'a Event>,
}

/// Numbers of pods by fate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Tally {
    pub(crate) clean: usize,
    pub(crate) clamped: usize,
    pub(crate) forced: usize,
    pub(crate) unconfirmed: usize,
    /// Pods that were still on the node when the drain ended.
    pub(crate) lost: usize,
}

/// Groups the events by node, in the order of the first event of each node.
pub(crate) fn nodes<'a>(events: &[&'a Event]) -> Vec<Node<'a>> {
    let mut nodes: Vec<Node<'a>> = Vec::new();
    for event in events {
        match nodes.iter_mut().find(|node| node.is_node_of(event)) {
            Some(node) => node.events.push(event),
            None => nodes.push(Node::of(event)),
        }
    }
    nodes
}

impl<'a> Node<'a> {
    pub(crate) fn of(event: &'a Event) -> Self {
        Self { events: vec![event] }
    }

    pub(crate) fn receipts(&self) -> impl Iterator<Item = &'a Receipt> {
        self.events.iter().map(|event| &event.receipt)
    }

    /// Returns the name of the node, if known.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.receipts().find_map(|receipt| receipt.node.as_deref())
    }

    pub(crate) fn cluster(&self) -> Option<&'a str> {
        self.receipts().find_map(|receipt| receipt.cluster.as_deref())
    }

    pub(crate) fn zone(&self) -> Option<&'a str> {
        self.receipts().find_map(|receipt| receipt.zone.as_deref())
    }

    pub(crate) fn ended(&self, ending: Ending) -> bool {
        self.receipts().any(|receipt| receipt.ending == Some(ending))
    }

    /// Returns the pods of the node, worst fate first. If two notices report different fates for a pod, the worse fate
    /// counts.
    pub(crate) fn pods(&self) -> Vec<&'a Pod> {
        let mut pods: Vec<_> = self.receipts().flat_map(|receipt| &receipt.pods).collect();
        pods.sort_by_key(|pod| rank(pod));
        let mut known = HashSet::new();
        pods.retain(|pod| known.insert(pod.name()));
        pods
    }

    /// Returns the lost pods. Empty before the drain has ended.
    pub(crate) fn lost(&self) -> Vec<&'a PodRecord> {
        let is_over = self.receipts().any(is_over);
        let records = self.pods().into_iter().filter_map(Pod::record);
        records.filter(|pod| is_over && pod.fate == Fate::Lost).collect()
    }

    /// Counts the node's pods by fate. Adds the numbers that earlier invocations of the drain function reported.
    pub(crate) fn tally(&self) -> Tally {
        let pods = self.pods();
        let now = |fate| pods.iter().filter(|pod| pod.fate() == Some(fate)).count();
        // Earlier invocations report numbers without names. Two notices may count the same pods, so the larger number is taken.
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

    /// Returns `true` if the event is about the instance of the node.
    fn is_node_of(&self, event: &Event) -> bool {
        let instance = &event.receipt.instance;
        instance.is_some() && self.receipts().any(|receipt| receipt.instance == *instance)
    }
}

/// Returns the sort key of a pod: worst fate first.
fn rank(pod: &Pod) -> usize {
    const WORST_FIRST: [Fate; 5] = [Fate::Lost, Fate::Unconfirmed, Fate::Forced, Fate::Clamped, Fate::Clean];
    let rank = |fate| WORST_FIRST.iter().position(|other| *other == fate);
    pod.fate().and_then(rank).unwrap_or(WORST_FIRST.len())
}

impl Tally {
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
    use crate::test_support;

    /// Receipt from a test of the drain function.
    fn written() -> Event {
        let receipt = test_support::written("the_receipt_of_a_drain_as_the_log_has_it");
        let event = json!({"id": "b-1", "detail-type": "Spillway Receipt", "source": "spillway", "account": "1",
            "detail": receipt});
        event::read(&event.to_string(), "1").expect("an event of ours")
    }

    #[test]
    fn tally_counts_the_fates_of_a_receipt() {
        let event = written();
        let node = Node::of(&event);
        assert_eq!(event.phase, Phase::Ended);
        assert_eq!(node.tally(), Tally { clean: 1, clamped: 1, forced: 1, unconfirmed: 1, lost: 1 });
        let lost: Vec<_> = node.lost().iter().map(|pod| (pod.pod.as_str(), pod.why.as_deref())).collect();
        assert_eq!(lost, [("shop/held", Some("PodDisruptionBudget web blocked it"))]);
    }

    #[test]
    fn worse_fate_of_two_notices_counts() {
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
        let (mut continued, lossy) = (ended(1, "failed"), lossy(1));
        let pods = json!([{"pod": "shop/cart-1", "fate": "remaining"}]);
        continued.receipt.pods = ended_with(1, "failed", &pods).receipt.pods;
        assert_eq!(super::nodes(&[&continued, &lossy])[0].tally(), Node::of(&lossy).tally());
    }

    #[test]
    fn earlier_pods_count_once_and_continued_pods_are_not_lost() {
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
}
