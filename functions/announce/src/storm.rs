//! Lists the nodes of a message. In a storm (more than ten nodes of one cluster), lists zones and failed nodes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use spillway_receipt::Ending;

use crate::event::Phase;
use crate::group::Message;
use crate::nodes::Node;
use crate::words;

/// Maximum number of nodes of one cluster that a message lists one by one.
const NODES: usize = 10;

/// Text about a node, or about the nodes of a zone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Node or zone that the text describes. `None` if the message has only one node, which the headline names.
    pub(crate) subject: Option<String>,
    pub(crate) text: String,
}

/// Returns a line for each node, failed nodes first. In a storm, returns a line for each zone and each failed node.
pub(crate) fn lines(message: &Message<'_>) -> Vec<Line> {
    let mut nodes = message.nodes();
    if let [node] = nodes.as_slice() {
        return vec![Line { subject: None, text: words::story(node) }];
    }
    nodes.sort_by_key(|node| !node.ended(Ending::Failed));
    let line = |node: &Node<'_>| Line { subject: Some(words::node(node)), text: words::story(node) };
    if !is_storm(&nodes) {
        return nodes.iter().map(line).collect();
    }
    let mut zones: BTreeMap<_, Vec<&Node<'_>>> = BTreeMap::new();
    for node in &nodes {
        zones.entry((node.cluster(), node.zone())).or_default().push(node);
    }
    let zones = zones.into_iter().map(|((cluster, zone), nodes)| Line {
        subject: Some(format!("{}, {}", cluster.unwrap_or("no known cluster"), zone.unwrap_or("no known zone"))),
        text: zone_text(message.phase, &nodes),
    });
    zones.chain(nodes.iter().filter(|node| node.ended(Ending::Failed)).map(line)).collect()
}

pub(crate) fn is_storm(nodes: &[Node<'_>]) -> bool {
    let mut by_cluster: BTreeMap<_, usize> = BTreeMap::new();
    for cluster in nodes.iter().filter_map(Node::cluster) {
        *by_cluster.entry(cluster).or_default() += 1;
    }
    by_cluster.values().any(|count| *count > NODES)
}

fn zone_text(phase: Phase, nodes: &[&Node<'_>]) -> String {
    if phase == Phase::Ended {
        let lost = words::lost_pods(nodes.iter().map(|node| node.lost().len()).sum());
        return format!("{}{lost}", words::endings(nodes));
    }
    let deadlines = nodes.iter().flat_map(|node| node.receipts()).filter_map(|receipt| receipt.notice.deadline);
    let last = deadlines.max().map(|at: Timestamp| format!(", the last ends at {}", words::time(at)));
    format!("{}{}", words::count(nodes.len(), "node"), last.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::samples::{begun, storm};
    use crate::test_support::message;

    fn shown(events: &[Event]) -> Vec<String> {
        let events: Vec<&Event> = events.iter().collect();
        let line = |Line { subject, text }| format!("{}: {text}", subject.unwrap_or_default());
        lines(&message(&events)).into_iter().map(line).collect()
    }

    #[test]
    fn eleven_nodes_of_one_cluster_are_a_storm() {
        let begins = |count| (0..count).map(begun).collect::<Vec<_>>();
        assert_eq!(shown(&begins(10)).len(), 10);
        assert_eq!(shown(&begins(11)), ["prod, eu-west-1a: 11 nodes, the last ends at 2026-11-21 03:14:00 UTC"]);
        let mut two_clusters = begins(11);
        two_clusters[0].receipt.cluster = Some("stage".to_owned());
        assert_eq!(shown(&two_clusters).len(), 11);
        let again = begins(10).into_iter().map(|event| Event { id: format!("again-{}", event.id), ..event });
        assert_eq!(shown(&begins(10).into_iter().chain(again).collect::<Vec<_>>()).len(), 10, "two notices each");
    }

    #[test]
    fn zone_counts_endings_and_failed_nodes_have_a_line() {
        let mut events = storm();
        events[2].receipt.zone = None;
        events[3].receipt.cluster = Some("stage".to_owned());
        assert_eq!(
            shown(&events),
            [
                "prod, no known zone: 1 drained",
                "prod, eu-west-1a: 4 drained, 1 failed, 2 pods lost",
                "prod, eu-west-1b: 5 drained",
                "stage, eu-west-1b: 1 drained",
                "ip-10-0-0-0.eu-west-1.compute.internal of prod: \
                 2 of 6 pods were still on the node when the time was up",
            ]
        );
    }
}
