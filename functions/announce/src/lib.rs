//! The announce function: the drain function's receipts in, messages to people out.
//!
//! # Layout
//! Read `handler` first: it tells what happens to a batch of the queue, in order.
//! * `event`, `receipt`: what the queue brings, and what is asked of it (pure)
//! * `group`: which messages a batch makes; `nodes`: of which nodes and pods they tell (pure)
//! * `words`, `storm`, `bar`: what a message says, what it says of many nodes, and its picture (pure)
//! * `slack`, `json`, `text`, `amazon_q`: the forms of a message (pure)
//! * `form`: which of them the webhook gets; `template`: the fields that a Go template finds
//! * `sink`: where messages go, each sink by itself; `delivered`: what it has had
//! * `webhook`, `topic`, `bucket`: the sinks
//! * `stored`: the webhook's document, where it is kept; `target`: one POST to its address; `document`: what it says (pure)
//! * `http`: the webhook's client, with bounds; `retry`: how often a sink is asked
//! * `echo`: the text of an answer, without the secrets of the request (pure)
//!
//! `preview` shows messages without sending any. This file wires them and nothing else.

mod amazon_q;
mod bar;
mod bucket;
mod delivered;
mod document;
mod echo;
mod event;
mod form;
mod group;
mod handler;
mod http;
mod json;
mod nodes;
pub mod preview;
mod receipt;
mod retry;
mod samples;
mod settings;
mod sink;
mod slack;
mod stored;
mod storm;
mod target;
mod template;
mod text;
mod topic;
mod webhook;
#[cfg(test)]
mod wire;
mod words;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use spillway_aws_call::Caller;
use spillway_startup::aws::Connections;
use spillway_startup::logs;

use crate::bucket::Bucket;
use crate::handler::Announcer;
use crate::settings::Settings;
use crate::sink::{Sink, Way};
use crate::stored::Stored;
use crate::topic::Topic;
use crate::webhook::Webhook;

/// The function: takes batches from Lambda for as long as Lambda has any.
pub async fn run() -> Result<(), Error> {
    logs::start();
    let settings = Settings::from_variables(std::env::vars()).inspect_err(|error| {
        tracing::error!(error = %error, "the function does not start: correct its settings");
    })?;
    let aws = Caller::new(&spillway_startup::aws::configuration(&Connections::new())?)?;
    let Settings { queue_arn, webhook, topic, receipt_bucket } = settings;
    let ways = [
        webhook.map(|name| Way::Webhook(Webhook::new(Stored::new(name, aws.clone())))),
        topic.map(|settings| Way::Topic(Topic::new(settings, aws.clone()))),
        receipt_bucket.map(|name| Way::Bucket(Bucket::new(name, aws.clone()))),
    ];
    let announcer = Announcer { queue_arn, sinks: ways.into_iter().flatten().map(Sink::new).collect() };
    lambda_runtime::run(service_fn(|asked: LambdaEvent<Value>| announcer.answer(asked))).await
}
