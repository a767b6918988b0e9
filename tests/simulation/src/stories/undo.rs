//! Return of claimed nodes.

use std::time::Duration;

use crate::plan::{Cause, Command};
use crate::story::{Story, pods};

/// Drain of a rebalance recommendation with two minutes left of its hour.
fn rebalance() -> Story {
    Story::of(Cause::Rebalance).set("DRAIN_ON", "spot,rebalance").pods("web", pods(1))
}

/// An instance that stops and restarts.
fn restart() -> Story {
    let [stops_after, starts_after] = [30, 300].map(Duration::from_secs);
    Story::of(Cause::Stop { stops_after, starts_after: Some(starts_after) }).pods("web", pods(1))
}

#[test]
fn rebalance_without_interruption_is_undone_after_its_hour() {
    rebalance().expect(["1s claimed", "#0 receipt drained", "schedule fires", "uncordoned", "receipt done"]);
}

#[test]
fn rebalance_before_an_interruption_is_not_undone() {
    rebalance().and(60, Cause::Spot).expect(["1s claimed", "#0 receipt drained", "taken"]).never("uncordoned");
}

#[test]
fn restarted_instance_has_its_node_given_back_when_ready() {
    let outcome = restart().expect(["1s claimed", "receipt drained", "kubelet", "uncordoned", "receipt done"]);
    outcome.times(1, "uncordoned");
}

#[test]
fn foreign_cordon_before_the_claim_stays() {
    restart()
        .person(0, Command::Cordon)
        .expect(["claimed though cordoned", "receipt drained", "given back"])
        .never("uncordoned");
}

#[test]
fn foreign_cordon_after_the_claim_stays() {
    restart().person(60, Command::Recordon).expect(["1s claimed", "Recordon", "given back"]).never("node uncordoned");
}

#[test]
fn opted_out_node_keeps_its_claim() {
    restart().person(60, Command::OptOut).expect(["1s claimed", "OptOut", "receipt ignored"]).never("uncordoned");
}

#[test]
fn stopped_instance_is_declared_out_of_service_until_it_is_back() {
    let story = restart().set("TAINTS", "out-of-service");
    story.expect(["1s claimed", "missed", "out of service", "kubelet", "uncordoned"]);
}

#[test]
fn marks_are_set_and_removed_with_the_claim() {
    let outcome = restart()
        .set("TAINTS", "spillway")
        .set("LOAD_BALANCERS", "exclude")
        .expect(["1s claimed tainted", "given back uncordoned"]);
    outcome.times(1, "claimed");
}
