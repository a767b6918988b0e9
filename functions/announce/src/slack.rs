//! A message in Slack's block format: <https://docs.slack.dev/reference/block-kit/blocks>

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use spillway_receipt::Ending;

use crate::bar::bar;
use crate::event::Phase;
use crate::group::Message;
use crate::nodes::{Node, Tally};
use crate::storm::{self, Link, Told};
use crate::words;

/// Slack's limit of a header.
const HEADER: usize = 150;
/// Slack's limit of a section's text.
const SECTION: usize = 3000;
/// More nodes than these, or lost pods, nobody reads in a chat; they fit into Slack's 50 blocks.
const NODES: usize = 20;
const PODS: usize = 20;
/// Of a reason or a pod's fate; even if each character has to be escaped, a line fits into a section.
const LINE: usize = 300;

/// The message; `text` is what a notification shows.
pub(crate) fn message(message: &Message<'_>) -> Value {
    let headline = words::headline(message);
    let nodes = message.nodes();
    let tally = Tally::of(&nodes);
    let symbol = symbol(message.phase, &nodes, &tally);
    let mut blocks = vec![json!({
        "type": "header",
        "text": {"type": "plain_text", "text": words::clip(&format!("{symbol} {headline}"), HEADER)},
    })];
    blocks.extend(sections(&lines(message)));
    if message.phase == Phase::Ended && tally != (Tally { clean: tally.clean, ..Tally::default() }) {
        blocks.push(section(&format!("{}\n{}", bar(&tally), words::tally(&tally))));
    }
    if tally.lost > 0 {
        let pods = words::lost(message, PODS).into_iter().map(|pod| format!("• {}", line(&pod)));
        blocks.extend(sections(&std::iter::once("*Lost*".to_owned()).chain(pods).collect::<Vec<_>>()));
    }
    let links = storm::links(message).into_iter().map(|Link { name, address }| format!("<{address}|{name}>"));
    let links: Vec<_> = links.collect();
    if !links.is_empty() {
        blocks.push(section(&format!("{} · {}", links.join(" · "), storm::RUNBOOK)));
    }
    blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": line(&words::origin(message))}]}));
    json!({"text": words::clip(&escape(&headline), SECTION), "blocks": blocks})
}

