//! Scheduled maintenance.

use std::time::Duration;

use crate::plan::{Cause, Fault, Side};
use crate::story::{Story, pods};

/// Maintenance that starts at a second and is cancelled at another.
fn cancelled(starts: u64, at: u64) -> Story {
    let [starts_after, at] = [starts, at].map(Duration::from_secs);
    Story::of(Cause::Maintenance { starts_after, reboots: true, called_off_after: Some(at) })
}

#[test]
fn maintenance_is_drained_its_lead_before_it_starts() {
    let story = Story::reboot_at(7200).set("MAINTENANCE_LEAD_S", "1800").pods("web", pods(2));
    let outcome = story.expect([
        "POST /schedules/",
        "#0 receipt continued",
        "schedule fires",
        "claimed",
        "evict web 201",
        "receipt drained clean=2",
    ]);
    outcome.times(1, "claimed");
}

#[test]
fn maintenance_within_two_minutes_is_slept_until_its_lead() {
    let story = Story::reboot_at(150).set("MAINTENANCE_LEAD_S", "60").pods("web", pods(1));
    story.expect(["91s claimed", "#0 receipt drained clean=1"]).never("receipt continued");
}

#[test]
fn cancelled_maintenance_is_not_begun() {
    let story = cancelled(7200, 600).set("MAINTENANCE_LEAD_S", "1800").pods("web", pods(1));
    story.expect(["#0 receipt continued", "601s DELETE /schedules/", "#1 receipt done"]).never("claimed");
}

#[test]
fn maintenance_cancelled_after_its_drain_gives_its_node_back() {
    let story = cancelled(3600, 600).set("MAINTENANCE_LEAD_S", "7200").pods("web", pods(1));
    story.expect(["1s claimed", "#0 receipt drained", "601s uncordoned", "#1 receipt done"]);
}

#[test]
fn maintenance_cancelled_in_mid_drain_stops_the_drain() {
    let story = cancelled(1800, 60).set("MAINTENANCE_LEAD_S", "3600").pods("web", pods(1).grace(30).blocked());
    story.expect(["1s claimed", "evict web 429", "61s uncordoned", "#0 receipt ignored stayed=1"]).never("delete web");
}

#[test]
fn rebooted_node_is_given_back_and_not_before() {
    let story = Story::reboot_at(600).set("MAINTENANCE_LEAD_S", "3600").pods("web", pods(1));
    let outcome = story.expect(["1s claimed", "#0 receipt drained", "kubelet", "uncordoned", "receipt done"]);
    outcome.times(1, "uncordoned");
}

#[test]
fn denied_schedule_fails_and_names_the_right() {
    let story = Story::reboot_at(7200).set("MAINTENANCE_LEAD_S", "1800").pods("web", pods(1));
    story
        .fault(Side::Aws, "/schedules/", Fault::Denied, 0..1000)
        .expect(["#0 fails: scheduler:CreateSchedule", "given up"]);
}

#[test]
fn blocked_pod_is_deleted_at_half_of_the_lead_or_later() {
    let story = Story::reboot_at(3600).set("MAINTENANCE_LEAD_S", "7200").pods("web", pods(1).grace(30).blocked());
    story.expect(["1s evict web 429", "3568s delete web 200", "receipt drained forced=1"]);
}
