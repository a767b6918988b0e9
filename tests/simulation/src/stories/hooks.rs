//! Lifecycle hooks: held during the drain, completed in the end.

use crate::plan::{Fault, Side};
use crate::story::{Story, pods};

const HEARTBEAT: &str = "RecordLifecycleActionHeartbeat";
const COMPLETE: &str = "CompleteLifecycleAction";

#[test]
fn hook_is_held_while_pods_outlast_its_timeout() {
    let story = Story::terminate().hook_timeout(30).pods("slow", pods(1).grace(300).exits_after(200));
    let outcome = story.expect(["1s evict slow 201", "201s pod gone", "#0 receipt drained clean=1 hook=completed"]);
    assert!(outcome.count(HEARTBEAT) >= 200 / 30, "{outcome}");
    outcome.times(1, "Completed");
}

#[test]
fn hook_is_held_while_pods_cannot_be_listed() {
    let story = Story::terminate().hook_timeout(30).pods("web", pods(1));
    let story = story.fault(Side::Api, "List prod /api/v1/pods", Fault::Refused, 0..100);
    story.expect(["claimed", "101s evict web 201", "#0 receipt drained clean=1 hook=completed"]);
}

#[test]
fn hook_is_held_while_ec2_fails() {
    let story = Story::terminate().hook_timeout(30).fault(Side::Aws, "DescribeInstances", Fault::Refused, 0..100);
    story.expect([HEARTBEAT, "DescribeInstances 200", "#0 receipt drained hook=completed"]);
}

#[test]
fn hook_is_held_while_its_node_cannot_be_cordoned() {
    let story = Story::terminate().hook_timeout(30).set("DRAIN_ON", "off").set("CORDON_ON", "terminate");
    let story = story.pods("web", pods(1)).fault(Side::Api, "Patch", Fault::Refused, 0..100);
    story.expect([HEARTBEAT, "#0 receipt done hook=completed"]).never("evict");
}

#[test]
fn hook_expired_in_mid_drain_ends_the_wait() {
    let story = Story::terminate().hook_timeout(30).pods("slow", pods(1).grace(300).exits_after(200));
    let story = story.fault(Side::Aws, HEARTBEAT, Fault::RequestLost, 0..60);
    story.expect(["1s evict slow 201", "30s Expired", "#0 receipt ignored hook=already-over"]).never(COMPLETE);
}

#[test]
fn hook_expired_before_the_list_ends_the_drain() {
    let story = Story::terminate().hook_timeout(30).pods("web", pods(1));
    let story = story.fault(Side::Aws, HEARTBEAT, Fault::RequestLost, 0..60);
    let story = story.fault(Side::Api, "List prod /api/v1/pods", Fault::Refused, 0..200);
    story.expect(["30s Expired", "#0 receipt ignored hook=already-over"]).never("evict");
}

#[test]
fn blocked_pod_is_deleted_before_the_hooks_longest_wait() {
    let story = Story::terminate().set("HOOK_MAX_WAIT_S", "300").pods("web", pods(1).grace(10).blocked());
    story.expect(["1s evict web 429", "288s delete web 200", "#0 receipt drained forced=1 hook=completed"]);
}

#[test]
fn blocked_pod_with_a_volume_is_deleted_a_minute_earlier() {
    let story = Story::terminate().set("HOOK_MAX_WAIT_S", "300").pods("db", pods(1).grace(10).with_volumes().blocked());
    story.expect(["1s evict db 429", "228s delete db 200", "#0 receipt drained forced=1 hook=completed"]);
}

#[test]
fn hook_of_an_unreachable_node_is_completed_after_its_wait() {
    let story = Story::terminate().set("HOOK_MAX_WAIT_S", "300").invocations_of(120).pods("web", pods(1));
    let story = story.fault(Side::Api, "", Fault::RequestLost, 0..600);
    let outcome = story.expect([
        "#0 receipt continued hook=held",
        "receipt continued",
        "receipt failed hook=completed result=CONTINUE",
    ]);
    outcome.times(1, "Completed");
}

#[test]
fn hook_of_an_opted_out_node_is_left_to_its_timeout() {
    let story = Story::terminate().hook_timeout(60).person(0, crate::plan::Command::OptOut).pods("web", pods(1));
    story.expect(["#0 receipt ignored hook=left", "60s Expired"]).never("evict");
}
