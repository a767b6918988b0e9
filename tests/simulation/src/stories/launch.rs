//! Instances from a warm pool: launch hook and node.

use std::time::Duration;

use crate::plan::{Cause, Fault, Side};
use crate::story::{Story, pods};

/// An instance that returns from its warm pool after five minutes.
fn story() -> Story {
    let back_after = Duration::from_mins(5);
    Story::of(Cause::WarmPool { back_after }).hook_timeout(60).pods("web", pods(1))
}

#[test]
fn node_from_the_warm_pool_is_given_back_when_it_is_ready() {
    let outcome = story().set("LAUNCH", "ABANDON").expect([
        "evict web 201",
        "#0 receipt drained hook=completed",
        "begins notice",
        "kubelet",
        "uncordoned",
        "Completed",
        "receipt done hook=completed",
    ]);
    outcome.times(2, "Completed").never("Expired");
}

#[test]
fn node_is_given_back_without_our_launch_hook() {
    story().set("LAUNCH", "off").expect(["#0 receipt drained hook=completed", "uncordoned"]);
}

#[test]
fn launch_hook_is_held_while_the_api_server_is_silent() {
    let story = story().set("LAUNCH", "ABANDON").fault(Side::Api, "", Fault::RequestLost, 300..500);
    story.expect(["#0 receipt drained", "uncordoned", "receipt done hook=completed"]).never("Expired");
}

#[test]
fn long_launch_continues_in_the_next_invocation() {
    let story = story().set("LAUNCH", "ABANDON").invocations_of(60);
    let story = story.fault(Side::Api, "", Fault::RequestLost, 300..500);
    story.expect(["#0 receipt drained", "receipt continued hook=held", "receipt done hook=completed earlier="]);
}
