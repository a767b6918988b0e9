//! Several notices for one node: one drain, by the tightest deadline.

use crate::plan::Cause;
use crate::story::{Story, pods};

#[test]
fn duplicate_notice_is_joined_and_evicts_once() {
    let story = Story::spot().delivered_twice().pods("web", pods(3).grace(100).exits_after(95));
    story.expect(["#0 receipt drained", "receipt joined"]).times(1, "ends: Drained").times(3, "evict web 201");
}

#[test]
fn hook_notice_joins_the_spot_drain_and_completes_its_hook() {
    let story = Story::spot().and(5, Cause::Terminate).pods("web", pods(3).grace(60).exits_after(50));
    let outcome = story
        .expect(["claimed", "51s pod gone", "receipt joined hook=completed"])
        .times(3, "evict web 201")
        .times(1, "Completed");
    outcome.times(1, "ends: Drained");
}

#[test]
fn tightest_deadline_deletes_a_blocked_pod_of_maintenance() {
    let story = Story::reboot_at(3600).set("MAINTENANCE_LEAD_S", "7200").and(100, Cause::Spot);
    let outcome = story.pods("web", pods(1).grace(30).blocked()).expect([
        "1s evict web 429",
        "188s delete web 200",
        "receipt joined forced=1",
    ]);
    outcome.times(1, "delete web");
}

#[test]
fn tightest_deadline_shortens_a_given_grace() {
    let story = Story::reboot_at(3600).set("MAINTENANCE_LEAD_S", "7200").and(100, Cause::Spot);
    let story = story.pods("web", pods(1).grace(1800).exits_after(1000));
    story.expect(["1s evict web 201", "evict web 201 grace=", "receipt joined clamped=1"]);
}

#[test]
fn interruption_takes_over_the_claim_of_a_rebalance() {
    let story = Story::of(Cause::Rebalance).set("CORDON_ON", "rebalance").and(30, Cause::Spot).pods("web", pods(1));
    let outcome = story.expect(["1s claimed", "#0 receipt done", "31s taken", "evict web 201", "clean=1"]);
    outcome.never("uncordoned");
}