/// The news at a glance.
fn symbol(phase: Phase, nodes: &[Node<'_>], tally: &Tally) -> &'static str {
    match phase {
        Phase::Begun | Phase::Unblocked => "⏳",
        Phase::Blocked => "🟠",
        Phase::Ended if tally.lost > 0 || nodes.iter().any(|node| node.ended(Ending::Failed)) => "🔴",
        Phase::Ended => "🟢",
    }
}

/// A line for each node, or for each zone of a storm.
fn lines(message: &Message<'_>) -> Vec<String> {
    let told = storm::told(message).into_iter().map(|Told { of, text }| format!("*{}*\n{}", line(&of), line(&text)));
    let mut told: Vec<_> = told.collect();
    words::shorten(&mut told, NODES);
    told
}

/// As many sections as the lines need.
fn sections(lines: &[String]) -> Vec<Value> {
    let mut texts: Vec<String> = Vec::new();
    for line in lines {
        match texts.last_mut() {
            Some(text) if text.chars().count() + 1 + line.chars().count() <= SECTION => {
                text.push('\n');
                text.push_str(line);
            }
            _ => texts.push(line.clone()),
        }
    }
    texts.iter().map(|text| section(text)).collect()
}

fn section(text: &str) -> Value {
    json!({"type": "section", "text": {"type": "mrkdwn", "text": text}})
}

/// A line that fits, as Slack takes it.
fn line(text: &str) -> String {
    dates(&escape(&words::clip(text, LINE)))
}

/// Each time in a text, our own form or that of a receipt, as the reader's clock has it.
fn dates(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if let Some((at, length)) = time_at_the_begin(rest) {
            let (written, after) = rest.split_at(length);
            let shape = "{date_short_pretty} {time_secs}";
            write!(shown, "<!date^{}^{shape}|{written}>", at.as_second()).expect("a text takes more text");
            rest = after;
        } else {
            shown.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    shown
}

/// The time that a text begins with, and its length there.
fn time_at_the_begin(text: &str) -> Option<(Timestamp, usize)> {
    [("%Y-%m-%d %H:%M:%S UTC", "2026-11-21 03:14:00 UTC".len()), ("%Y-%m-%dT%H:%M:%SZ", "2026-11-21T03:14:00Z".len())]
        .into_iter()
        .find_map(|(form, length)| {
            let time = DateTime::strptime(form, text.get(..length)?).ok()?;
            Some((time.to_zoned(TimeZone::UTC).ok()?.timestamp(), length))
        })
}

/// Slack's three control characters; nothing else in a name or a reason is to be markup that harms.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::samples::{self, begun, blocked, ended, lossy, unblocked};

    fn pretty(events: &[Event]) -> String {
        let events: Vec<&Event> = events.iter().collect();
        serde_json::to_string_pretty(&message(&samples::message(&events))).expect("plain data")
    }

    #[test]
    fn a_drain_that_begins() {
        insta::assert_snapshot!(pretty(&[begun(1)]));
    }

    #[test]
    fn a_drain_that_ended_well() {
        insta::assert_snapshot!(pretty(&[ended(1, "drained")]));
    }

    #[test]
    fn a_drain_that_lost_pods_shows_which_and_why() {
        insta::assert_snapshot!(pretty(&[lossy(1)]));
    }

    #[test]
    fn several_drains_that_ended_the_failed_one_first() {
        insta::assert_snapshot!(pretty(&[ended(1, "drained"), lossy(2), ended(3, "done")]));
    }

    #[test]
    fn a_storm_is_told_by_cluster_and_zone_with_links() {
        insta::assert_snapshot!(pretty(&samples::storm()));
    }

    #[test]
    fn each_time_is_shown_by_the_readers_clock() {
        let date = |second: i64, written| format!("<!date^{second}^{{date_short_pretty}} {{time_secs}}|{written}>");
        let (ours, receipts) = ("2026-11-21 03:14:00 UTC", "2026-11-21T03:13:28Z");
        assert_eq!(dates(&format!("häuser, goes at {ours}")), format!("häuser, goes at {}", date(1_795_230_840, ours)));
        assert_eq!(dates(&format!("until {receipts} or")), format!("until {} or", date(1_795_230_808, receipts)));
        for none in ["2026-11-21", "2026-13-21 03:14:00 UTC", "20 26-11-21T03:13:28", "ä", ""] {
            assert_eq!(dates(none), none);
        }
    }

    #[test]
    fn a_drain_that_failed_or_lost_a_pod_is_red() {
        let lost = json!([{"pod": "shop/cart-1", "fate": "lost"}]);
        for (event, symbol) in [
            (begun(1), "⏳"),
            (blocked(1), "🟠"),
            (unblocked(1), "⏳"),
            (ended(1, "drained"), "🟢"),
            (ended(1, "failed"), "🔴"),
            (samples::ended_with(1, "drained", &lost), "🔴"),
        ] {
            let message = message(&samples::message(&[&event]));
            let header = message["blocks"][0]["text"]["text"].as_str().expect("a text");
            assert!(header.starts_with(symbol), "{header} for {:?}", event.receipt.ending);
        }
    }

    #[test]
    fn lines_share_a_section_as_long_as_they_fit_with_the_line_break_between_them() {
        let lines = |lengths: [usize; 2]| lengths.map(|length| "x".repeat(length));
        assert_eq!(sections(&lines([SECTION / 2, SECTION / 2 - 1])).len(), 1);
        assert_eq!(sections(&lines([SECTION / 2, SECTION / 2])).len(), 2);
    }

    #[test]
    fn the_largest_message_keeps_to_slacks_limits() {
        let noise = "<&>".repeat(1000);
        let events: Vec<_> = (0..100)
            .map(|n| {
                let mut event = lossy(n);
                event.receipt.reason.clone_from(&noise);
                event.receipt.node = Some(noise.clone());
                for pod in event.receipt.records_mut() {
                    pod.why = Some(noise.clone());
                }
                event
            })
            .collect();
        let events: Vec<&Event> = events.iter().collect();
        let message = message(&samples::message(&events));
        let blocks = message["blocks"].as_array().expect("blocks");
        assert!((10..=50).contains(&blocks.len()), "{} blocks", blocks.len());
        for block in blocks {
            let (text, limit) = match block["type"].as_str() {
                Some("header") => (&block["text"]["text"], HEADER),
                Some("section") => (&block["text"]["text"], SECTION),
                _ => (&block["elements"][0]["text"], SECTION),
            };
            let length = text.as_str().expect("a text").chars().count();
            assert!((1..=limit).contains(&length), "{length} characters in a {}", block["type"]);
        }
    }
}
