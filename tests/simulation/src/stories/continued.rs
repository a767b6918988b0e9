//! Drains longer than their invocation.

use crate::plan::{Fault, Side};
use crate::story::{Story, pods};

/// A pod that shuts down for 150 s, in invocations of a minute.
fn story() -> Story {
    Story::terminate().invocations_of(60).pods("slow", pods(1).grace(300).exits_after(150))
}

#[test]
fn long_drain_continues_in_the_next_invocation() {
    let outcome = story().pods("quick", pods(2)).expect([
        "#0 receipt continued clean=2 remaining=1 hook=held",
        "#1 begins spillway-continuation",
        "#1 receipt continued remaining=1 hook=held earlier=1",
        "#2 receipt drained clean=1 hook=completed earlier=2",
    ]);
    outcome.times(1, "Completed").times(1, "evict slow");
}

#[test]
fn duplicate_continuation_is_joined_and_evicts_once() {
    story()
        .delivered_twice()
        .expect(["receipt continued", "receipt joined"])
        .times(1, "evict slow 201")
        .times(1, "Completed");
}

#[test]
fn killed_continuation_is_retried() {
    let outcome =
        story().killed(1, 3).expect(["#0 receipt continued", "#1 is killed", "receipt drained hook=completed"]);
    outcome.times(1, "evict slow");
}

#[test]
fn failed_hook_completion_is_repeated_in_the_next_invocation() {
    let story = Story::terminate().invocations_of(60).pods("web", pods(1));
    let story = story.fault(Side::Aws, "CompleteLifecycleAction", Fault::Refused, 0..60);
    story.expect(["#0 receipt continued hook=held", "#1 receipt drained hook=completed"]);
}

#[test]
fn failing_api_server_is_tried_again_in_the_next_invocation() {
    for fault in [Fault::Refused, Fault::Hangs] {
        let story = Story::terminate().hook_timeout(30).invocations_of(60).pods("web", pods(1));
        let story = story.fault(Side::Api, "", fault, 0..70);
        story.expect(["#0 receipt continued hook=held", "#1 receipt drained clean=1 hook=completed"]);
    }
}

#[test]
fn self_invocation_is_repeated_while_lambda_fails() {
    story().fault(Side::Aws, "/functions/", Fault::Refused, 50..56).expect(["#0 receipt continued", "receipt drained"]);
}

#[test]
fn denied_self_invocation_fails_and_names_the_right() {
    let story = story().fault(Side::Aws, "/functions/", Fault::Denied, 0..1000);
    story.expect(["#0 fails: lambda:InvokeFunction", "#1 receipt drained"]);
}

#[test]
fn hook_is_completed_after_its_longest_wait_with_pods_left() {
    let story = Story::terminate().set("HOOK_MAX_WAIT_S", "120").invocations_of(60);
    let story = story.pods("slow", pods(1).grace(9000).exits_after(9000));
    let outcome = story.expect(["#0 receipt continued hook=held", "120s Completed"]);
    outcome.times(1, "Completed");
}

#[test]
fn hook_expired_between_two_invocations_is_no_failure() {
    let story =
        story().hook_timeout(30).fault(Side::Aws, "RecordLifecycleActionHeartbeat", Fault::RequestLost, 35..200);
    story.expect(["#0 receipt", "Expired"]).never(" fails");
}
