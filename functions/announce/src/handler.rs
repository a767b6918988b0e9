//! Batch of the queue, from its records to what people read, in order.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use futures_util::future::join_all;
use lambda_runtime::{Context, Error, LambdaEvent};
use serde_json::Value;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::event::{self, Event};
use crate::sink::Sink;

/// What is kept back at the end of an invocation, so that the answer still says which records failed.
const FOR_THE_ANSWER: Duration = Duration::from_secs(1);

/// Everything a batch needs, made once when the function starts.
#[derive(Debug)]
pub(crate) struct Announcer {
    /// ARN of the queue whose messages are accepted.
    pub(crate) queue_arn: String,
    pub(crate) sinks: Vec<Sink>,
}

impl Announcer {
    /// Handles a batch of the function's own queue. Every other payload is an error.
    pub(crate) async fn answer(&self, event: LambdaEvent<Value>) -> Result<SqsBatchResponse, Error> {
        let LambdaEvent { payload, context } = event;
        if let Some(source) = self.foreign_source(&payload) {
            return Err(format!("this function takes messages of the queue {:?}; got {source}", self.queue_arn).into());
        }
        self.handle(LambdaEvent::new(serde_json::from_value(payload)?, context)).await
    }

    /// First thing in a payload that is not a message of the function's own queue.
    ///
    /// Whoever may create an event source mapping can make Lambda deliver messages of any queue.
    fn foreign_source(&self, payload: &Value) -> Option<String> {
        let Some(records) = payload["Records"].as_array() else { return Some(quoted(payload)) };
        let mut sources = records.iter().map(|record| &record["eventSourceARN"]);
        sources.find(|source| **source != self.queue_arn).map(|source| format!("one of {}", quoted(source)))
    }

    /// Handles a batch. Answers the records that are to come back, because a sink has not had their event.
    pub(crate) async fn handle(&self, batch: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
        let (until, account) = (end(&batch.context), account(&batch.context));
        let records = batch.payload.records;
        let read: Vec<_> = records.iter().map(|record| read(record, &account)).collect();
        let events: Vec<_> = read.iter().flatten().collect();
        let missed = join_all(self.sinks.iter().map(|sink| sink.deliver(&events, until))).await;
        let missed: HashSet<_> = missed.iter().flatten().map(|event| event.id.as_str()).collect();

        let mut answer = SqsBatchResponse::default();
        for (record, event) in records.iter().zip(&read) {
            if event.as_ref().is_none_or(|event| missed.contains(event.id.as_str())) {
                answer.add_failure(record.message_id.as_deref().unwrap_or_default());
            }
        }
        Ok(answer)
    }
}

/// A record's event. One that cannot be read comes back until the queue keeps it for somebody to look at.
fn read(record: &SqsMessage, account: &str) -> Option<Event> {
    event::read(record.body.as_deref().unwrap_or_default(), account)
        .inspect_err(|error| {
            let record = record.message_id.as_deref();
            tracing::error!(record, error = chain(error), "a record of the queue cannot be read");
        })
        .ok()
}

/// JSON as an error quotes it: its beginning.
fn quoted(json: &Value) -> String {
    format!("{:?}", json.to_string().chars().take(200).collect::<String>())
}

/// The account that the function is in, from its ARN.
fn account(context: &Context) -> String {
    context.invoked_function_arn.split(':').nth(4).unwrap_or_default().to_owned()
}

