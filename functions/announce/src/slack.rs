//! Renders a message in Slack's block format: <https://docs.slack.dev/reference/block-kit/blocks>

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use spillway_receipt::Ending;

use crate::bar::bar;
use crate::event::Phase;
use crate::group::Message;
use crate::links::{Link, links};
use crate::nodes::{Node, Tally};
use crate::storm::{self, Line};
use crate::words;

/// Slack's maximum length of a header, in characters.
const HEADER: usize = 150;
/// Slack's maximum length of a section, in characters.
const SECTION: usize = 3000;
/// Maximum number of nodes in a message, because Slack accepts only 50 blocks.
const NODES: usize = 20;
const PODS: usize = 20;
/// Maximum characters of a line before escaping.
const LINE: usize = 300;

/// Renders a message as JSON for Slack.
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
    let links = links(message).into_iter().map(|Link { name, address }| format!("<{address}|{name}>"));
    blocks.push(section(&links.collect::<Vec<_>>().join(" · ")));
    blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": line(&words::origin(message))}]}));
    json!({"text": words::clip(&escape(&headline), SECTION), "blocks": blocks})
}

fn symbol(phase: Phase, nodes: &[Node<'_>], tally: &Tally) -> &'static str {
    match phase {
        Phase::Begun | Phase::Unblocked => "⏳",
        Phase::Blocked => "🟠",
        Phase::Ended if tally.lost > 0 || nodes.iter().any(|node| node.ended(Ending::Failed)) => "🔴",
        Phase::Ended => "🟢",
    }
}

fn lines(message: &Message<'_>) -> Vec<String> {
    let lines = storm::lines(message).into_iter().map(|Line { subject, text }| match subject {
        Some(subject) => format!("*{}*\n{}", line(&subject), line(&text)),
        None => line(&text),
    });
    let mut lines: Vec<_> = lines.collect();
    words::shorten(&mut lines, NODES);
    lines
}

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

fn line(text: &str) -> String {
    dates(&escape(&words::clip(text, LINE)))
}

/// Converts the times in a text to Slack's date format, which Slack shows in the reader's time zone.
fn dates(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if let Some((at, length)) = leading_time(rest) {
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

/// Parses a time at the start of a text. Returns the time and the number of parsed bytes.
fn leading_time(text: &str) -> Option<(Timestamp, usize)> {
    [("%Y-%m-%d %H:%M:%S UTC", "2026-11-21 03:14:00 UTC".len()), ("%Y-%m-%dT%H:%M:%SZ", "2026-11-21T03:14:00Z".len())]
        .into_iter()
        .find_map(|(form, length)| {
            let time = DateTime::strptime(form, text.get(..length)?).ok()?;
            Some((time.to_zoned(TimeZone::UTC).ok()?.timestamp(), length))
        })
}

/// Escapes Slack's three control characters.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::samples::{begun, blocked, ended, ended_with, lossy, unblocked};
    use crate::test_support;

    /// Text of the notification and the blocks, one in each line.
    fn shown(events: &[Event]) -> String {
        let events: Vec<&Event> = events.iter().collect();
        let message = message(&test_support::message(&events));
        let blocks = message["blocks"].as_array().expect("blocks").iter().map(Value::to_string);
        let lines = [message["text"].to_string()].into_iter().chain(blocks);
        test_support::without_addresses(&lines.collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn failed_drain_lists_lost_pods() {
        insta::assert_snapshot!(shown(&[lossy(1)]));
    }

    #[test]
    fn times_become_dates_of_the_readers_zone() {
        let date = |second: i64, written| format!("<!date^{second}^{{date_short_pretty}} {{time_secs}}|{written}>");
        let (ours, receipts) = ("2026-11-21 03:14:00 UTC", "2026-11-21T03:13:28Z");
        assert_eq!(dates(&format!("häuser, ends at {ours}")), format!("häuser, ends at {}", date(1_795_230_840, ours)));
        assert_eq!(dates(&format!("until {receipts} or")), format!("until {} or", date(1_795_230_808, receipts)));
        for none in ["2026-11-21", "2026-13-21 03:14:00 UTC", "20 26-11-21T03:13:28", "ä", ""] {
            assert_eq!(dates(none), none);
        }
    }

    #[test]
    fn failed_or_lossy_drain_is_red() {
        let lost = json!([{"pod": "shop/cart-1", "fate": "lost"}]);
        for (event, symbol) in [
            (begun(1), "⏳"),
            (blocked(1), "🟠"),
            (unblocked(1), "⏳"),
            (ended(1, "drained"), "🟢"),
            (ended(1, "failed"), "🔴"),
            (ended_with(1, "drained", &lost), "🔴"),
        ] {
            let message = message(&test_support::message(&[&event]));
            let header = message["blocks"][0]["text"]["text"].as_str().expect("a text");
            assert!(header.starts_with(symbol), "{header} for {:?}", event.receipt.ending);
        }
    }

    #[test]
    fn lines_share_a_section_up_to_its_limit() {
        let lines = |lengths: [usize; 2]| lengths.map(|length| "x".repeat(length));
        assert_eq!(sections(&lines([SECTION / 2, SECTION / 2 - 1])).len(), 1);
        assert_eq!(sections(&lines([SECTION / 2, SECTION / 2])).len(), 2);
    }

    #[test]
    fn largest_messages_keep_to_slacks_limits() {
        let noise = "<&>".repeat(1000);
        // Five notices have the longest links.
        for count in [5, 100] {
            let events: Vec<_> = (0..count)
                .map(|n| {
                    let mut event = lossy(n);
                    event.receipt.reason.clone_from(&noise);
                    event.receipt.node = Some(noise.clone());
                    event.receipt.notice.event_id = Some(format!("{n:x>64}"));
                    for pod in event.receipt.records_mut() {
                        pod.why = Some(noise.clone());
                    }
                    event
                })
                .collect();
            let events: Vec<&Event> = events.iter().collect();
            let message = message(&test_support::message(&events));
            let blocks = message["blocks"].as_array().expect("blocks");
            assert!((8..=50).contains(&blocks.len()), "{} blocks", blocks.len());
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
}
