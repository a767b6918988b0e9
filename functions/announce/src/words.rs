//! What a message says, in words: the same in Slack, in an e-mail and in JSON.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use spillway_receipt::{Ending, Receipt};

use crate::event::{Event, Phase};
use crate::group::Message;
use crate::nodes::{Node, Tally};

/// The news in a line, without markup.
pub(crate) fn headline(message: &Message<'_>) -> String {
    let nodes = message.nodes();
    let lost = match Tally::of(&nodes).lost {
        0 => String::new(),
        lost => format!(", {} lost", count(lost, "pod")),
    };
    let dry_run = if message.events.iter().all(|event| event.receipt.dry_run) { " (dry run)" } else { "" };
    let news = match (message.phase, nodes.as_slice()) {
        (Phase::Begun, [one]) => format!("Draining {}", node(one)),
        (Phase::Blocked, [one]) => format!("Blocked: {}", node(one)),
        (Phase::Unblocked, [one]) => format!("No longer blocked: {}", node(one)),
        (Phase::Ended, [one]) => format!("{}: {}", ending(one), node(one)),
        (Phase::Begun, nodes) => format!("Draining {} of {}", count(nodes.len(), "node"), clusters(&message.events)),
        (Phase::Blocked, nodes) => format!("Blocked: {} of {}", count(nodes.len(), "node"), clusters(&message.events)),
        (Phase::Unblocked, nodes) => {
            format!("No longer blocked: {} of {}", count(nodes.len(), "node"), clusters(&message.events))
        }
        (Phase::Ended, nodes) => {
            format!(
                "{} of {}: {}",
                count(nodes.len(), "node"),
                clusters(&message.events),
                endings(&nodes.iter().collect::<Vec<_>>())
            )
        }
    };
    format!("{news}{lost}{dry_run}")
}

/// The node and its cluster; of a notice that never got so far, what is known.
pub(crate) fn node(node: &Node<'_>) -> String {
    let instance = || node.receipts().find_map(|receipt| receipt.instance.as_deref());
    let thing = node.name().or_else(instance).unwrap_or("a notice");
    match node.cluster() {
        Some(cluster) => format!("{thing} of {cluster}"),
        None => thing.to_owned(),
    }
}

/// What happened to a node: a sentence for each notice that has another one than the others.
pub(crate) fn story(node: &Node<'_>) -> String {
    let mut seen = HashSet::new();
    let sentences = node.events.iter().map(|event| sentence(event)).filter(|sentence| seen.insert(sentence.clone()));
    sentences.collect::<Vec<_>>().join("; ")
}

/// What one event tells, in a sentence.
pub(crate) fn sentence(event: &Event) -> String {
    let Event { phase, receipt, .. } = event;
    match phase {
        Phase::Begun => {
            let goes = receipt.notice.deadline.map(|at| format!(", which goes at {}", time(at))).unwrap_or_default();
            format!("{} of {}{goes}", kind(receipt), instance(receipt))
        }
        Phase::Blocked | Phase::Unblocked | Phase::Ended => receipt.reason.clone(),
    }
}

/// The kind of notice.
pub(crate) fn kind(receipt: &Receipt) -> &str {
    receipt.notice.kind.as_deref().unwrap_or("a notice that could not be read")
}

/// The instance with its type and zone, as far as they are known.
pub(crate) fn instance(receipt: &Receipt) -> String {
    let Some(instance) = &receipt.instance else { return "an unknown instance".to_owned() };
    let known: Vec<_> = [&receipt.instance_type, &receipt.zone].into_iter().flatten().map(String::as_str).collect();
    if known.is_empty() { instance.clone() } else { format!("{instance} ({})", known.join(", ")) }
}

/// How the pods fared, each number that is not zero.
pub(crate) fn tally(tally: &Tally) -> String {
    let Tally { clean, clamped, forced, unconfirmed, lost } = *tally;
    let told =
        [(clean, "clean"), (clamped, "clamped"), (forced, "forced"), (unconfirmed, "unconfirmed"), (lost, "lost")];
    let told = told.iter().filter(|(count, _)| *count > 0).map(|(count, fate)| format!("{count} {fate}"));
    told.collect::<Vec<_>>().join(" · ")
}

/// The lost pods, each with its node, if there are several, and why.
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

/// Where to look for more, as far as it is known.
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
    let told = known.into_iter().filter(|(is_known, _)| *is_known).map(|(_, text)| text);
    told.collect::<Vec<_>>().join(" · ")
}

/// Each value once, in one line: the first few of them, and how many there are more.
pub(crate) fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 10;
    let mut seen = HashSet::new();
    let mut values: Vec<_> =
        values.filter(|value| !value.is_empty() && seen.insert(*value)).map(str::to_owned).collect();
    shorten(&mut values, MOST);
    values.join(", ")
}

/// Keeps so many lines, and says how many there were more.
pub(crate) fn shorten(lines: &mut Vec<String>, most: usize) {
    let more = lines.len().saturating_sub(most);
    if more > 0 {
        lines.truncate(most);
        lines.push(format!("and {more} more"));
    }
}

/// So many characters of a text at most.
pub(crate) fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// A time that people read.
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

/// How a node's drain ended: of several notices the worst end.
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

