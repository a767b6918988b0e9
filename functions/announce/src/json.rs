//! Renders a message as JSON for programs (`docs/message.schema.json`).

use jiff::Timestamp;
use serde::Serialize;
use serde_with::skip_serializing_none;
use spillway_receipt::{Ending, Receipt};

use crate::event::{Event, Phase};
use crate::group::Message;
use crate::nodes::{Node, Tally};
use crate::words;

/// Version of the format, raised when a field is renamed or changes its meaning.
const VERSION: u32 = 2;
/// Maximum number of lost pods that are listed for a notice.
const LOST: usize = 100;

pub(crate) fn body(message: &Message<'_>) -> String {
    serde_json::to_string(&Plain::of(message)).expect("plain data with string keys")
}

/// Returns the message as JSON, including the error of a template that could not be rendered.
pub(crate) fn body_with_error(message: &Message<'_>, why: String) -> String {
    let plain = Plain::of(message);
    let text = format!("{} ({why})", plain.text);
    serde_json::to_string(&Plain { text, template_error: Some(why), ..plain }).expect("plain data with string keys")
}

/// Message about one or several notices.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Plain<'a> {
    #[serde(rename = "message")]
    version: u32,
    /// Phase of the drains.
    phase: Phase,
    /// Headline of the message.
    text: String,
    /// Error of the template that could not be rendered.
    template_error: Option<String>,
    /// Notices of the message.
    notices: Vec<NoticeData<'a>>,
}

/// Notice for one instance.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NoticeData<'a> {
    /// Sentence about the notice.
    text: String,
    event_id: Option<&'a str>,
    /// Kind of notice.
    kind: Option<&'a str>,
    /// Time of the notice.
    time: Option<Timestamp>,
    /// Time at which the instance goes down.
    deadline: Option<Timestamp>,
    account: Option<&'a str>,
    region: Option<&'a str>,
    zone: Option<&'a str>,
    cluster: Option<&'a str>,
    node: Option<&'a str>,
    instance: Option<&'a str>,
    instance_type: Option<&'a str>,
    auto_scaling_group: Option<&'a str>,
    /// Manager of the node, such as Karpenter.
    managed_by: Option<&'a str>,
    /// Action that the settings select for the notice.
    decision: Option<&'a str>,
    /// Result of the drain. Absent before the drain has ended.
    ending: Option<Ending>,
    /// Error type, if handling the notice failed.
    error: Option<&'a str>,
    /// `true` in a dry run, which changes nothing.
    dry_run: bool,
    /// Numbers of pods by fate.
    pods: Tally,
    /// First hundred lost pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<Lost<'a>>,
    /// Request id, which identifies the receipt in the log.
    request_id: &'a str,
}

/// Pod that was still on the node when the time for the drain was up.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Lost<'a> {
    /// namespace/name
    pod: &'a str,
    why: Option<&'a str>,
}

impl<'a> Plain<'a> {
    fn of(message: &Message<'a>) -> Self {
        Self {
            version: VERSION,
            phase: message.phase,
            text: words::headline(message),
            template_error: None,
            notices: message.events.iter().map(|event| NoticeData::of(event)).collect(),
        }
    }
}

impl<'a> NoticeData<'a> {
    fn of(event: &'a Event) -> Self {
        let receipt: &Receipt = &event.receipt;
        let node = Node::of(event);
        let lost = node.lost().into_iter().take(LOST).map(|pod| Lost { pod: &pod.pod, why: pod.why.as_deref() });
        Self {
            text: words::sentence(event),
            event_id: receipt.notice.event_id.as_deref(),
            kind: receipt.notice.kind.as_deref(),
            time: receipt.notice.time,
            deadline: receipt.notice.deadline,
            account: nonempty(&receipt.account),
            region: nonempty(&receipt.region),
            zone: receipt.zone.as_deref(),
            cluster: receipt.cluster.as_deref(),
            node: receipt.node.as_deref(),
            instance: receipt.instance.as_deref(),
            instance_type: receipt.instance_type.as_deref(),
            auto_scaling_group: receipt.auto_scaling_group.as_deref(),
            managed_by: receipt.managed_by.as_deref(),
            decision: receipt.decision.as_deref(),
            ending: receipt.ending,
            error: receipt.error.as_deref(),
            dry_run: receipt.dry_run,
            pods: node.tally(),
            lost: lost.collect(),
            request_id: &receipt.request_id,
        }
    }
}

fn nonempty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::json;

    use super::*;
    use crate::samples::{begun, ended, lossy};
    use crate::test_support;

    /// The message and its notices, one in each line.
    fn shown(events: &[&Event]) -> String {
        let Plain { notices, .. } = Plain::of(&test_support::message(events));
        let message = Plain { notices: Vec::new(), ..Plain::of(&test_support::message(events)) };
        let notices = notices.iter().map(|notice| serde_json::to_string(notice).expect("plain data"));
        let lines = [serde_json::to_string(&message).expect("plain data")].into_iter().chain(notices);
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn begun_and_ended_drains() {
        insta::assert_snapshot!(shown(&[&begun(1)]) + "\n" + &shown(&[&ended(1, "drained"), &lossy(2)]));
    }

    #[test]
    fn schema_of_the_page_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/message.schema.json");
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = generator.into_root_schema_for::<Plain<'_>>().to_value();
        schema["title"] = json!("Spillway's message, as the webhook gets it with WEBHOOK_FORMAT=json");
        let schema = serde_json::to_string_pretty(&schema).expect("plain data") + "\n";
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == schema, "docs/message.schema.json differs from the schema of the types:\n{schema}");
    }
}
