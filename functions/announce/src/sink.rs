//! Delivers messages to one channel: a webhook or an SNS topic.

use std::collections::BTreeSet;

use spillway_aws_call::CallError;
use spillway_startup::logs::chain;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::delivered::Delivered;
use crate::event::Event;
use crate::group::{self, Message};
use crate::retry::TIME_UP;
use crate::topic::Topic;
use crate::webhook::{Webhook, WebhookError};
use crate::words;

#[derive(Debug)]
pub(crate) struct Sink {
    channel: Channel,
    log_group: String,
    delivered: Delivered,
}

#[derive(Debug)]
pub(crate) enum Channel {
    Webhook(Webhook),
    Topic(Topic),
}

#[derive(Debug, PartialEq, Eq)]
enum Delivery {
    Delivered,
    /// The webhook refused a message about several notices, but may accept one message for each notice.
    TooLarge,
    Failed,
}

#[derive(Debug, thiserror::Error)]
enum SinkError {
    #[error("{}", TIME_UP)]
    TimeUp,
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    #[error(transparent)]
    Topic(#[from] CallError),
}

impl Sink {
    pub(crate) fn new(channel: Channel, log_group: &str) -> Self {
        Self { channel, log_group: log_group.to_owned(), delivered: Delivered::default() }
    }

    /// Sends messages about events that this sink has not delivered yet. Returns the events for which sending failed.
    pub(crate) async fn deliver<'a>(&'a self, events: &[&'a Event], end: Instant) -> Vec<&'a Event> {
        let new: Vec<_> = events.iter().copied().filter(|event| !self.delivered.has(event)).collect();
        let mut failed = Vec::new();
        for message in self.messages(&new) {
            match self.handle(&message, end).await {
                Delivery::Delivered => {}
                Delivery::Failed => failed.extend_from_slice(&message.events),
                Delivery::TooLarge => {
                    for single in message.singles() {
                        if self.handle(&single, end).await != Delivery::Delivered {
                            failed.extend_from_slice(&single.events);
                        }
                    }
                }
            }
        }
        failed
    }

    /// Returns the tracing span of a message.
    fn span(&self, message: &Message<'_>) -> Span {
        let receipts = || message.events.iter().map(|event| &event.receipt);
        let event_ids = list(receipts().filter_map(|receipt| receipt.notice.event_id.as_deref()));
        let instance_ids = list(receipts().filter_map(|receipt| receipt.instance.as_deref()));
        tracing::error_span!("message", channel = self.name(), event.id = event_ids, instance.id = instance_ids)
    }

    async fn handle(&self, message: &Message<'_>, end: Instant) -> Delivery {
        self.send_and_record(message, end).instrument(self.span(message)).await
    }

    async fn send_and_record(&self, message: &Message<'_>, end: Instant) -> Delivery {
        let news = words::headline(message);
        match self.send(message, end).await {
            Ok(()) => {
                for event in &message.events {
                    self.delivered.record(event);
                }
                tracing::info!(news, "delivered");
                Delivery::Delivered
            }
            Err(SinkError::Webhook(WebhookError::TooLarge(error))) => {
                tracing::warn!(
                    news,
                    error = chain(&error),
                    "the webhook refuses one message for several notices; sending one for each"
                );
                Delivery::TooLarge
            }
            Err(error) => {
                let error = chain(&error);
                tracing::error!(news, error, "cannot deliver a message; SQS sends it again, five times in all");
                Delivery::Failed
            }
        }
    }

    fn messages<'a>(&'a self, events: &[&'a Event]) -> Vec<Message<'a>> {
        let news: Vec<_> = events.iter().copied().filter(|event| !self.delivered.supersedes(event)).collect();
        group::messages(&news, &self.log_group)
    }

    async fn send(&self, message: &Message<'_>, end: Instant) -> Result<(), SinkError> {
        if Instant::now() >= end {
            return Err(SinkError::TimeUp);
        }
        match &self.channel {
            Channel::Webhook(webhook) => Ok(webhook.send(message, end).await?),
            Channel::Topic(topic) => Ok(topic.send(message, end).await?),
        }
    }

    fn name(&self) -> &'static str {
        match self.channel {
            Channel::Webhook(_) => "webhook",
            Channel::Topic(_) => "topic",
        }
    }
}

/// Joins the distinct ids for a log field.
fn list<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    ids.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;
    use gotemplate_json::Template;
    use serde_json::{Value, json};

