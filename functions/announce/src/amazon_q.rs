//! A message for Amazon Q Developer in chat applications, which passes over whatever is not in its schema:
//! <https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html>

use serde_json::{Map, Value, json};
use spillway_receipt::{DRAIN_BEGUN, DRAIN_BLOCKED, DRAIN_UNBLOCKED, RECEIPT};

use crate::bar::bar;
use crate::event::Phase;
use crate::group::Message;
use crate::nodes::Tally;
use crate::storm::{self, Link, Told};
use crate::words;

/// The schema's page names no limits; so much fits into a header and a section of Slack, where it is shown.
const TITLE: usize = 150;
const DESCRIPTION: usize = 3000;
/// Fourteen such lines fit into a description.
const NODES: usize = 7;
const PODS: usize = 7;
const LINE: usize = 200;

/// The notification.
pub(crate) fn notification(message: &Message<'_>) -> Value {
    let tally = Tally::of(&message.nodes());
    let mut content = Map::new();
    content.insert("textType".to_owned(), json!("client-markdown"));
    content.insert("title".to_owned(), json!(words::clip(&words::headline(message), TITLE)));
    content.insert("description".to_owned(), json!(words::clip(&description(message, &tally), DESCRIPTION)));
    if tally.lost > 0 {
        let next =
            "In CloudWatch Logs Insights the saved query \"pods lost or forced\" has each lost pod and what blocked it";
        content.insert("nextSteps".to_owned(), json!([next]));
    }
    let mut metadata = Map::new();
    let event_type = match message.phase {
        Phase::Begun => DRAIN_BEGUN,
        Phase::Blocked => DRAIN_BLOCKED,
        Phase::Unblocked => DRAIN_UNBLOCKED,
        Phase::Ended => RECEIPT,
    };
    metadata.insert("eventType".to_owned(), json!(event_type));
    metadata.insert("summary".to_owned(), json!(words::clip(&words::headline(message), TITLE)));
    // What is told of one notice stands in one thread.
    if let [event] = message.events.as_slice()
        && let Some(event_id) = &event.receipt.notice.event_id
    {
        metadata.insert("threadId".to_owned(), json!(event_id));
    }
    json!({"version": "1.0", "source": "custom", "content": content, "metadata": metadata})
}

fn description(message: &Message<'_>, tally: &Tally) -> String {
    let told = storm::told(message)
        .into_iter()
        .map(|Told { of, text }| words::clip(&format!("**{}**: {}", plain(&of), plain(&text)), LINE));
    let mut lines: Vec<_> = told.collect();
    words::shorten(&mut lines, NODES);
    if message.phase == Phase::Ended && *tally != Tally::default() {
        lines.push(format!("{} {}", bar(tally), words::tally(tally)));
    }
    if tally.lost > 0 {
        lines.push("**Lost**".to_owned());
        lines.extend(words::lost(message, PODS).iter().map(|pod| format!("- {}", words::clip(&plain(pod), LINE))));
    }
    let addresses = storm::links(message).into_iter().map(|Link { name, address }| format!("[{name}]({address})"));
    let addresses: Vec<_> = addresses.collect();
    if !addresses.is_empty() {
        lines.push(format!("{} · {}", addresses.join(" · "), storm::RUNBOOK));
    }
    lines.join("\n")
}

/// A text that is no markup: what AWS or a cluster has written there makes no link, no mention and no code. Replaced, because
/// nobody says how a backslash is shown.
fn plain(text: &str) -> String {
    let shown = |character| match character {
        '[' => '(',
        ']' => ')',
        '<' => '‹',
        '>' => '›',
        '*' => '∗',
        '`' => '\'',
        '|' => '/',
        _ if character.is_control() => ' ',
        _ => character,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, begun, ended, ended_with, lossy};

    #[test]
    fn a_drain_that_begins() {
        insta::assert_json_snapshot!(notification(&samples::message(&[&begun(1)])));
    }

    #[test]
    fn what_others_have_written_is_no_markup() {
        let mut event = lossy(1);
        event.receipt.node = Some("[free](https://evil) <!channel>".to_owned());
        let markup = "**see** `<https://evil|this>`\n# x";
        event.receipt.records_mut().for_each(|pod| pod.why = Some(markup.to_owned()));
        let told = notification(&samples::message(&[&event]));
        let description = told["content"]["description"].as_str().expect("a text");
        for markup in ["](", "<", "`", "**see", "|this", "\n# x"] {
            assert!(!description.contains(markup), "{markup} in {description}");
        }
        assert!(description.contains("(free)(https://evil) ‹!channel›"), "{description}");
    }

    #[test]
    fn a_drain_without_pods_has_no_bar() {
        let event = ended_with(1, "drained", &json!([]));
        let told = notification(&samples::message(&[&event]));
        let description = told["content"]["description"].as_str().expect("a text");
        assert_eq!(description.lines().count(), 1, "{description}");
    }

    #[test]
    fn a_storm_is_told_by_cluster_and_zone_with_links() {
        insta::assert_json_snapshot!(notification(&samples::message(&samples::storm().iter().collect::<Vec<_>>())));
    }

    #[test]
    fn drains_that_ended() {
        insta::assert_json_snapshot!(notification(&samples::message(&[&ended(1, "drained"), &lossy(2)])));
    }
}
