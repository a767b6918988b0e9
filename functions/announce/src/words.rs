//! Sentences for messages in all formats.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use spillway_receipt::{Ending, Receipt};

use crate::event::{Event, Phase};
use crate::group::Message;
use crate::nodes::{Node, Tally};

/// Returns the headline of a message, without markup.
pub(crate) fn headline(message: &Message<'_>) -> String {
    let nodes = message.nodes();
    let subject = match nodes.as_slice() {
        [one] => node(one),
        nodes => format!("{} of {}", count(nodes.len(), "node"), clusters(&message.events)),
    };
    let news = match (message.phase, nodes.as_slice()) {
        (Phase::Begun, _) => format!("Draining {subject}"),
        (Phase::Blocked, _) => format!("Blocked: {subject}"),
        (Phase::Unblocked, _) => format!("No longer blocked: {subject}"),
        (Phase::Ended, [one]) => format!("{}: {subject}", ending(one)),
        (Phase::Ended, nodes) => format!("{subject}: {}", endings(&nodes.iter().collect::<Vec<_>>())),
    };
    let dry_run = if message.events.iter().all(|event| event.receipt.dry_run) { " (dry run)" } else { "" };
    format!("{news}{}{dry_run}", lost_pods(Tally::of(&nodes).lost))
}

/// Returns a text such as ", 2 pods lost". Empty if no pod is lost.
pub(crate) fn lost_pods(lost: usize) -> String {
    if lost == 0 { String::new() } else { format!(", {} lost", count(lost, "pod")) }
}

/// Returns the name of the node and its cluster. If the name is unknown, the instance id replaces the name.
pub(crate) fn node(node: &Node<'_>) -> String {
    let instance = || node.receipts().find_map(|receipt| receipt.instance.as_deref());
    let name = node.name().or_else(instance).unwrap_or("a notice");
    match node.cluster() {
        Some(cluster) => format!("{name} of {cluster}"),
        None => name.to_owned(),
    }
}

/// Returns the distinct sentences about the node's notices.
pub(crate) fn story(node: &Node<'_>) -> String {
    let mut known = HashSet::new();
    let sentences = node.events.iter().map(|event| match node.name() {
        Some(name) => sentence(event).replace(&format!("node {name}"), "the node"),
        None => sentence(event),
    });
    sentences.filter(|sentence| known.insert(sentence.clone())).collect::<Vec<_>>().join("; ")
}

/// Returns the sentence about one event.
pub(crate) fn sentence(event: &Event) -> String {
    let Event { phase, receipt, .. } = event;
    match phase {
        Phase::Begun => {
            let end = receipt.notice.deadline.map(|at| format!(", which ends at {}", time(at))).unwrap_or_default();
            format!("{} of {}{end}", kind(receipt), instance(receipt))
        }
        Phase::Blocked | Phase::Unblocked => receipt.reason.clone(),
        Phase::Ended => match &receipt.replacement {
            Some(replacement) => format!("{}; replacement {replacement}", receipt.reason),
            None => receipt.reason.clone(),
        },
    }
}

pub(crate) fn kind(receipt: &Receipt) -> &str {
    receipt.notice.kind.as_deref().unwrap_or("a notice that could not be read")
}

/// Returns the instance with its type and zone, if known.
fn instance(receipt: &Receipt) -> String {
    let Some(instance) = &receipt.instance else { return "an unknown instance".to_owned() };
    let known: Vec<_> = [&receipt.instance_type, &receipt.zone].into_iter().flatten().map(String::as_str).collect();
    if known.is_empty() { instance.clone() } else { format!("{instance} ({})", known.join(", ")) }
}

/// Returns the numbers of pods by fate: "2 clean · 1 lost". Zeros are omitted.
pub(crate) fn tally(tally: &Tally) -> String {
    let Tally { clean, clamped, forced, unconfirmed, lost } = *tally;
    let fates =
        [(clean, "clean"), (clamped, "clamped"), (forced, "forced"), (unconfirmed, "unconfirmed"), (lost, "lost")];
    nonzero(&fates).join(" · ")
}

