//! A message as plain JSON, for programs. docs/message.schema.json describes it.

use jiff::Timestamp;
use serde::Serialize;
use serde_with::skip_serializing_none;
use spillway_receipt::{Ending, Receipt};

use crate::event::{Event, Phase};
use crate::group::Message;
use crate::nodes::{Node, Tally};
use crate::words;

/// The version of this form. It changes when a field is renamed or changes its meaning.
const VERSION: u32 = 2;
/// A message of a hundred drains, each with so many lost pods, is about two megabytes.
const LOST: usize = 100;

/// The body of the request.
pub(crate) fn body(message: &Message<'_>) -> String {
    serde_json::to_string(&Plain::of(message)).expect("plain data with string keys")
}

/// Like [`body`], but says why the template was not used.
pub(crate) fn body_instead(message: &Message<'_>, why: String) -> String {
    let plain = Plain::of(message);
    let text = format!("{} ({why})", plain.text);
    serde_json::to_string(&Plain { text, template_error: Some(why), ..plain }).expect("plain data with string keys")
}

/// One message.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Plain<'a> {
    #[serde(rename = "message")]
    version: u32,
    /// Whether the drains have begun, are blocked, are no longer, or have ended.
    phase: Phase,
    /// The news in a line; what a chat shows that is given this form.
    text: String,
    /// Why the template was not used.
    template_error: Option<String>,
    /// What it tells of.
    notices: Vec<Told<'a>>,
}

/// What became of one notice for one instance.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Told<'a> {
    /// What happened, in a sentence.
    text: String,
    event_id: Option<&'a str>,
    /// The kind of notice.
    kind: Option<&'a str>,
    /// When AWS gave notice.
    time: Option<Timestamp>,
    /// When the instance goes.
    deadline: Option<Timestamp>,
    account: Option<&'a str>,
    region: Option<&'a str>,
    zone: Option<&'a str>,
    cluster: Option<&'a str>,
    node: Option<&'a str>,
    instance: Option<&'a str>,
    instance_type: Option<&'a str>,
    auto_scaling_group: Option<&'a str>,
    /// What manages the node's life.
    managed_by: Option<&'a str>,
    /// What was to be done.
    decision: Option<&'a str>,
    /// Absent while the drain goes on.
    ending: Option<Ending>,
    /// Stable type of the error, if the notice failed.
    error: Option<&'a str>,
    /// Whether nothing was touched, whatever was found.
    dry_run: bool,
    /// How many pods came to which end.
    pods: Tally,
    /// The pods that were lost; the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<Lost<'a>>,
    /// Finds the receipt in the log.
    request_id: &'a str,
}

/// A pod that was still there when the time was up.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Lost<'a> {
    /// namespace/name
    pod: &'a str,
    why: Option<&'a str>,
}

impl<'a> Plain<'a> {
    /// The message in this form.
    fn of(message: &Message<'a>) -> Self {
        Self {
            version: VERSION,
            phase: message.phase,
            text: words::headline(message),
            template_error: None,
            notices: message.events.iter().map(|event| Told::of(event)).collect(),
        }
    }
}

impl<'a> Told<'a> {
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
            account: given(&receipt.account),
            region: given(&receipt.region),
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

/// A text, if there is one.
fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::json;

    use super::*;
    use crate::samples::{self, begun, ended, lossy};

    #[test]
    fn a_drain_that_begins() {
        insta::assert_json_snapshot!(Plain::of(&samples::message(&[&begun(1)])));
    }

    #[test]
    fn drains_that_ended() {
        insta::assert_json_snapshot!(Plain::of(&samples::message(&[&ended(1, "drained"), &lossy(2)])));
    }

    #[test]
    fn the_schema_in_the_documents_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/message.schema.json");
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = generator.into_root_schema_for::<Plain<'_>>().to_value();
        schema["title"] = json!("Spillway's message, as the webhook gets it with WEBHOOK_FORMAT=json");
        let schema = serde_json::to_string_pretty(&schema).expect("plain data") + "\n";
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == schema, "docs/message.schema.json is another schema than this:\n{schema}");
    }
}
