//! The receipt told: that a drain has begun, what blocks it, and how a notice ended. To the announcer, and on the event bus.

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

/// EventBridge answers in milliseconds. What it does not take in that time is in the log all the same.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether the ending is told. A notice that came to nothing is for the log; one that lost pods did not, though it is
/// ignored because its hook waits no longer.
pub(super) fn is_end_told(settings: &Settings, receipt: &Receipt) -> bool {
    !settings.dry_run && (receipt.ending != Some(Ending::Ignored) || receipt.count(Fate::Lost) > 0)
}

/// Tells that a drain has begun, and which pods have to leave.
pub(super) async fn tell_begin(context: &Context, so_far: &Publication, leaving: &[PodName], invocation: &Invocation) {
    let detail = begun(so_far, leaving, invocation.clock.now());
    tell(context, (DRAIN_BEGUN, "the drain goes on"), detail, invocation).await;
}

/// Tells that something blocks a drain, or no longer does.
pub(super) async fn tell_blockage(context: &Context, detail_type: &str, detail: String, invocation: &Invocation) {
    tell(context, (detail_type, "the drain goes on"), detail, invocation).await;
}

/// Tells how a notice ended.
pub(super) async fn tell_end(context: &Context, detail: String, invocation: &Invocation) {
    tell(context, (RECEIPT, "the receipt is in the log"), detail, invocation).await;
}

/// To the announcer's queue, for people, and on the bus, for rules of others. The announcer believes nothing that comes over the
/// bus: anybody may put events there. That nobody can be told is worth a warning and no more.
async fn tell(context: &Context, (detail_type, what_follows): (&str, &str), detail: String, invocation: &Invocation) {
    let until = invocation.announces_until().min(Instant::now() + PATIENCE);
    let in_the_queue = async {
        if let Some(queue) = &context.announcements {
            let message = message(detail_type, &detail, invocation);
            if let Err(error) = aws::until(SEND, until, || queue.send(&message)).await {
                tracing::warn!(error = chain(&error), "cannot hand \"{detail_type}\" to the announcer; {what_follows}");
            }
        }
    };
    let on_the_bus = async {
        let error = match timeout_at(until, events::put(&context.eventbridge, detail_type, detail.clone())).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("{PUT_EVENTS} got no answer in time"),
        };
        tracing::warn!(error, "cannot put \"{detail_type}\" on the event bus; {what_follows}");
    };
    tokio::join!(in_the_queue, on_the_bus);
}

/// A message for the announcer: in the form of an event, with an id by which it knows one that comes twice.
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
    fn every_ending_but_ignored_is_told_unless_nothing_was_touched() {
        let endings =
            [Ending::Drained, Ending::Joined, Ending::Ignored, Ending::Continued, Ending::Done, Ending::Failed];
        let told = |dry_run| {
            let mut receipt = Receipt { dry_run: dry_run == "true", ..unread().receipt };
            let mut told = endings.to_vec();
            told.retain(|ending| {
                receipt.ending = Some(*ending);
                is_end_told(&settings(&[("SPILLWAY_DRY_RUN", dry_run)]), &receipt)
            });
            told
        };
        let all_but_ignored = [Ending::Drained, Ending::Joined, Ending::Continued, Ending::Done, Ending::Failed];
        assert_eq!(told("false"), all_but_ignored);
        assert_eq!(told("true"), []);
    }

    #[test]
    fn an_ignored_notice_is_told_if_pods_were_lost() {
        let lost = PodRecord::of("shop/cart-0".to_owned(), "u-1".to_owned(), Fate::Lost, Duration::ZERO);
        let pods = vec![Pod::AtTheEnd(lost)];
        let receipt = Receipt { ending: Some(Ending::Ignored), pods, ..unread().receipt };
        assert!(is_end_told(&settings(&[]), &receipt));
    }

    #[tokio::test(start_paused = true)]
    async fn the_announcer_gets_an_event_and_the_bus_one_whatever_becomes_of_the_other() {
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
        tell_end(&context, r#"{"receipt":2}"#.to_owned(), &invocation).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_no_answer_is_waited_for_three_seconds() {
        let hang = ["PutEvents", "SendMessage"].map(|named| call(named).at_any_time());
        let context = TestContext::new(&[("SPILLWAY_ANNOUNCEMENTS", "https://sqs/q")], [], hang);
        let invocation = Invocation::until(Timestamp::MAX, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH));
        let began = Instant::now();
        tell_end(&context, r#"{"receipt":2}"#.to_owned(), &invocation).await;
        assert_eq!(began.elapsed().as_secs(), 3);
    }
}