    use super::*;
    use crate::samples::{begun, ended, ended_with, lossy};
    use crate::test_support;

    /// Headlines of the messages about successive batches.
    async fn headlines(batches: &[&[&Event]]) -> Vec<String> {
        let (address, requests) = test_support::server(|| StatusCode::OK.into_response()).await;
        let sink = Sink::new(Channel::Webhook(test_support::webhook(&address, "{}", None)), "");
        for batch in batches {
            let failed = sink.deliver(batch, Instant::now() + Duration::from_secs(60)).await;
            assert!(failed.is_empty(), "{failed:#?}");
        }
        let requests = requests.lock().expect("unpoisoned");
        let text = |body: &str| serde_json::from_str::<Value>(body).expect("JSON")["text"].as_str().map(str::to_owned);
        let texts = requests.iter().filter_map(|(_, _, body)| text(body));
        texts.map(|text| text.replace(".eu-west-1.compute.internal of prod", "")).collect()
    }

    #[tokio::test]
    async fn refused_template_message_is_posted_per_notice() {
        let posts = Arc::new(AtomicUsize::new(0));
        let answer = move || match posts.fetch_add(1, Ordering::Relaxed) {
            0 => StatusCode::BAD_REQUEST.into_response(),
            2 => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
            _ => StatusCode::OK.into_response(),
        };
        let (address, requests) = test_support::server(answer).await;
        let template =
            Template::parse("{{ range .Notices }}{{ .NodeName }} {{ end }}{{ .Phase }}").expect("a template");
        let sink = Sink::new(Channel::Webhook(test_support::templated(&address, template)), "");
        let events = [begun(1), begun(2), begun(3)];
        let all: Vec<&Event> = events.iter().collect();
        let end = || Instant::now() + Duration::from_secs(60);
        let failed = sink.deliver(&all, end()).await;
        assert_eq!(failed.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["begun-2"]);
        assert!(sink.deliver(&all, end()).await.is_empty());
        let requests = requests.lock().expect("unpoisoned");
        let nodes = requests.iter().map(|(_, _, body)| body.matches("ip-10").count()).collect::<Vec<_>>();
        assert_eq!(nodes, [3, 1, 1, 1, 1]);
    }

    fn attempt(id: &str, event: Event) -> Event {
        Event { id: id.to_owned(), ..event }
    }

    #[tokio::test]
    async fn late_beginning_and_repeated_failure_are_not_sent() {
        let late = headlines(&[&[&ended(1, "drained")], &[&begun(1), &begun(2)]]).await;
        assert_eq!(late, ["Drained: ip-10-0-0-1", "Draining ip-10-0-0-2"]);
        let (too_late, again) = (attempt("second", ended(1, "failed")), attempt("third", lossy(1)));
        let repeated = headlines(&[&[&begun(1)], &[&lossy(1)], &[&too_late], &[&again]]).await;
        assert_eq!(repeated, ["Draining ip-10-0-0-1", "Failed: ip-10-0-0-1, 2 pods lost"]);
    }

    #[tokio::test]
    async fn better_or_more_lossy_attempt_is_sent() {
        let (lossy, drained) = (attempt("second", lossy(1)), attempt("third", ended(1, "drained")));
        let first = ended_with(1, "failed", &json!([{"pod": "shop/late", "fate": "lost"}]));
        let late = attempt("late", first);
        let sent = headlines(&[&[&ended(1, "failed")], &[&lossy], &[&drained], &[&late]]).await;
        assert_eq!(sent, ["Failed: ip-10-0-0-1", "Failed: ip-10-0-0-1, 2 pods lost", "Drained: ip-10-0-0-1"]);
    }

    #[tokio::test]
    async fn pods_lost_by_another_notice_are_not_sent_again() {
        let mut other = attempt("other", lossy(1));
        other.receipt.request_id = "r-2".to_owned();
        let mut elsewhere = lossy(1);
        elsewhere.id = "elsewhere".to_owned();
        elsewhere.receipt.request_id = "r-3".to_owned();
        elsewhere.receipt.instance = Some("i-2".to_owned());
        assert_eq!(headlines(&[&[&lossy(1)], &[&other], &[&elsewhere]]).await.len(), 2);
    }
}
