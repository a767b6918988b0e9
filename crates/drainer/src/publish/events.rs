//! Publishes messages about a drain to the announcer's queue and the event bus.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_core::drain::plan::PodName;
use spillway_core::invocation::Invocation;
use spillway_notice::SOURCE;
use spillway_receipt::{DRAIN_BEGUN, Ending, Fate, RECEIPT, Receipt};
use spillway_settings::Settings;
use spillway_startup::logs::chain;
use tokio::time::{Instant, timeout_at};

use super::document::begun;
use crate::aws;
use crate::aws::events::{self, PUT_EVENTS};
use crate::aws::queue::SEND;
use crate::context::Context;
use crate::receipt::Publication;

/// Timeout for sending a message. EventBridge usually answers in milliseconds.
const PATIENCE: Duration = Duration::from_secs(3);

/// Returns `false` for receipts that are only logged: dry runs, and ignored notices without lost pods.
pub(super) fn is_end_published(settings: &Settings, receipt: &Receipt) -> bool {
    !settings.dry_run && (receipt.ending != Some(Ending::Ignored) || receipt.count(Fate::Lost) > 0)
}

/// Publishes that a drain has begun. `leaving` has the names of the pods that have to leave.
pub(super) async fn begin(context: &Context, so_far: &Publication, leaving: &[PodName], invocation: &Invocation) {
    let detail = begun(so_far, leaving, invocation.clock.now());
    publish(context, (DRAIN_BEGUN, "the drain goes on"), detail, invocation).await;
}

pub(super) async fn blockage(context: &Context, detail_type: &str, detail: String, invocation: &Invocation) {
    publish(context, (detail_type, "the drain goes on"), detail, invocation).await;
}

pub(super) async fn end(context: &Context, detail: String, invocation: &Invocation) {
    publish(context, (RECEIPT, "the receipt is in the log"), detail, invocation).await;
}

/// Sends a message to the announcer's queue and to the event bus. Logs each failure and its `effect`.
async fn publish(context: &Context, (detail_type, effect): (&str, &str), detail: String, invocation: &Invocation) {
    let until = invocation.announces_until().min(Instant::now() + PATIENCE);
    let in_the_queue = async {
        if let Some(queue) = &context.announcements {
            let message = message(detail_type, &detail, invocation);
            if let Err(error) = aws::until(SEND, until, || queue.send(&message)).await {
                tracing::warn!(error = chain(&error), "cannot hand \"{detail_type}\" to the announcer; {effect}");
            }
        }
    };
    let on_the_bus = async {
        let error = match timeout_at(until, events::put(&context.eventbridge, detail_type, detail.clone())).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("{PUT_EVENTS} got no answer in time"),
        };
        tracing::warn!(error, "cannot put \"{detail_type}\" on the event bus; {effect}");
    };
    tokio::join!(in_the_queue, on_the_bus);
}

/// Returns the message in the format of an EventBridge event, with an id for deduplication.
fn message(detail_type: &str, detail: &str, invocation: &Invocation) -> String {
    let detail: Value = serde_json::from_str(detail).expect("the detail is JSON");
    let (home, time) = (&invocation.home, invocation.clock.now());
    let id = format!("{}-{}", invocation.request_id, time.as_nanosecond());
    json!({
        "version": "0", "id": id, "detail-type": detail_type, "source": SOURCE, "account": home.account, "time": time,
        "region": home.region, "resources": [], "detail": detail,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use spillway_core::clock::Clock;
    use spillway_receipt::{Pod, PodRecord};

    use super::*;
    use crate::doubles::script::call;
    use crate::doubles::scripted::TestContext;
    use crate::publish::tests::unread;
    use crate::test_support::settings;

    #[test]
    fn endings_are_published_unless_ignored_or_dry_run() {
        let endings =
            [Ending::Drained, Ending::Joined, Ending::Ignored, Ending::Continued, Ending::Done, Ending::Failed];
        let published = |dry_run| {
            let mut receipt = Receipt { dry_run: dry_run == "true", ..unread().receipt };
            let mut published = endings.to_vec();
            published.retain(|ending| {
                receipt.ending = Some(*ending);
                is_end_published(&settings(&[("SPILLWAY_DRY_RUN", dry_run)]), &receipt)
            });
            published
        };
        let all_but_ignored = [Ending::Drained, Ending::Joined, Ending::Continued, Ending::Done, Ending::Failed];
        assert_eq!(published("false"), all_but_ignored);
        assert_eq!(published("true"), []);
        // An ignored notice is published if it lost pods.
        let lost = PodRecord::of("shop/cart-0".to_owned(), "u-1".to_owned(), Fate::Lost, Duration::ZERO);
        let pods = vec![Pod::Full(lost)];
        let receipt = Receipt { ending: Some(Ending::Ignored), pods, ..unread().receipt };
        assert!(is_end_published(&settings(&[]), &receipt));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_bus_and_queue_are_independent() {
        let url = "https://sqs.us-east-1.amazonaws.com/123456789012/announcements";
        let aws = [
            call("PutEvents")
                .with("Spillway Receipt")
                .says(400, json!({"__type": "AccessDeniedException"}))
                .at_any_time(),
            call("SendMessage").says(503, "").at_any_time(),
            call("SendMessage")
                .with(url)
                .with(r#"\"source\":\"spillway\""#)
                .with(r#"\"detail-type\":\"Spillway Receipt\""#)
                .with(r#"\"account\":\"123456789012\""#)
                .with(r#"\"detail\":{\"receipt\":2}"#)
                .says(200, json!({"MessageId": "1", "MD5OfMessageBody": "0"}))
                .at_any_time(),
        ];
        let context = TestContext::new(&[("SPILLWAY_ANNOUNCEMENTS", url)], [], aws);
        let mut invocation = Invocation::until(Timestamp::MAX, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH));
        "123456789012".clone_into(&mut invocation.home.account);
        end(&context, r#"{"receipt":2}"#.to_owned(), &invocation).await;
    }

    #[tokio::test(start_paused = true)]
    async fn silent_bus_and_queue_are_given_up_after_3_s() {
        let hang = ["PutEvents", "SendMessage"].map(|named| call(named).at_any_time());
        let context = TestContext::new(&[("SPILLWAY_ANNOUNCEMENTS", "https://sqs/q")], [], hang);
        let invocation = Invocation::until(Timestamp::MAX, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH));
        let began = Instant::now();
        end(&context, r#"{"receipt":2}"#.to_owned(), &invocation).await;
        assert_eq!(began.elapsed().as_secs(), 3);
    }
}
