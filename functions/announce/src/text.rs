//! Renders a message as plain text, for e-mail by SNS and for chats other than Slack.

use crate::event::Phase;
use crate::group::Message;
use crate::links::{Link, links};
use crate::nodes::Tally;
use crate::storm::{self, Line};
use crate::words;

/// Maximum characters of a subject, because SNS requires fewer than 100 ASCII characters.
const SUBJECT: usize = 99;
/// Maximum number of nodes in a message.
const NODES: usize = 100;
const PODS: usize = 100;
const LINE: usize = 500;

pub(crate) fn subject(message: &Message<'_>) -> String {
    let headline = format!("Spillway: {}", words::headline(message));
    let ascii = headline.chars().filter(|c| c.is_ascii() && !c.is_ascii_control()).collect::<String>();
    ascii.chars().take(SUBJECT).collect()
}

pub(crate) fn body(message: &Message<'_>) -> String {
    let mut lines = vec![words::headline(message), String::new()];
    let nodes = message.nodes();
    let of_nodes = storm::lines(message).into_iter().map(|Line { subject, text }| match subject {
        Some(subject) => words::clip(&format!("{subject}: {text}"), LINE),
        None => words::clip(&text, LINE),
    });
    let mut of_nodes: Vec<_> = of_nodes.collect();
    words::shorten(&mut of_nodes, NODES);
    lines.append(&mut of_nodes);
    let tally = Tally::of(&nodes);
    if message.phase == Phase::Ended && tally != Tally::default() {
        lines.extend([String::new(), format!("Pods: {}", words::tally(&tally))]);
    }
    if tally.lost > 0 {
        lines.extend([String::new(), "Lost:".to_owned()]);
        lines.extend(words::lost(message, PODS).iter().map(|pod| format!("  {}", words::clip(pod, LINE))));
    }
    lines.extend([String::new(), words::origin(message), String::new()]);
    lines.extend(links(message).iter().map(|Link { name, address }| format!("{name}: {address}")));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::samples::{blocked, ended, lossy};
    use crate::test_support;

    fn mail(events: &[Event]) -> String {
        let events: Vec<&Event> = events.iter().collect();
        let message = test_support::message(&events);
        test_support::without_addresses(&format!("Subject: {}\n\n{}", subject(&message), body(&message)))
    }

    #[test]
    fn several_drains_have_a_line_each_failed_first() {
        insta::assert_snapshot!(mail(&[ended(1, "drained"), lossy(2)]));
    }

    #[test]
    fn blocked_drain_names_the_blocker() {
        let why = "PodDisruptionBudget cart blocks it until 2026-11-21T03:13:28Z at the latest";
        let blocked = mail(&[blocked(1)]);
        assert!(blocked.contains(&format!("\npod shop/cart-1 cannot leave the node: {why}\n")), "{blocked}");
    }

    #[test]
    fn largest_message_fits_into_sns() {
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
        assert!(subject(&test_support::message(&[&events[0]])).len() <= SUBJECT);
    }
}