/// How many ended how.
pub(crate) fn endings(nodes: &[&Node<'_>]) -> String {
    let how = ["Drained", "Done", "Stopped", "Failed"].map(|how| {
        let count = nodes.iter().filter(|node| ending(node) == how).count();
        (count, how.to_lowercase())
    });
    let told = how.iter().filter(|(count, _)| *count > 0).map(|(count, how)| format!("{count} {how}"));
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::samples::{begun, ended, ended_with, lossy, message};

    #[test]
    fn the_headline_says_what_happened_to_how_many() {
        let (one, two) = (begun(1), begun(2));
        assert_eq!(headline(&message(&[&one])), "Draining ip-10-0-0-1.eu-west-1.compute.internal of prod");
        assert_eq!(headline(&message(&[&one, &two])), "Draining 2 nodes of prod");
        let (drained, done, lossy) = (ended(1, "drained"), ended(2, "done"), lossy(3));
        assert_eq!(headline(&message(&[&drained])), "Drained: ip-10-0-0-1.eu-west-1.compute.internal of prod");
        assert_eq!(
            headline(&message(&[&lossy])),
            "Failed: ip-10-0-0-3.eu-west-1.compute.internal of prod, 2 pods lost"
        );
        assert_eq!(
            headline(&message(&[&drained, &done, &lossy])),
            "3 nodes of prod: 1 drained, 1 done, 1 failed, 2 pods lost"
        );
    }

    #[test]
    fn two_notices_of_one_node_are_one_node() {
        let (spot, mut shutting_down) = (lossy(1), lossy(1));
        shutting_down.id = "ended-2".to_owned();
        shutting_down.receipt.request_id = "r-2".to_owned();
        let both = message(&[&spot, &shutting_down]);
        assert_eq!(both.events.len(), 2);
        assert_eq!(headline(&both), "Failed: ip-10-0-0-1.eu-west-1.compute.internal of prod, 2 pods lost");
        assert_eq!(lost(&both, 9).len(), 2);
    }

    #[test]
    fn a_node_has_a_sentence_for_each_notice_that_has_more_to_say() {
        let (spot, mut shutting_down) = (lossy(1), lossy(1));
        assert_eq!(story(&Node { events: vec![&spot, &shutting_down] }), spot.receipt.reason);
        shutting_down.receipt.reason = "the notice came too late".to_owned();
        assert_eq!(
            story(&Node { events: vec![&spot, &shutting_down] }),
            format!("{}; the notice came too late", spot.receipt.reason)
        );
    }

    #[test]
    fn a_drain_that_its_hook_did_not_wait_for_says_what_was_lost() {
        let pods = [json!({"pod": "shop/web-1", "fate": "lost", "why": "it was still shutting down"})];
        let stopped = ended_with(1, "ignored", &json!(pods));
        assert_eq!(
            headline(&message(&[&stopped])),
            "Stopped: ip-10-0-0-1.eu-west-1.compute.internal of prod, 1 pod lost"
        );
        assert_eq!(lost(&message(&[&stopped]), 10), ["shop/web-1: it was still shutting down"]);
    }

    #[test]
    fn a_dry_run_says_so() {
        let mut event = ended(1, "done");
        event.receipt.dry_run = true;
        assert!(headline(&message(&[&event])).ends_with(" (dry run)"));
    }

    #[test]
    fn a_beginning_says_why_and_until_when() {
        assert_eq!(
            sentence(&begun(1)),
            "spot interruption of i-00000000000000001 (m7g.large, eu-west-1a), which goes at 2026-11-21 03:14:00 UTC"
        );
        let mut bare = begun(1);
        bare.receipt = Receipt::default();
        assert_eq!(sentence(&bare), "a notice that could not be read of an unknown instance");
    }

    #[test]
    fn the_origin_has_what_is_known() {
        let mut event = begun(1);
        event.receipt.pods_cut = Some(7);
        assert_eq!(
            origin(&message(&[&event])),
            "account 123456789012 · eu-west-1 · receipt r-1 · 7 pods more did not fit into a receipt"
        );
        let mut most = begun(2);
        most.receipt.pods_cut = Some(usize::MAX);
        let told = origin(&message(&[&event, &most]));
        assert!(told.contains(&usize::MAX.to_string()), "{told}");
        event.receipt = Receipt::default();
        event.receipt.request_id = "r-1".to_owned();
        assert_eq!(origin(&message(&[&event])), "receipt r-1");
    }

    #[test]
    fn values_are_told_once_each_in_their_order() {
        assert_eq!(distinct(["b", "a", "", "b"].into_iter()), "b, a");
        let many: Vec<_> = (0..12).map(|n| n.to_string()).collect();
        assert!(distinct(many.iter().map(String::as_str)).ends_with("8, 9, and 2 more"));
    }

    #[test]
    fn only_ends_that_a_pod_came_to_are_told() {
        assert_eq!(tally(&Tally { clean: 2, lost: 1, ..Tally::default() }), "2 clean · 1 lost");
    }

    #[test]
    fn what_is_clipped_ends_with_a_mark() {
        assert_eq!((clip("häuser", 6), clip("häuser", 5)), ("häuser".to_owned(), "häus…".to_owned()));
    }

    #[test]
    fn a_long_list_says_how_much_more_there_was() {
        let mut lines = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        shorten(&mut lines, 3);
        assert_eq!(lines.len(), 3);
        shorten(&mut lines, 1);
        assert_eq!(lines, ["a", "and 2 more"]);
    }
}
