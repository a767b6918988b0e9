//! Handles a batch of SQS records: parses the events and delivers messages about them.

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

/// Time that is reserved at the end of an invocation for returning the failed records to SQS.
const ANSWER_RESERVE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Announcer {
    /// ARN of the queue whose messages are accepted.
    pub(crate) queue_arn: String,
    pub(crate) sinks: Vec<Sink>,
}

impl Announcer {
    /// Handles a batch from the function's own queue. Refuses any other payload.
    pub(crate) async fn answer(&self, event: LambdaEvent<Value>) -> Result<SqsBatchResponse, Error> {
        let LambdaEvent { payload, context } = event;
        if let Some(source) = self.foreign_source(&payload) {
            return Err(
                format!("the function accepts messages of the queue {:?} only; got {source}", self.queue_arn).into()
            );
        }
        self.handle(LambdaEvent::new(serde_json::from_value(payload)?, context)).await
    }

    /// Describes the first record from another queue, or a payload without records. `None` if the payload is accepted.
    fn foreign_source(&self, payload: &Value) -> Option<String> {
        let Some(records) = payload["Records"].as_array() else { return Some(quoted(payload)) };
        let mut sources = records.iter().map(|record| &record["eventSourceARN"]);
        sources.find(|source| **source != self.queue_arn).map(|source| format!("one of {}", quoted(source)))
    }

    /// Delivers messages about the events of a batch. Returns the failed records, which SQS sends again.
    pub(crate) async fn handle(&self, batch: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
        let (end, account) = (end(&batch.context), account(&batch.context));
        let records = batch.payload.records;
        let read: Vec<_> = records.iter().map(|record| read(record, &account)).collect();
        let events: Vec<_> = read.iter().flatten().collect();
        let failed = join_all(self.sinks.iter().map(|sink| sink.deliver(&events, end))).await;
        let failed: HashSet<_> = failed.iter().flatten().map(|event| event.id.as_str()).collect();

        let mut answer = SqsBatchResponse::default();
        for (record, event) in records.iter().zip(&read) {
            if event.as_ref().is_none_or(|event| failed.contains(event.id.as_str())) {
                answer.add_failure(record.message_id.as_deref().unwrap_or_default());
            }
        }
        Ok(answer)
    }
}

/// Reads the event in a record. `None` if unreadable.
fn read(record: &SqsMessage, account: &str) -> Option<Event> {
    event::read(record.body.as_deref().unwrap_or_default(), account)
        .inspect_err(|error| {
            let record = record.message_id.as_deref();
            tracing::error!(
                record,
                error = chain(error),
                "cannot read a record of the queue; no message is sent for it"
            );
        })
        .ok()
}

/// Returns the first 200 characters of a JSON value, quoted.
fn quoted(json: &Value) -> String {
    format!("{:?}", json.to_string().chars().take(200).collect::<String>())
}

/// Returns the account in the function's ARN.
fn account(context: &Context) -> String {
    context.invoked_function_arn.split(':').nth(4).unwrap_or_default().to_owned()
}

fn end(context: &Context) -> Instant {
    let deadline = UNIX_EPOCH + Duration::from_millis(context.deadline);
    let left = deadline.duration_since(SystemTime::now()).unwrap_or_default();
    Instant::now() + left.saturating_sub(ANSWER_RESERVE)
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::sink::Channel;
    use crate::test_support::{self, Requests};

    const QUEUE: &str = "arn:aws:sqs:us-east-1:123456789012:messages";

    fn announcer(sinks: Vec<Sink>) -> Announcer {
        Announcer { queue_arn: QUEUE.to_owned(), sinks }
    }

    /// Batch with the records m-0, m-1 and so on.
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

    /// Sink with a webhook that answers with the status.
    async fn sink(status: StatusCode) -> (Sink, Requests) {
        let (address, requests) = test_support::server(move || status.into_response()).await;
        (Sink::new(Channel::Webhook(test_support::webhook(&address, "{}", None)), ""), requests)
    }

    fn count(requests: &Requests) -> usize {
        requests.lock().expect("unpoisoned").len()
    }

    /// Records that SQS sends again.
    async fn failed(announcer: &Announcer, bodies: &[String]) -> Vec<String> {
        let answer = announcer.handle(batch(bodies)).await.expect("an answer");
        answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
    }

    #[tokio::test]
    async fn foreign_payload_is_refused_and_not_delivered() {
        let (sink, requests) = sink(StatusCode::OK).await;
        let announcer = announcer(vec![sink]);
        let record = |source: Value| json!({"messageId": "m-0", "body": begun("e-1", "n-1"), "eventSourceARN": source});
        let ours = record(json!(QUEUE));
        for payload in [
            json!({"Records": [record(json!("arn:aws:sqs:us-east-1:999999999999:messages"))]}),
            json!({"Records": [ours, record(json!("arn:aws:sqs:us-east-1:123456789012:undelivered"))]}),
            json!({"Records": [record(Value::Null)]}),
            json!({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": begun("e-1", "n-1")}}]}),
            json!("hello"),
        ] {
            let refused = announcer.answer(LambdaEvent::new(payload.clone(), Context::default())).await;
            let error = refused.expect_err("foreign").to_string();
            let expected = format!("the function accepts messages of the queue {QUEUE:?} only; got ");
            assert!(error.starts_with(&expected) && error.len() < 600, "{payload}: {error}");
        }
        assert_eq!(count(&requests), 0);
    }

    #[tokio::test]
    async fn refused_message_returns_and_the_other_sink_gets_it_once() {
        let (good, good_requests) = sink(StatusCode::OK).await;
        let (bad, bad_requests) = sink(StatusCode::BAD_REQUEST).await;
        let announcer = announcer(vec![good, bad]);
        let bodies = [begun("e-1", "n-1"), begun("e-2", "n-2")];
        assert_eq!(failed(&announcer, &bodies).await, ["m-0", "m-1"]);
        assert_eq!(failed(&announcer, &bodies).await, ["m-0", "m-1"]);
        assert_eq!((count(&good_requests), count(&bad_requests)), (1, 2));
    }

    #[tokio::test]
    async fn unreadable_record_returns_alone() {
        let (sink, requests) = sink(StatusCode::OK).await;
        let announcer = announcer(vec![sink]);
        let bodies = ["hello".to_owned(), begun("e-1", "n-1")];
        assert_eq!(failed(&announcer, &bodies).await, ["m-0"]);
        assert_eq!(count(&requests), 1);
    }

    #[tokio::test]
    async fn receipt_without_news_is_done_and_late_batch_returns() {
        let (sink, requests) = sink(StatusCode::OK).await;
        let announcer = announcer(vec![sink]);
        let joined = begun("e-1", "n-1").replace("Spillway Drain Begun", "Spillway Receipt");
        assert!(failed(&announcer, &[joined]).await.is_empty());
        let mut late = batch(&[begun("e-1", "n-1")]);
        late.context.deadline = 0;
        let answer = announcer.handle(late).await.expect("an answer");
        assert_eq!(answer.batch_item_failures.len(), 1);
        assert_eq!(count(&requests), 0);
    }
}
