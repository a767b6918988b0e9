//! Waits of a drain, and their ends.

use std::time::Duration;

use crate::plan::{Annotation, Cause, Command, Fault, Owner, Side};
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
fn critical_pods_leave_after_ordinary_ones() {
    let story = Story::spot().pods("web", pods(2).exits_after(10)).pods("dns", pods(1).critical());
    let story = story.pods("agent", pods(1).owned_by(Owner::DaemonSet));
    story
        .expect(["1s evict web 201", "11s pod gone", "evict dns 201", "receipt drained clean=3 stayed=1"])
        .never("evict agent");
}

#[test]
fn annotated_pods_leave_last_or_stay() {
    let story = Story::spot().pods("proxy", pods(1).annotated(Annotation::Last)).pods("web", pods(1).exits_after(10));
    let story = story.pods("agent", pods(1).annotated(Annotation::Skip));
    story
        .expect(["1s evict web 201", "11s pod gone", "evict proxy 201", "receipt drained clean=2 stayed=1"])
        .never("evict agent");
}

#[test]
fn critical_pods_of_a_stopping_instance_do_not_wait() {
    let story = Story::of(Cause::Stop { stops_after: Duration::from_secs(60), starts_after: None });
    let story = story.pods("web", pods(1).exits_after(20)).pods("dns", pods(1).critical());
    story.expect(["1s evict dns 201", "21s pod gone", "receipt drained clean=2"]);
}

#[test]
fn late_notice_clamps_a_long_grace_to_the_time_left() {
    let story = Story::spot().pods("stuck", pods(1).grace(600).exits_after(600)).late(100);
    story.expect(["100s evict stuck 201 grace=1", "receipt drained clamped=1"]);
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
fn failing_evictions_end_in_deletions_in_time() {
    let story = Story::spot().pods("web", pods(2).grace(13)).fault(Side::Api, "Evict", Fault::Refused, 0..200);
    story.expect(["105s delete web 200", "receipt drained forced=2"]).times(2, "delete web 200");
}

#[test]
fn pods_are_listed_if_watches_fail() {
    let story = Story::spot().pods("web", pods(2)).fault(Side::Api, "Watch", Fault::Refused, 0..200);
    story.expect(["evict web 201", "receipt drained clean=2"]);
}
