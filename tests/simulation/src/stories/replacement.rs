//! Replacement first: request beside the evictions, and the two notices of one instance.

use crate::plan::{Cause, Fault, Side};
use crate::story::{Story, pods};

const REQUEST: &str = "TerminateInstanceInAutoScalingGroup";

fn replacing() -> Story {
    Story::spot().set("REPLACE", "spot")
}

#[test]
fn spot_notice_requests_the_replacement_beside_the_evictions() {
    let outcome = replacing().pods("web", pods(3).grace(60).exits_after(50)).expect([
        "1s evict web 201",
        "TerminateInstanceInAutoScalingGroup 200",
        "51s pod gone",
    ]);
    outcome
        .times(1, REQUEST)
        .times(1, "Completed")
        .times(3, "evict web 201")
        .times(1, "replacement=requested")
        .never("ends: Failed");
}

#[test]
fn hook_notice_forces_by_the_deadline_of_the_spot_claim() {
    let outcome = replacing().pods("web", pods(1).grace(30).blocked()).expect([
        "1s evict web 429",
        REQUEST,
        "88s delete web 200",
        "Completed",
    ]);
    outcome.times(1, "ends: Drained").never("Expired").never("ends: Failed");
}

#[test]
fn grace_ends_by_the_deadline_of_the_spot_claim() {
    let story = replacing().pods("slow", pods(1).grace(600).exits_after(500));
    let outcome = story.expect([REQUEST, "receipt drained clamped=1", "Completed", "120s instance"]);
    outcome.times(1, REQUEST).never("begins spillway-continuation").never("ends: Failed");
}

#[test]
fn spot_notice_after_the_hook_notice_takes_over_without_a_request() {
    let story = Story::terminate().set("REPLACE", "spot").and(5, Cause::Spot);
    let outcome =
        story.pods("web", pods(1).grace(30).blocked()).expect(["1s claimed", "93s delete web 200", "Completed"]);
    outcome.never(REQUEST).times(1, "replacement=not");
}

#[test]
fn duplicates_and_retries_request_once() {
    replacing().delivered_twice().pods("web", pods(3).grace(60).exits_after(50)).run().times(1, REQUEST);
    for number in 1..16 {
        let outcome = replacing().pods("web", pods(2).exits_after(3)).killed(0, number).run();
        assert!(outcome.count(REQUEST) <= 1, "{number}: {outcome}");
    }
}

#[test]
fn request_whose_answer_is_lost_is_made_once() {
    let story = replacing().pods("web", pods(1).grace(60).exits_after(50));
    let outcome = story.fault(Side::Aws, REQUEST, Fault::AnswerLost, 0..60).run();
    outcome.times(1, "Replaces").times(1, "replacement=requested").times(1, "Completed");
}

#[test]
fn outage_of_the_calls_delays_no_eviction() {
    for call in ["DescribeSpotInstanceRequests", "DescribeAutoScalingGroups", "DescribeScalingActivities", REQUEST] {
        for fault in [Fault::Refused, Fault::Hangs, Fault::Denied] {
            let story = replacing().pods("web", pods(3).exits_after(3)).fault(Side::Aws, call, fault, 0..300);
            let outcome = story.expect(["1s evict web 201", "4s pod gone", "replacement="]);
            outcome.times(3, "evict web 201").never("ends: Failed");
        }
    }
}
