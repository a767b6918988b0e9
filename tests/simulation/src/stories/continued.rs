//! Drains that outlast their invocation.

use crate::plan::{Fault, Side};
use crate::story::{Story, pods};

/// A pod that shuts down for 150 s, and invocations of a minute.
fn story() -> Story {
    Story::terminate().invocations_of(60).pods("slow", pods(1).grace(300).exits_after(150))
}

#[test]
fn drain_that_outlasts_its_invocation_goes_on_in_the_next() {
    let told = story().pods("quick", pods(2)).tells([
        "#0 receipt continued clean=2 remaining=1 hook=held",
        "#1 begins spillway-continuation",
        "#1 receipt continued remaining=1 hook=held earlier=1",
        "#2 receipt drained clean=1 hook=completed earlier=2",
    ]);
    told.times(1, "Completed").times(1, "evict slow");
}

#[test]
fn continuation_that_comes_twice_is_joined_and_evicts_once() {
    story()
        .delivered_twice()
        .tells(["receipt continued", "receipt joined"])
        .times(1, "evict slow 201")
        .times(1, "Completed");
}

#[test]
fn killed_continuation_is_retried() {
    let told = story().killed(1, 3).tells(["#0 receipt continued", "#1 is killed", "receipt drained hook=completed"]);
    told.times(1, "evict slow");
}

#[test]
fn hook_that_could_not_be_completed_is_completed_in_the_next() {
    let story = Story::terminate().invocations_of(60).pods("web", pods(1));
    let story = story.fault(Side::Aws, "CompleteLifecycleAction", Fault::Refused, 0..60);
    story.tells(["#0 receipt continued hook=held", "#1 receipt drained hook=completed"]);
}

#[test]
fn refusing_api_server_is_asked_again_in_the_next() {
    let story = Story::terminate().hook_timeout(30).invocations_of(60).pods("web", pods(1));
    let story = story.fault(Side::Api, "", Fault::Refused, 0..70);
    story.tells(["#0 receipt continued hook=held", "#1 receipt drained clean=1 hook=completed"]);
}

#[test]
fn silent_api_server_is_asked_again_in_the_next() {
    let story = Story::terminate().hook_timeout(30).invocations_of(60).pods("web", pods(1));
    let story = story.fault(Side::Api, "", Fault::Hangs, 0..70);
    story.tells(["#0 receipt continued hook=held", "#1 receipt drained clean=1 hook=completed"]);
}

#[test]
fn self_invocation_is_repeated_while_lambda_fails() {
    story().fault(Side::Aws, "/functions/", Fault::Refused, 50..56).tells(["#0 receipt continued", "receipt drained"]);
}

#[test]
fn denied_self_invocation_fails_and_names_the_right() {
    let story = story().fault(Side::Aws, "/functions/", Fault::Denied, 0..1000);
    story.tells(["#0 fails: lambda:InvokeFunction", "#1 receipt drained"]);
}

#[test]
fn hook_whose_longest_wait_is_over_is_let_go_with_what_is_left() {
    let story = Story::terminate().set("HOOK_MAX_WAIT_S", "120").invocations_of(60);
    let story = story.pods("slow", pods(1).grace(9000).exits_after(9000));
    let told = story.tells(["#0 receipt continued hook=held", "120s Completed"]);
    told.times(1, "Completed");
}

#[test]
fn hook_that_expired_between_two_invocations_is_no_failure() {
    let story =
        story().hook_timeout(30).fault(Side::Aws, "RecordLifecycleActionHeartbeat", Fault::RequestLost, 35..200);
    story.tells(["#0 receipt", "Expired"]).never(" fails");
}
