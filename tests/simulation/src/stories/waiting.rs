//! Waits of a drain, and their ends.

use std::time::Duration;

use crate::plan::{Cause, Command, Fault, Side};
use crate::story::{Story, pods};

#[test]
fn missed_kubelet_ends_the_wait_for_a_stopped_instance() {
    let story = Story::of(Cause::Stop { stops_after: Duration::from_secs(5), starts_after: None });
    story.pods("web", pods(1).grace(30).exits_after(25)).expect([
        "1s evict web 201",
        "missed",
        "receipt drained unconfirmed=1",
    ]);
}

#[test]
fn pods_of_a_deleted_node_are_unconfirmed() {
    let story = Story::terminate().person(10, Command::Delete).pods("web", pods(1).grace(90).exits_after(80));
    story.expect(["1s evict web 201", "10s leaves", "receipt drained unconfirmed=1 hook=completed"]);
}

#[test]
fn uncordoned_node_is_cordoned_again_and_drained() {
    let story = Story::terminate().person(5, Command::Uncordon).pods("web", pods(8).budget(1));
    story
        .expect(["1s claimed", "Uncordon", "cordoned again", "#0 receipt drained hook=completed"])
        .times(1, "cordoned again");
}

#[test]
fn new_node_of_the_name_in_mid_drain_is_left_alone() {
    let story = Story::spot().person(5, Command::Replace).pods("slow", pods(1).grace(60).exits_after(50));
    story.expect(["1s evict slow 201", "Replace", "receipt drained"]).times(1, "evict slow 201");
}

#[test]
fn tolerant_pod_returns_and_is_not_waited_for() {
    let story = Story::spot().pods("pinned", pods(1).tolerant()).pods("web", pods(1).grace(60).exits_after(40));
    story.expect(["1s evict pinned 201", "receipt drained"]).never("delete");
}

#[test]
fn failing_webhook_on_nodes_keeps_no_pod() {
    let story =
        Story::spot().pods("web", pods(2).grace(60).exits_after(50)).fault(Side::Api, "", Fault::Webhook, 0..30);
    story.expect(["evict web 201", "claimed", "#0 receipt drained clean="]).never("delete");
}

#[test]
fn evictions_held_by_a_webhook_are_repeated() {
    let story = Story::spot().pods("web", pods(2)).fault(Side::Api, "Evict", Fault::Hangs, 0..20);
    story.expect(["evict web 201", "receipt drained clean=2"]).never("delete");
}

#[test]
fn pods_are_listed_if_watches_fail() {
    let story = Story::spot().pods("web", pods(2)).fault(Side::Api, "Watch", Fault::Refused, 0..200);
    story.expect(["evict web 201", "receipt drained clean=2"]);
}
