//! Pods blocked by a budget or an annotation.

use std::time::Duration;

use crate::plan::{Annotation, Cause};
use crate::story::{Story, pods};

#[test]
fn blocked_pod_is_deleted_at_its_last_safe_moment() {
    let story = Story::spot().pods("web", pods(1).grace(30).blocked());
    story.expect(["1s evict web 429", "88s delete web 200", "#0 receipt drained forced=1"]).times(1, "delete web");
}

#[test]
fn blocked_pod_of_a_late_notice_keeps_its_grace() {
    // Five seconds after the end of the instance.
    let story = Story::spot().late(125).pods("web", pods(1).grace(30).exits_after(12).blocked());
    story.run().never("delete web 200 grace=");
}

#[test]
fn critical_pods_do_not_wait_for_an_annotated_pod() {
    let story = Story::spot().pods("web", pods(1).annotated(Annotation::DoNotDisrupt)).pods("dns", pods(1).critical());
    story.expect(["1s evict dns 201", "60s evict web 201", "#0 receipt drained clean=2"]).never("delete");
}

#[test]
fn critical_pods_budget_has_time_beside_a_slow_pod() {
    let web = pods(1).grace(600).exits_after(600);
    let story = Story::spot().pods("web", web).pods("dns", pods(1).grace(1).critical().blocked());
    story.expect(["1s evict web 201", "60s evict dns 429", "117s delete dns 200"]);
}

#[test]
fn pods_behind_a_budget_leave_as_replacements_become_ready() {
    let story = Story::spot().pods("web", pods(10).budget(1));
    story
        .expect(["1s evict web 201", "1s evict web 429", "#0 receipt drained clean=10"])
        .never("delete")
        .never("published Blocked");
}

#[test]
fn begin_and_end_of_a_long_block_are_published_once() {
    let story = Story::spot().pods("web", pods(1).grace(10).exits_after(5).blocked());
    let outcome = story.expect([
        "published Begun",
        "published Blocked",
        "108s delete web",
        "published Unblocked",
        "published Receipt",
    ]);
    outcome.times(1, "published Blocked").times(1, "published Unblocked");
}

#[test]
fn silent_kubelet_forces_blocked_pods() {
    let stop = Cause::Stop { stops_after: Duration::from_secs(5), starts_after: None };
    let story = Story::of(stop).pods("web", pods(1).blocked());
    let outcome = story.expect(["1s evict web 429", "missed", "delete web 200", "#0 receipt drained unconfirmed=1"]);
    outcome.never("delete web 200 grace=");
}
