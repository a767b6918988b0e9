//! Invocations killed after any of their requests.

use crate::plan::Cause;
use crate::story::{Story, pods};

/// Requests of an undisturbed drain of two pods.
const REQUESTS: std::ops::Range<u32> = 1..12;

#[test]
fn spot_drain_killed_at_any_request_is_finished_by_its_retry() {
    for number in REQUESTS {
        let story = Story::spot().pods("web", pods(2).exits_after(3)).killed(0, number);
        let outcome =
            story.expect(["receipt", "ends: Drained"]).never("fails").never("forced=").times(2, "evict web 201");
        assert!(number > 7 || outcome.count("#0 is killed") == 1, "{number}: {outcome}");
    }
}

#[test]
fn hook_drain_killed_at_any_request_is_finished_by_its_retry() {
    for number in REQUESTS {
        let story = Story::terminate().hook_timeout(120).pods("web", pods(2).exits_after(3)).killed(0, number);
        story.expect(["Completed"]).never("fails").never("Expired").times(2, "evict web 201");
    }
}

#[test]
fn killed_drain_is_finished_by_another_notice() {
    for number in REQUESTS {
        let story = Story::spot().pods("web", pods(2).exits_after(3)).and(10, Cause::Terminate).killed(0, number);
        story.expect(["Completed"]).never("fails").times(2, "evict web 201");
    }
}

#[test]
fn drain_killed_at_every_try_leaves_its_claim_and_its_event() {
    let story = Story::spot().pods("web", pods(2)).killed(0, 4).killed(1, 4).killed(2, 4);
    story.expect(["claimed", "#0 is killed", "#1 is killed", "#2 is killed", "given up"]).never("uncordoned");
}
