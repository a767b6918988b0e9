//! The receipt as events on the bus: that a drain has begun, and how a notice ended.

use std::time::Duration;

use aws_sdk_eventbridge::Client;
use spillway_core::drain::plan::PodName;
use spillway_core::invocation::Invocation;
use spillway_receipt::{DRAIN_BEGUN, Ending, Fate, RECEIPT, Receipt};
use spillway_settings::Settings;
use spillway_startup::logs::chain;
use tokio::time::{Instant, timeout_at};

use super::document::begun;
use crate::aws::events::{self, PUT_EVENTS};
use crate::receipt::Publication;

/// EventBridge answers in milliseconds. What it does not take in that time is in the log all the same.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether the ending is told. A notice that came to nothing is for the log; one that lost pods did not, though it is
/// ignored because its hook waits no longer.
pub(super) fn is_end_told(settings: &Settings, receipt: &Receipt) -> bool {
    !settings.dry_run && (receipt.ending != Some(Ending::Ignored) || receipt.count(Fate::Lost) > 0)
}

/// Tells that a drain has begun, and which pods have to leave.
pub(super) async fn tell_begin(client: &Client, so_far: &Publication, leaving: &[PodName], invocation: &Invocation) {
    let detail = begun(so_far, leaving, invocation.clock.now());
    put(client, (DRAIN_BEGUN, "the drain goes on"), detail, invocation.announces_until()).await;
}

/// Tells that something blocks a drain, or no longer does.
pub(super) async fn tell_blockage(client: &Client, detail_type: &str, detail: String, invocation: &Invocation) {
    put(client, (detail_type, "the drain goes on"), detail, invocation.announces_until()).await;
}

/// Tells how a notice ended.
pub(super) async fn tell_end(client: &Client, detail: String, invocation: &Invocation) {
    put(client, (RECEIPT, "the receipt is in the log"), detail, invocation.announces_until()).await;
}

/// That nobody can be told is worth a warning and no more: what follows nevertheless.
async fn put(client: &Client, (detail_type, what_follows): (&str, &str), detail: String, latest: Instant) {
    let put = timeout_at(latest.min(Instant::now() + PATIENCE), events::put(client, detail_type, detail));
    let error = match put.await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => chain(&error),
        Err(_) => format!("{PUT_EVENTS} got no answer in time"),
    };
    tracing::warn!(error, "cannot put \"{detail_type}\" on the event bus; {what_follows}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::tests::unread;
    use crate::test_support::settings;

    #[test]
    fn every_ending_but_ignored_is_told_unless_nothing_was_touched() {
        let endings =
            [Ending::Drained, Ending::Joined, Ending::Ignored, Ending::Continued, Ending::Done, Ending::Failed];
        let told = |dry_run| {
            let mut receipt = unread().receipt;
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
}
