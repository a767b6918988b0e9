//! A storm: more than ten nodes of one cluster in one message. It tells of clusters and zones instead of each node, and
//! where to look.

use std::collections::BTreeMap;

use jiff::Timestamp;
use spillway_receipt::Ending;

use crate::event::Phase;
use crate::group::Message;
use crate::nodes::Node;
use crate::words;

/// So many nodes of a cluster are told of one by one.
const ONE_BY_ONE: usize = 10;

/// What a message says of a node, or of the nodes of a zone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) of: String,
    pub(crate) text: String,
}

/// Where to look for more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    pub(crate) address: String,
}

/// Where it is written what to do.
pub(crate) const RUNBOOK: &str = "runbook: docs/troubleshooting.md, in a storm";

/// What the message says of its nodes, those that failed first. In a storm the others are counted by cluster and zone.
pub(crate) fn told(message: &Message<'_>) -> Vec<Told> {
    let mut nodes = message.nodes();
    nodes.sort_by_key(|node| !node.ended(Ending::Failed));
    let one = |node: &Node<'_>| Told { of: words::node(node), text: words::story(node) };
    if !is_storm(&nodes) {
        return nodes.iter().map(one).collect();
    }
    let mut zones: BTreeMap<_, Vec<&Node<'_>>> = BTreeMap::new();
    for node in &nodes {
        zones.entry((node.cluster(), node.zone())).or_default().push(node);
    }
    let of_zones = zones.into_iter().map(|((cluster, zone), nodes)| Told {
        of: format!("{}, {}", cluster.unwrap_or("no known cluster"), zone.unwrap_or("no known zone")),
        text: of_zone(message.phase, &nodes),
    });
    of_zones.chain(nodes.iter().filter(|node| node.ended(Ending::Failed)).map(one)).collect()
}

/// The log of the stack; none if this is no storm.
pub(crate) fn links(message: &Message<'_>) -> Vec<Link> {
    let nodes = message.nodes();
    let Some(receipt) = nodes.iter().flat_map(Node::receipts).find(|receipt| !receipt.stack.is_empty()) else {
        return Vec::new();
    };
    if !is_storm(&nodes) {
        return Vec::new();
    }
    let region = &receipt.region;
    let console = match region.as_str() {
        china if china.starts_with("cn-") => "https://console.amazonaws.cn".to_owned(),
        government if government.starts_with("us-gov-") => "https://console.amazonaws-us-gov.com".to_owned(),
        _ => format!("https://{region}.console.aws.amazon.com"),
    };
    vec![Link { name: "log", address: format!("{console}/cloudwatch/home?region={region}#logsV2:logs-insights") }]
}

fn is_storm(nodes: &[Node<'_>]) -> bool {
    let mut of_clusters: BTreeMap<_, usize> = BTreeMap::new();
    for cluster in nodes.iter().filter_map(Node::cluster) {
        *of_clusters.entry(cluster).or_default() += 1;
    }
    of_clusters.values().any(|count| *count > ONE_BY_ONE)
}

fn of_zone(phase: Phase, nodes: &[&Node<'_>]) -> String {
    if phase == Phase::Ended {
        let lost = match nodes.iter().map(|node| node.lost().len()).sum() {
            0 => String::new(),
            lost => format!(", {} lost", words::count(lost, "pod")),
        };
        return format!("{}{lost}", words::endings(nodes));
    }
    let deadlines = nodes.iter().flat_map(|node| node.receipts()).filter_map(|receipt| receipt.notice.deadline);
    let last = deadlines.max().map(|at: Timestamp| format!(", the last goes at {}", words::time(at)));
    format!("{}{}", words::count(nodes.len(), "node"), last.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::samples::{begun, ended, lossy, message, storm};

    fn lines(events: &[Event]) -> Vec<String> {
        let events: Vec<&Event> = events.iter().collect();
        told(&message(&events)).into_iter().map(|Told { of, text }| format!("{of}: {text}")).collect()
    }

    #[test]
    fn ten_nodes_are_told_of_one_by_one_and_eleven_by_cluster_and_zone() {
        let ten: Vec<_> = (0..10).map(begun).collect();
        assert_eq!(lines(&ten).len(), 10);
        let eleven: Vec<_> = (0..11).map(begun).collect();
        assert_eq!(lines(&eleven), ["prod, eu-west-1a: 11 nodes, the last goes at 2026-11-21 03:14:00 UTC"]);
    }

    #[test]
    fn eleven_nodes_of_several_clusters_are_no_storm() {
        let mut events: Vec<_> = (0..11).map(begun).collect();
        events[0].receipt.cluster = Some("stage".to_owned());
        assert_eq!(lines(&events).len(), 11);
        let events: Vec<&Event> = events.iter().collect();
        assert_eq!(links(&message(&events)), []);
    }

    #[test]
    fn each_zone_says_how_its_nodes_ended_and_a_failed_node_is_named() {
        let mut events = storm();
        events[2].receipt.zone = None;
        events[3].receipt.cluster = Some("stage".to_owned());
        assert_eq!(
            lines(&events),
            [
                "prod, no known zone: 1 drained",
                "prod, eu-west-1a: 4 drained, 1 failed, 2 pods lost",
                "prod, eu-west-1b: 5 drained",
                "stage, eu-west-1b: 1 drained",
                "ip-10-0-0-0.eu-west-1.compute.internal of prod: \
                 2 of 6 pods were still on node ip-10-0-0-0.eu-west-1.compute.internal when the time was up",
            ]
        );
    }

    #[test]
    fn two_notices_of_each_of_ten_nodes_are_no_storm() {
        let again = |n| Event { id: format!("again-{n}"), ..begun(n) };
        let events: Vec<_> = (0..10).map(begun).chain((0..10).map(again)).collect();
        assert_eq!(lines(&events).len(), 10);
    }

    #[test]
    fn a_storm_has_the_links_of_its_partition_and_one_node_has_none() {
        let mut events = storm();
        let addresses = |events: &[Event]| {
            let events: Vec<&Event> = events.iter().collect();
            links(&message(&events)).into_iter().map(|link| link.address).collect::<Vec<_>>()
        };
        let home = "https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1";
        assert_eq!(addresses(&events), [format!("{home}#logsV2:logs-insights")]);
        for (region, console) in
            [("cn-north-1", "console.amazonaws.cn"), ("us-gov-west-1", "console.amazonaws-us-gov.com")]
        {
            for event in &mut events {
                region.clone_into(&mut event.receipt.region);
            }
            let start = format!("https://{console}/cloudwatch/home?region={region}#");
            assert!(addresses(&events).iter().all(|address| address.starts_with(&start)));
        }
        assert!(addresses(&[lossy(1), ended(2, "drained")]).is_empty());
    }
}
