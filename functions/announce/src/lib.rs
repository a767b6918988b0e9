//! Announce function: sends messages about the drain function's receipts to people.
//!
//! Read `handler` first, which handles a batch of SQS records.
//!
//! `preview` renders messages about sample drains without sending them.

// The future of a delivery exceeds the default of 128.
#![recursion_limit = "256"]

mod bar;
mod delivered;
mod document;
mod echo;
mod event;
mod form;
mod group;
mod handler;
mod http;
mod json;
mod links;
mod nodes;
pub mod preview;
mod preview_request;
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
#[cfg(test)]
mod test_support;
mod text;
mod topic;
mod webhook;
mod words;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use spillway_aws_call::Caller;
use spillway_startup::aws::Connections;
use spillway_startup::logs;

use crate::handler::Announcer;
use crate::settings::Settings;
use crate::sink::{Channel, Sink};
use crate::stored::Stored;
use crate::topic::Topic;
use crate::webhook::Webhook;

pub async fn run() -> Result<(), Error> {
    logs::start();
    let settings = Settings::from_variables(std::env::vars()).inspect_err(|error| {
        tracing::error!(error = %error, "the function does not start: a setting is wrong; correct its parameter and deploy the stack");
    })?;
    let aws = Caller::new(&spillway_startup::aws::configuration(&Connections::new())?)?;
    let Settings { queue_arn, log_group, webhook, topic } = settings;
    let channels = [
        webhook.map(|name| Channel::Webhook(Webhook::new(Stored::new(name, aws.clone())))),
        topic.map(|settings| Channel::Topic(Topic::new(settings, aws.clone()))),
    ];
    let sinks = channels.into_iter().flatten().map(|channel| Sink::new(channel, &log_group)).collect();
    let announcer = Announcer { queue_arn, sinks };
    let announcer = &announcer;
    let handle = |event: LambdaEvent<Value>| async move {
        match preview_request::answer(&event.payload) {
            Some(preview) => Ok::<Value, Error>(preview),
            None => Ok(serde_json::to_value(announcer.answer(event).await?)?),
        }
    };
    lambda_runtime::run(service_fn(handle)).await
}
