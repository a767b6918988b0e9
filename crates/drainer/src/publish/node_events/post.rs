//! Sends Kubernetes events concurrently, without retries.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client};
use spillway_core::kube::status::{is_missing, is_terminating};
use spillway_startup::logs::chain;
use tokio::time::{Instant, timeout_at};

use crate::drain::side_task::REQUESTS_AT_ONCE;
use crate::kube::{ApiError, call};

/// Maximum number of events that are sent at once.
const AT_ONCE: usize = REQUESTS_AT_ONCE;
/// Timeout of all events together.
const PATIENCE: Duration = Duration::from_secs(4);

#[derive(Debug)]
pub(super) struct Unwritten {
    count: usize,
    all: usize,
    error: ApiError,
}

impl Unwritten {
    pub(super) fn warn(&self) {
        let Self { count, all, error } = self;
        let remedy = match error.code() {
            Some(403) => "a permission is missing (apply deploy/optional/node-events.yaml)",
            _ => "the log and the receipt have their content",
        };
        tracing::warn!(error = chain(&error), "{count} of {all} Kubernetes events were not written: {remedy}");
    }
}

/// Sends the events, at most until `end`. Fails with the number of events that were not written.
pub(super) async fn post(client: &Client, events: Vec<Event>, end: Instant) -> Result<(), Unwritten> {
    let all = events.len();
    let (mut settled, mut failed) = (0, None);
    let posting = async {
        let mut answers = stream::iter(events).map(|event| create(client, event)).buffer_unordered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(()) => settled += 1,
                Err(error) if is_of_a_namespace_that_goes(&error) => settled += 1,
                Err(error) => {
                    let is_hopeless = error.code() == Some(403);
                    failed = Some(error);
                    if is_hopeless {
                        break;
                    }
                }
            }
        }
    };
    let in_time = timeout_at(end.min(Instant::now() + PATIENCE), posting).await;
    match (failed, in_time) {
        (None, Ok(())) => Ok(()),
        (Some(error), _) => Err(Unwritten { count: all - settled, all, error }),
        (None, Err(_)) => Err(Unwritten { count: all - settled, all, error: ApiError::TimeUp }),
    }
}

async fn create(client: &Client, event: Event) -> Result<(), ApiError> {
    let namespace = event.metadata.namespace.as_deref().expect("an event is made with its namespace");
    let events = Api::<Event>::namespaced(client.clone(), namespace);
    call(events.create(&PostParams::default(), &event)).await.map(|_| ())
}

/// Returns `true` if the event's namespace is being deleted or does not exist.
fn is_of_a_namespace_that_goes(error: &ApiError) -> bool {
    match error {
        ApiError::Refused(status) => is_terminating(status) || is_missing(status, "namespaces"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;
    use crate::test_support::api_server::status;
    use crate::test_support::context::{TestContext, client};
    use crate::test_support::script::call;

    fn event() -> Event {
        let metadata = ObjectMeta { namespace: Some("default".to_owned()), ..ObjectMeta::default() };
        Event { metadata, ..Event::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn event_of_a_deleted_namespace_is_no_failure() {
        let gone = call("POST /apis/events.k8s.io/v1/namespaces/default/events");
        let context = TestContext::new(&[], [gone.says(404, status(404, "NotFound", "namespaces"))], []);
        assert!(post(&client(&context).await, vec![event()], Instant::now() + PATIENCE).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn ten_events_are_sent_at_once_and_given_up_after_4_s() {
        let hang = iter::repeat_with(|| call("POST /apis/events.k8s.io/v1/namespaces/default/events"));
        let (context, began) = (TestContext::new(&[], hang.take(10), []), Instant::now());
        let unwritten =
            post(&client(&context).await, vec![event(); 30], began + Duration::from_mins(1)).await.unwrap_err();
        assert_eq!((unwritten.count, unwritten.all, began.elapsed().as_secs()), (30, 30, 4));
    }
}