fn nonzero(counts: &[(usize, &str)]) -> Vec<String> {
    counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
}

/// Returns a line about each lost pod. If the message is about several nodes, the line names the pod's node.
pub(crate) fn lost(message: &Message<'_>, most: usize) -> Vec<String> {
    let nodes = message.nodes();
    let lost = nodes.iter().flat_map(|one| {
        let on = if nodes.len() > 1 { format!(" on {}", node(one)) } else { String::new() };
        one.lost().into_iter().map(move |pod| {
            let why = pod.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("{}{on}{why}", pod.pod)
        })
    });
    let mut lost: Vec<_> = lost.collect();
    shorten(&mut lost, most);
    lost
}

/// Returns the account, Region, request ids and errors, if known.
pub(crate) fn origin(message: &Message<'_>) -> String {
    let receipts = || message.events.iter().map(|event| &event.receipt);
    let accounts = distinct(receipts().map(|receipt| receipt.account.as_str()));
    let regions = distinct(receipts().map(|receipt| receipt.region.as_str()));
    let requests = distinct(receipts().map(|receipt| receipt.request_id.as_str()));
    let errors = distinct(receipts().filter_map(|receipt| receipt.error.as_deref()));
    let cut = receipts().filter_map(|receipt| receipt.pods_cut).fold(0, usize::saturating_add);
    let known = [
        (!accounts.is_empty(), format!("account {accounts}")),
        (!regions.is_empty(), regions),
        (!requests.is_empty(), format!("receipt {requests}")),
        (!errors.is_empty(), format!("error {errors}")),
        (cut > 0, format!("{} more did not fit into a receipt", count(cut, "pod"))),
    ];
    known.into_iter().filter(|(is_known, _)| *is_known).map(|(_, text)| text).collect::<Vec<_>>().join(" · ")
}

/// Returns the distinct values in one line: the first ten, and the number of further values.
pub(crate) fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 10;
    let mut known = HashSet::new();
    let mut values: Vec<_> =
        values.filter(|value| !value.is_empty() && known.insert(*value)).map(str::to_owned).collect();
    shorten(&mut values, MOST);
    values.join(", ")
}

/// Keeps at most `most` lines and appends the number of dropped lines.
pub(crate) fn shorten(lines: &mut Vec<String>, most: usize) {
    let more = lines.len().saturating_sub(most);
    if more > 0 {
        lines.truncate(most);
        lines.push(format!("and {more} more"));
    }
}

pub(crate) fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Returns the time in the format `2026-11-21 03:14:00 UTC`.
pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