/// When sending has to stop.
fn end(context: &Context) -> Instant {
    let deadline = UNIX_EPOCH + Duration::from_millis(context.deadline);
    let left = deadline.duration_since(SystemTime::now()).unwrap_or_default();
    Instant::now() + left.saturating_sub(FOR_THE_ANSWER)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;
    use gotemplate_json::Template;
    use serde_json::{Value, json};
    use spillway_startup::logs;
    use tracing::instrument::WithSubscriber as _;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::document::Document;
    use crate::form::Form;
    use crate::sink::Way;
    use crate::stored::Stored;
    use crate::webhook::Webhook;
    use crate::wire::{self, Asked};

    const QUEUE: &str = "arn:aws:sqs:us-east-1:123456789012:messages";

    fn announcer(sinks: Vec<Sink>) -> Announcer {
        Announcer { queue_arn: QUEUE.to_owned(), sinks }
    }

    /// A batch whose records are named m-0, m-1 and so on.
    fn batch(bodies: &[String]) -> LambdaEvent<SqsEvent> {
        let records = bodies.iter().enumerate();
        let records: Vec<_> = records.map(|(n, body)| json!({"messageId": format!("m-{n}"), "body": body})).collect();
        let payload = serde_json::from_value(json!({"Records": records})).expect("a batch");
        let mut context = Context::default();
        context.invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:announcer".to_owned();
        let in_a_minute = SystemTime::now() + Duration::from_secs(60);
        context.deadline = in_a_minute.duration_since(UNIX_EPOCH).expect("after 1970").as_secs() * 1000;
        LambdaEvent::new(payload, context)
    }

    fn begun(id: &str, node: &str) -> String {
        let detail = json!({"receipt": 2, "node": node, "instance": format!("i-{id}"), "notice": {"event_id": id}});
        json!({"id": id, "detail-type": "Spillway Drain Begun", "source": "spillway", "account": "123456789012",
            "detail": detail})
        .to_string()
    }

    /// A sink that answers so, and what it was asked.
    async fn sink(status: StatusCode) -> (Sink, Asked) {
        let (address, asked) = wire::server(move || status.into_response()).await;
        (Sink::new(Way::Webhook(wire::webhook(&address, "{}", None))), asked)
    }

    /// The records that are to come back.
    async fn failed(announcer: &Announcer, bodies: &[String]) -> Vec<String> {
        let answer = announcer.handle(batch(bodies)).await.expect("an answer");
        answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
    }

    #[tokio::test]
    async fn foreign_payload_is_refused_and_not_delivered() {
        let (sink, asked) = sink(StatusCode::OK).await;
        let announcer = announcer(vec![sink]);
        let record = |source: Value| json!({"messageId": "m-0", "body": begun("e-1", "n-1"), "eventSourceARN": source});
        let ours = record(json!(QUEUE));
        for payload in [
            json!({"Records": [record(json!("arn:aws:sqs:us-east-1:999999999999:messages"))]}),
            json!({"Records": [ours, record(json!("arn:aws:sqs:us-east-1:123456789012:undelivered"))]}),
            json!({"Records": [record(Value::Null)]}),
            json!({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": begun("e-1", "n-1")}}]}),
            json!({"Records": {}}),
            json!([ours]),
            json!("hello"),
        ] {
            let refused = announcer.answer(LambdaEvent::new(payload.clone(), Context::default())).await;
            let error = refused.expect_err("it is foreign").to_string();
            let expected = format!("this function takes messages of the queue {QUEUE:?}; got ");
            assert!(error.starts_with(&expected) && error.len() < 600, "{payload}: {error}");
        }
        assert!(asked.lock().expect("unpoisoned").is_empty());
    }

    #[tokio::test]
    async fn what_one_sink_refuses_comes_back_and_the_other_does_not_get_it_twice() {
        let (good, good_was_asked) = sink(StatusCode::OK).await;
        let (bad, bad_was_asked) = sink(StatusCode::BAD_REQUEST).await;
        let announcer = announcer(vec![good, bad]);
        let bodies = [begun("e-1", "n-1"), begun("e-2", "n-2")];
        assert_eq!(failed(&announcer, &bodies).await, ["m-0", "m-1"]);
        assert_eq!(failed(&announcer, &bodies).await, ["m-0", "m-1"]);
        let times = |asked: &Asked| asked.lock().expect("unpoisoned").len();
        assert_eq!((times(&good_was_asked), times(&bad_was_asked)), (1, 2));
    }

    /// The log's lines while a batch is handled.
    async fn lines(announcer: &Announcer, bodies: &[String]) -> Vec<Value> {
        let mut file = tempfile::tempfile().expect("a file");
        let log = tracing_subscriber::registry().with(logs::lines(file.try_clone().expect("the same file")));
        // Without a global one, a test without a subscriber turns a line off that both reach at once.
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
        announcer.handle(batch(bodies)).with_subscriber(log).await.expect("an answer");

        let mut written = String::new();
        file.rewind().and_then(|()| file.read_to_string(&mut written)).expect("lines");
        written.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[tokio::test]
    async fn every_line_says_of_which_receipt_and_which_channel_it_is() {
        let headers = r#"{"Content-Type": "application/json"}"#;
        let (good, bad) = (sink(StatusCode::OK).await.0, sink(StatusCode::SERVICE_UNAVAILABLE).await.0);
        let (address, _) = wire::server(|| StatusCode::OK.into_response()).await;
        let document = wire::document(&address, headers, None);
        let template = Form::Template(Template::parse("{{ .NoSuchField }}").expect("a template"));
        let failing = Sink::new(Way::Webhook(Webhook::new(Stored::holding(Document { form: template, ..document }))));
        let announcer = announcer(vec![good, bad, failing]);
        let bodies = [begun("e-1", "n-1"), begun("e-2", "n-2")];

        let lines = lines(&announcer, &bodies).await;

        for line in &lines {
            let whose = &line["span"];
            assert_eq!(whose["channel"], "webhook", "{line}");
            assert_eq!(whose["event.id"], "e-1, e-2", "{line}");
            assert_eq!(whose["instance.id"], "i-e-1, i-e-2", "{line}");
        }
        let mut told: Vec<_> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
        told.sort_unstable();
        let again = "an attempt failed; trying again";
        let (lost, plain) = ("not delivered: the queue brings it back", "the message is sent in plain JSON");
        assert_eq!(told, [again, again, "delivered", "delivered", lost, plain]);
    }

    #[tokio::test]
    async fn the_line_of_a_record_that_cannot_be_read_names_the_record() {
        let lines = lines(&announcer(Vec::new()), &["hello".to_owned()]).await;
        let [line] = lines.as_slice() else { panic!("{lines:#?}") };
        assert_eq!(line["record"], "m-0");
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_read_comes_back_alone() {
        let (sink, asked) = sink(StatusCode::OK).await;
        let announcer = announcer(vec![sink]);
        assert_eq!(failed(&announcer, &["hello".to_owned(), begun("e-1", "n-1")]).await, ["m-0"]);
        assert_eq!(asked.lock().expect("unpoisoned").len(), 1);
    }

    #[tokio::test]
    async fn what_is_no_news_is_done_with() {
        let (sink, asked) = sink(StatusCode::BAD_REQUEST).await;
        let announcer = announcer(vec![sink]);
        let joined = begun("e-1", "n-1").replace("Spillway Drain Begun", "Spillway Receipt");
        assert!(failed(&announcer, &[joined]).await.is_empty());
        assert!(asked.lock().expect("unpoisoned").is_empty());
    }

    #[tokio::test]
    async fn what_there_is_no_time_for_comes_back() {
        let (sink, asked) = sink(StatusCode::OK).await;
        let announcer = announcer(vec![sink]);
        let mut late = batch(&[begun("e-1", "n-1")]);
        late.context.deadline = 0;
        let answer = announcer.handle(late).await.expect("an answer");
        assert_eq!(answer.batch_item_failures.len(), 1);
        assert!(asked.lock().expect("unpoisoned").is_empty());
    }
}
