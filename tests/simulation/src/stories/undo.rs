//! Nodes that are given back, and nodes that are not.

use std::time::Duration;

use crate::plan::{Cause, Command};
use crate::story::{Story, pods};

/// A rebalance recommendation whose hour ends two minutes after it, and its drain.
fn rebalance() -> Story {
    Story::of(Cause::Rebalance).set("DRAIN_ON", "spot,rebalance").pods("web", pods(1))
}

/// An instance that stops, and starts again.
fn restart() -> Story {
    let [stops_after, starts_after] = [30, 300].map(Duration::from_secs);
    Story::of(Cause::Stop { stops_after, starts_after: Some(starts_after) }).pods("web", pods(1))
}

#[test]
fn rebalance_that_nothing_followed_is_undone_after_its_hour() {
    rebalance().tells(["1s claimed", "#0 receipt drained", "schedule fires", "uncordoned", "receipt done"]);
}

#[test]
fn rebalance_that_an_interruption_followed_is_not_undone() {
    rebalance().and(60, Cause::Spot).tells(["1s claimed", "#0 receipt drained", "taken"]).never("uncordoned");
}

#[test]
fn restarted_instance_has_its_node_given_back_when_ready() {
    let told = restart().tells(["1s claimed", "receipt drained", "kubelet", "uncordoned", "receipt done"]);
    told.times(1, "uncordoned");
}

#[test]
fn cordon_of_somebody_else_before_the_claim_stays() {
    restart()
        .person(0, Command::Cordon)
        .tells(["claimed though cordoned", "receipt drained", "given back"])
        .never("uncordoned");
}

#[test]
fn cordon_of_somebody_else_after_the_claim_stays() {
    restart().person(60, Command::Recordon).tells(["1s claimed", "Recordon", "given back"]).never("node uncordoned");
}

#[test]
fn opted_out_node_keeps_its_claim() {
    restart().person(60, Command::OptOut).tells(["1s claimed", "OptOut", "receipt ignored"]).never("uncordoned");
}

#[test]
fn stopped_instance_is_declared_out_of_service_until_it_is_back() {
    let story = restart().set("TAINTS", "out-of-service");
    story.tells(["1s claimed", "missed", "out of service", "kubelet", "uncordoned"]);
}

#[test]
fn marks_come_with_the_claim_and_go_with_it() {
    let told = restart()
        .set("TAINTS", "spillway")
        .set("LOAD_BALANCERS", "exclude")
        .tells(["1s claimed tainted", "given back uncordoned"]);
    told.times(1, "claimed");
}
