//! Where messages go. Each sink is served by itself: a failure of one does not concern another.

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

/// One sink, and the events that it has had.
#[derive(Debug)]
pub(crate) struct Sink {
    way: Way,
    delivered: Delivered,
}

/// The kinds of sinks.
#[derive(Debug)]
pub(crate) enum Way {
    Webhook(Webhook),
    Topic(Topic),
}

/// The fate of one message.
#[derive(Debug, PartialEq, Eq)]
enum Delivery {
    Taken,
    /// Refused; each of its notices may be taken.
    TooMuch,
    Missed,
}

/// The failure of one message.
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
    pub(crate) fn new(way: Way) -> Self {
        Self { way, delivered: Delivered::default() }
    }

    /// Sends what is news to it, until the time is up. Answers the events that it should have had and has not.
    pub(crate) async fn deliver<'a>(&self, events: &[&'a Event], until: Instant) -> Vec<&'a Event> {
        let new: Vec<_> = events.iter().copied().filter(|event| !self.delivered.has(event)).collect();
        let mut missed = Vec::new();
        for message in self.messages(&new) {
            match self.handle(&message, until).await {
                Delivery::Taken => {}
                Delivery::Missed => missed.extend_from_slice(&message.events),
                Delivery::TooMuch => {
                    for single in message.singles() {
                        if self.handle(&single, until).await != Delivery::Taken {
                            missed.extend_from_slice(&single.events);
                        }
                    }
                }
            }
        }
        missed
    }

    /// The span of a message: the channel that it goes to, and the notices and instances that it tells of.
    fn span(&self, message: &Message<'_>) -> Span {
        let receipts = || message.events.iter().map(|event| &event.receipt);
        let event_ids = list(receipts().filter_map(|receipt| receipt.notice.event_id.as_deref()));
        let instance_ids = list(receipts().filter_map(|receipt| receipt.instance.as_deref()));
        tracing::error_span!("message", channel = self.name(), event.id = event_ids, instance.id = instance_ids)
    }

    /// Sends one message in its span.
    async fn handle(&self, message: &Message<'_>, until: Instant) -> Delivery {
        self.send_and_note(message, until).instrument(self.span(message)).await
    }

    /// Sends one message and remembers its events.
    async fn send_and_note(&self, message: &Message<'_>, until: Instant) -> Delivery {
        let news = words::headline(message);
        match self.send(message, until).await {
            Ok(()) => {
                for event in &message.events {
                    self.delivered.note(event);
                }
                tracing::info!(news, "delivered");
                Delivery::Taken
            }
            Err(SinkError::Webhook(WebhookError::TooMuch(error))) => {
                tracing::warn!(news, error = chain(&error), "refused: each notice is posted by itself");
                Delivery::TooMuch
            }
            Err(error) => {
                tracing::error!(news, error = chain(&error), "not delivered: the queue brings it back");
                Delivery::Missed
            }
        }
    }

    fn messages<'a>(&self, events: &[&'a Event]) -> Vec<Message<'a>> {
        let news: Vec<_> = events.iter().copied().filter(|event| !self.delivered.outdates(event)).collect();
        group::messages(&news)
    }

    /// Sends one message, or says why not. Nothing is begun when the time is up.
    async fn send(&self, message: &Message<'_>, until: Instant) -> Result<(), SinkError> {
        if Instant::now() >= until {
            return Err(SinkError::TimeUp);
        }
        match &self.way {
            Way::Webhook(webhook) => Ok(webhook.send(message, until).await?),
            Way::Topic(topic) => Ok(topic.send(message, until).await?),
        }
    }

    fn name(&self) -> &'static str {
        match self.way {
            Way::Webhook(_) => "webhook",
            Way::Topic(_) => "topic",
        }
    }
}