pub(crate) fn count(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn clusters(events: &[&Event]) -> String {
    let names: BTreeSet<_> = events.iter().filter_map(|event| event.receipt.cluster.as_deref()).collect();
    match names.iter().collect::<Vec<_>>().as_slice() {
        [] => "no known cluster".to_owned(),
        [name] => (**name).to_owned(),
        names => format!("{} clusters", names.len()),
    }
}

/// Returns the worst ending of a node's notices.
fn ending(node: &Node<'_>) -> &'static str {
    if node.ended(Ending::Failed) {
        "Failed"
    } else if node.ended(Ending::Ignored) {
        "Stopped"
    } else if node.ended(Ending::Drained) {
        "Drained"
    } else {
        "Done"
    }
}

/// Returns the numbers of nodes by ending: "2 drained, 1 failed".
pub(crate) fn endings(nodes: &[&Node<'_>]) -> String {
    let counts = ["Drained", "Done", "Stopped", "Failed"]
        .map(|name| (nodes.iter().filter(|node| ending(node) == name).count(), name));
    nonzero(&counts).join(", ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::samples::{begun, blocked, ended, ended_with, lossy, unblocked};
    use crate::test_support::message;

    #[test]
    fn headline_names_one_node_or_counts_several() {
        let node = "ip-10-0-0-1.eu-west-1.compute.internal of prod";
        let mut dry_run = ended(1, "done");
        dry_run.receipt.dry_run = true;
        for (events, expected) in [
            (vec![begun(1)], format!("Draining {node}")),
            (vec![begun(1), begun(2)], "Draining 2 nodes of prod".to_owned()),
            (vec![blocked(1)], format!("Blocked: {node}")),
            (vec![blocked(1), blocked(2)], "Blocked: 2 nodes of prod".to_owned()),
            (vec![unblocked(1)], format!("No longer blocked: {node}")),
            (vec![unblocked(1), unblocked(2)], "No longer blocked: 2 nodes of prod".to_owned()),
            (vec![ended(1, "drained")], format!("Drained: {node}")),
            (vec![lossy(1)], format!("Failed: {node}, 2 pods lost")),
            (vec![dry_run], format!("Done: {node} (dry run)")),
            (
                vec![ended(1, "drained"), ended(2, "done"), lossy(3)],
                "3 nodes of prod: 1 drained, 1 done, 1 failed, 2 pods lost".to_owned(),
            ),
        ] {
            assert_eq!(headline(&message(&events.iter().collect::<Vec<_>>())), expected);
        }
    }

    #[test]
    fn story_has_each_sentence_once_and_not_the_nodes_name() {
        let (spot, mut shutting_down) = (lossy(1), lossy(1));
        let sentence = "2 of 6 pods were still on the node when the time was up";
        assert_eq!(story(&Node { events: vec![&spot, &shutting_down] }), sentence);
        shutting_down.receipt.reason = "the notice came too late".to_owned();
        let both = format!("{sentence}; the notice came too late");
        assert_eq!(story(&Node { events: vec![&spot, &shutting_down] }), both);
    }

    #[test]
    fn stopped_drain_names_its_lost_pods() {
        let pods = [json!({"pod": "shop/web-1", "fate": "lost", "why": "it was still shutting down"})];
        let stopped = ended_with(1, "ignored", &json!(pods));
        assert_eq!(
            headline(&message(&[&stopped])),
            "Stopped: ip-10-0-0-1.eu-west-1.compute.internal of prod, 1 pod lost"
        );
        assert_eq!(lost(&message(&[&stopped]), 10), ["shop/web-1: it was still shutting down"]);
    }

    #[test]
    fn sentence_of_a_begun_drain_has_kind_instance_and_deadline() {
        assert_eq!(
            sentence(&begun(1)),
            "spot interruption of i-00000000000000001 (m7g.large, eu-west-1a), which ends at 2026-11-21 03:14:00 UTC"
        );
        let mut bare = begun(1);
        bare.receipt = Receipt::default();
        assert_eq!(sentence(&bare), "a notice that could not be read of an unknown instance");
    }

    #[test]
    fn origin_omits_unknown_values() {
        let mut event = begun(1);
        event.receipt.pods_cut = Some(7);
        assert_eq!(
            origin(&message(&[&event])),
            "account 123456789012 · eu-west-1 · receipt r-1 · 7 pods more did not fit into a receipt"
        );
        event.receipt = Receipt::default();
        event.receipt.request_id = "r-1".to_owned();
        assert_eq!(origin(&message(&[&event])), "receipt r-1");
    }

    #[test]
    fn distinct_values_keep_their_order_up_to_ten() {
        assert_eq!(distinct(["b", "a", "", "b"].into_iter()), "b, a");
        let many: Vec<_> = (0..12).map(|n| n.to_string()).collect();
        assert!(distinct(many.iter().map(String::as_str)).ends_with("8, 9, and 2 more"));
    }

    #[test]
    fn clipped_text_and_shortened_list_are_marked() {
        assert_eq!((clip("häuser", 6), clip("häuser", 5)), ("häuser".to_owned(), "häus…".to_owned()));
        let mut lines = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        shorten(&mut lines, 3);
        assert_eq!(lines.len(), 3);
        shorten(&mut lines, 1);
        assert_eq!(lines, ["a", "and 2 more"]);
    }
}
