//! A message in plain words, as SNS sends it by e-mail.

use crate::event::Phase;
use crate::group::Message;
use crate::nodes::Tally;
use crate::storm::{self, Link, Told};
use crate::words;

/// SNS' limit of a subject is 100 characters of ASCII.
const SUBJECT: usize = 99;
/// A line of an e-mail for each node and each lost pod is read; more than these are counted.
const NODES: usize = 100;
const PODS: usize = 100;
const LINE: usize = 500;

/// The subject.
pub(crate) fn subject(message: &Message<'_>) -> String {
    let headline = format!("Spillway: {}", words::headline(message));
    let ascii = headline.chars().filter(|c| c.is_ascii() && !c.is_ascii_control()).collect::<String>();
    ascii.chars().take(SUBJECT).collect()
}

/// The text.
pub(crate) fn body(message: &Message<'_>) -> String {
    let mut lines = vec![words::headline(message), String::new()];
    let nodes = message.nodes();
    let told = storm::told(message).into_iter().map(|Told { of, text }| words::clip(&format!("{of}: {text}"), LINE));
    let mut told: Vec<_> = told.collect();
    words::shorten(&mut told, NODES);
    lines.append(&mut told);
    let tally = Tally::of(&nodes);
    if message.phase == Phase::Ended && tally != Tally::default() {
        lines.extend([String::new(), format!("Pods: {}", words::tally(&tally))]);
    }
    if tally.lost > 0 {
        lines.extend([String::new(), "Lost:".to_owned()]);
        lines.extend(words::lost(message, PODS).iter().map(|pod| format!("  {}", words::clip(pod, LINE))));
    }
    lines.push(String::new());
    let addresses = storm::links(message);
    lines.extend(addresses.iter().map(|Link { name, address }| format!("{name}: {address}")));
    if !addresses.is_empty() {
        lines.push(storm::RUNBOOK.to_owned());
    }
    lines.push(words::origin(message));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::Event;
    use crate::samples::{self, begun, blocked, ended, ended_with, lossy, unblocked};

    fn mail(events: &[Event]) -> String {
        let events: Vec<&Event> = events.iter().collect();
        let message = samples::message(&events);
        format!("Subject: {}\n\n{}", subject(&message), body(&message))
    }

    #[test]
    fn a_drain_that_begins() {
        insta::assert_snapshot!(mail(&[begun(1)]));
    }

    #[test]
    fn a_storm_is_told_by_cluster_and_zone_with_links() {
        insta::assert_snapshot!(mail(&samples::storm()));
    }

    #[test]
    fn a_drain_that_something_blocks_and_one_that_nothing_blocks_any_more() {
        let node = "ip-10-0-0-1.eu-west-1.compute.internal";
        let why = "PodDisruptionBudget cart blocks it until 2026-11-21T03:13:28Z at the latest";
        let told = mail(&[blocked(1)]);
        assert!(told.starts_with(&format!("Subject: Spillway: Blocked: {node} of prod\n")), "{told}");
        assert!(told.contains(&format!("{node} of prod: pod shop/cart-1 cannot leave node {node}: {why}\n")), "{told}");
        assert!(mail(&[blocked(1), blocked(2)]).contains("\nBlocked: 2 nodes of prod\n"));
        let told = mail(&[unblocked(1)]);
        assert!(told.starts_with(&format!("Subject: Spillway: No longer blocked: {node} of prod\n")), "{told}");
        assert!(mail(&[unblocked(1), unblocked(2)]).contains("\nNo longer blocked: 2 nodes of prod\n"));
    }

    #[test]
    fn a_drain_without_pods_has_no_line_of_pods() {
        let mail = mail(&[ended_with(1, "drained", &json!([]))]);
        assert!(!mail.contains("Pods:"), "{mail}");
    }

    #[test]
    fn drains_that_ended() {
        insta::assert_snapshot!(mail(&[ended(1, "drained"), lossy(2)]));
    }

    #[test]
    fn the_largest_message_fits_into_sns() {
        const LIMIT: usize = 256 * 1024;
        let events: Vec<_> = (0..100)
            .map(|n| {
                let mut event = lossy(n);
                event.receipt.node = Some("ü".repeat(5_000));
                event.receipt.reason = "ü".repeat(5_000);
                event
            })
            .collect();
        let mail = mail(&events);
        assert!((10_000..LIMIT).contains(&mail.len()), "{} bytes", mail.len());
        assert!(subject(&samples::message(&[&events[0]])).len() <= SUBJECT);
    }
}