/// Each once, as one field of a log line.
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
    use crate::wire;

    /// What people read of batches that come one after another.
    async fn read(batches: &[&[&Event]]) -> Vec<String> {
        let (address, asked) = wire::server(|| StatusCode::OK.into_response()).await;
        let sink = Sink::new(Way::Webhook(wire::webhook(&address, "{}", None)));
        for batch in batches {
            let missed = sink.deliver(batch, Instant::now() + Duration::from_secs(60)).await;
            assert!(missed.is_empty(), "{missed:#?}");
        }
        let asked = asked.lock().expect("unpoisoned");
        let text = |body: &str| serde_json::from_str::<Value>(body).expect("JSON")["text"].as_str().map(str::to_owned);
        asked.iter().filter_map(|(_, _, body)| text(body)).collect()
    }

    #[tokio::test]
    async fn refused_template_message_is_posted_per_notice() {
        let posts = Arc::new(AtomicUsize::new(0));
        let answer = move || match posts.fetch_add(1, Ordering::Relaxed) {
            0 => StatusCode::BAD_REQUEST.into_response(),
            2 => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
            _ => StatusCode::OK.into_response(),
        };
        let (address, asked) = wire::server(answer).await;
        let template =
            Template::parse("{{ range .Notices }}{{ .NodeName }} {{ end }}{{ .Phase }}").expect("a template");
        let sink = Sink::new(Way::Webhook(wire::templated(&address, template)));
        let events = [begun(1), begun(2), begun(3)];
        let all: Vec<&Event> = events.iter().collect();
        let until = || Instant::now() + Duration::from_secs(60);
        let missed = sink.deliver(&all, until()).await;
        assert_eq!(missed.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["begun-2"]);
        // What was taken is not posted again.
        assert!(sink.deliver(&all, until()).await.is_empty());
        let asked = asked.lock().expect("unpoisoned");
        let nodes = asked.iter().map(|(_, _, body)| body.matches("ip-10").count()).collect::<Vec<_>>();
        assert_eq!(nodes, [3, 1, 1, 1, 1]);
    }

    fn attempt(id: &str, event: Event) -> Event {
        Event { id: id.to_owned(), ..event }
    }

    #[tokio::test]
    async fn a_beginning_that_comes_back_after_its_end_was_told_is_no_news() {
        let read = read(&[&[&ended(1, "drained")], &[&begun(1), &begun(2)]]).await;
        assert_eq!(
            read,
            [
                "Drained: ip-10-0-0-1.eu-west-1.compute.internal of prod",
                "Draining ip-10-0-0-2.eu-west-1.compute.internal of prod",
            ]
        );
    }

    #[tokio::test]
    async fn an_attempt_that_fails_again_is_no_news() {
        let (too_late, again) = (attempt("second", ended(1, "failed")), attempt("third", lossy(1)));
        let read = read(&[&[&begun(1)], &[&lossy(1)], &[&too_late], &[&again]]).await;
        assert_eq!(
            read,
            [
                "Draining ip-10-0-0-1.eu-west-1.compute.internal of prod",
                "Failed: ip-10-0-0-1.eu-west-1.compute.internal of prod, 2 pods lost",
            ]
        );
    }

    #[tokio::test]
    async fn an_attempt_that_does_better_or_loses_more_is_news() {
        let (lossy, drained) = (attempt("second", lossy(1)), attempt("third", ended(1, "drained")));
        let first_of_all = ended_with(1, "failed", &json!([{"pod": "shop/late", "fate": "lost"}]));
        let came_back = attempt("came-back", first_of_all);
        let read = read(&[&[&ended(1, "failed")], &[&lossy], &[&drained], &[&came_back]]).await;
        assert_eq!(
            read,
            [
                "Failed: ip-10-0-0-1.eu-west-1.compute.internal of prod",
                "Failed: ip-10-0-0-1.eu-west-1.compute.internal of prod, 2 pods lost",
                "Drained: ip-10-0-0-1.eu-west-1.compute.internal of prod",
            ]
        );
    }

    #[tokio::test]
    async fn pods_that_another_notice_lost_before_are_no_news() {
        let mut other = attempt("other", lossy(1));
        other.receipt.request_id = "r-2".to_owned();
        let mut elsewhere = lossy(1);
        elsewhere.id = "elsewhere".to_owned();
        elsewhere.receipt.request_id = "r-3".to_owned();
        elsewhere.receipt.instance = Some("i-2".to_owned());
        assert_eq!(read(&[&[&lossy(1)], &[&other], &[&elsewhere]]).await.len(), 2);
    }
}
