use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;
use spillway_core::clock::Clock;
use spillway_core::cluster::ClusterName;
use spillway_core::drain::answer::Answer;
use spillway_core::drain::deadline::{Grace, Termination, Window};
use spillway_core::drain::plan::{PodUid, Stays};
use spillway_core::drain::pod::blocker::{Blocked, Blocker, BudgetName};
use spillway_core::drain::pod::{PodState, RequestedBy, Tracked, Unconfirmed};
use spillway_core::drain::report::{DrainEnd, DrainReport};
use spillway_core::drain::request::Method;
use spillway_core::drain::tier::Tier;
use spillway_core::instance::Instance;
use spillway_core::outcome::{DrainOutcome, Outcome, not_yet};
use spillway_notice::continued::{Earlier, History};
use spillway_notice::{Deadline, Home, Kind, Notice};
use spillway_settings::LifecycleResult;

use super::document::begun;
use super::*;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{Counts, Ended, Ending, Fate, StepName, Subject};
use crate::test_support;

fn notice_time() -> Timestamp {
    "2026-11-21T03:12:00Z".parse().unwrap()
}

pub(super) fn after(ms: i64) -> Timestamp {
    notice_time() + SignedDuration::from_millis(ms)
}

fn name_of(pod: &str) -> PodName {
    PodName { namespace: "shop".to_owned(), name: pod.to_owned() }
}

pub(super) fn pod(name: &str, state: PodState, requested: Option<(Method, Grace)>) -> (PodUid, Tracked) {
    let now = tokio::time::Instant::now();
    let mut tracked = Tracked::new(name_of(name), Tier::Ordinary, Duration::from_secs(30), now);
    if let Some((method, grace)) = requested {
        tracked.request(method, grace, now);
        tracked.history.count(&Answer::Leaving);
        tracked.history.accepted_at = Some(now);
    }
    tracked.state = state;
    (PodUid(format!("uid-of-{name}")), tracked)
}

pub(super) fn gone() -> PodState {
    PodState::Gone { at: tokio::time::Instant::now() }
}

/// Window that starts and ends now.
pub(super) fn window(instance_goes: Termination) -> Window {
    let (now, zero) = (tokio::time::Instant::now(), Duration::ZERO);
    Window { start: now, end: now, instance_goes, margin: zero, detaching: zero, dead_since: None }
}

/// Report of a drain that ends now.
pub(super) fn drain_report(pods: BTreeMap<PodUid, Tracked>, end: DrainEnd) -> DrainReport {
    let (now, window) = (tokio::time::Instant::now(), window(Termination::MayStay));
    DrainReport { pods, window, blockage: None, end, emptied_at: now, ended_at: now, watch_error: None }
}

fn invocation() -> Invocation {
    let mut invocation = Invocation::until(Timestamp::MAX, "r-1", Clock::starting_at(notice_time()));
    invocation.home = Home { account: "123456789012".to_owned(), region: "us-east-1".to_owned() };
    invocation
}

/// Notice whose drain lost a pod, and its record with a pod for each fate.
pub(super) fn story() -> (Notice, Record) {
    let notice = test_support::notice(Kind::Terminate, Deadline::HeldByHook);
    let notice = Notice { time: notice_time(), hook: Some(test_support::hook("drain")), ..notice };
    let type_name = Some("m7g.large".to_owned());
    let tags = [("aws:autoscaling:groupName".to_owned(), "workers".to_owned())].into();
    let instance = Instance { type_name, tags, ..test_support::instance() };
    let clamped = Grace::Clamped(Duration::from_secs(7));
    let web = Blocker::Budget(BudgetName { namespace: "shop".to_owned(), name: "web".to_owned() });
    let (held_uid, mut held) = pod("held", PodState::Waits { due: None }, None);
    held.blocked = Blocked::By(web.clone());
    for _ in 0..4 {
        held.history.count(&Answer::BlockedBy { budget: "web".to_owned() });
    }
    let (forced_uid, mut forced) = pod("forced", gone(), Some((Method::Delete, clamped)));
    forced.history.count(&Answer::BlockedBySeveral);
    forced.blocked = Blocked::Formerly(web);
    let pods = BTreeMap::from([
        pod("agent", PodState::Stays(Stays::DaemonSet), None),
        pod("clamped", gone(), Some((Method::Evict, clamped))),
        pod("clean", gone(), Some((Method::Evict, Grace::Own))),
        pod("unconfirmed", PodState::Unconfirmed(Unconfirmed::Silent), Some((Method::Evict, Grace::Own))),
        (forced_uid, forced),
        (held_uid, held),
    ]);
    let report = drain_report(pods, DrainEnd::TimeUp);
    let steps =
        [(StepName::Begun, 350), (StepName::Described, 420), (StepName::Claimed, 480), (StepName::Drained, 9_000)];
    let mut record = Record {
        steps: steps.map(|(step, ms)| (step, after(ms))).into(),
        instance: Some(instance),
        cluster: Some(ClusterName::new("prod")),
        node: Some("ip-10-0-0-1.ec2.internal".to_owned()),
        claim: Some(claim(ClaimResult::First)),
        ..Record::default()
    };
    record.drained(&report, &History::of(Value::Null), |_| 9_000);
    (notice, record)
}

pub(super) fn claim(how: ClaimResult) -> Claim {
    Claim {
        provider_id: String::new(),
        node: "ip-10-0-0-1.ec2.internal".to_owned(),
        how,
        holder: "e-1".to_owned(),
        labels: [("team".to_owned(), "shop".to_owned())].into(),
        cordoned: None,
        until: None,
    }
}

/// Receipt of the ended notice.
pub(super) fn receipt_of((notice, record): &(Notice, Record), ended: Ended<'_>) -> Publication {
    with_fixed_version(Publication::of(&invocation(), Subject::One { notice, earlier: &[] }, record, ended))
}

/// Receipt of the notice in progress.
pub(super) fn receipt() -> Publication {
    let (notice, record) = story();
    begun_receipt(&notice, &record, String::new())
}

fn begun_receipt(notice: &Notice, record: &Record, reason: String) -> Publication {
    let subject = Subject::One { notice, earlier: &[] };
    with_fixed_version(Publication::begun(&invocation(), subject, record, reason))
}

/// Fixes the release, so that snapshots outlast it.
fn with_fixed_version(mut publication: Publication) -> Publication {
    assert_eq!(publication.receipt.release, env!("CARGO_PKG_VERSION"));
    publication.receipt.release = "0.2.0".into();
    publication
}

/// Receipt of an unreadable event.
pub(super) fn unread() -> Publication {
    Publication::begun(&invocation(), Subject::Unread { event_id: None }, &Record::default(), String::new())
}

pub(super) fn pods_lost() -> Failure {
    Failure::PodsLost { node: "ip-10-0-0-1.ec2.internal".to_owned(), lost: 1, all: 4 }
}

fn drained() -> Outcome {
    let counts = Counts { moved: 3, lost: 0, unconfirmed: 0 };
    DrainOutcome::Drained { node: "ip-10-0-0-1.ec2.internal".to_owned(), counts }.into()
}

fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

fn measured(publication: &Publication) -> Value {
    json_of(&metrics::line(publication, after(9_060)).unwrap())
}

fn joined() -> ClaimResult {
    ClaimResult::Joined { notice: "spot interruption".to_owned(), event: "e-0".to_owned() }
}

#[test]
fn begin_is_published_by_the_first_invocation_of_the_claimant() {
    let (now, id) = (Timestamp::UNIX_EPOCH, "r-0".to_owned());
    let before = Earlier { request_id: id, from: now, to: now, node: None, pods: BTreeMap::new() };
    let claimants = [ClaimResult::First, ClaimResult::CordonedByOthers, ClaimResult::Again, joined()];
    let published = claimants.map(|how| {
        [vec![], vec![before.clone()]]
            .map(|earlier| publishes_begin(&claim(how.clone()), &History { earlier, ..History::of(Value::Null) }))
    });
    assert_eq!(published, [[true, false], [true, false], [false; 2], [false; 2]]);
}

#[tokio::test(start_paused = true)]
async fn the_receipt_of_a_drain_as_the_log_has_it() {
    let mut story = story();
    story.1.step(StepName::Completed, after(9_050));
    story.1.hook = HookStatus::Completed(LifecycleResult::Continue);
    let receipt = receipt_of(&story, Ok(&drained()));
    let line = document::lines(&receipt, after(9_060)).remove(0);
    // Also input of the tests of queries and of the announcer.
    insta::assert_snapshot!(line);
}

#[tokio::test(start_paused = true)]
async fn the_event_of_a_drain_that_has_begun() {
    let (notice, mut record) = story();
    record.pods.clear();
    record.steps.truncate(3);
    let reason = not_yet("ip-10-0-0-1.ec2.internal", Kind::Terminate);
    let so_far = begun_receipt(&notice, &record, reason);
    insta::assert_snapshot!(begun(&so_far, &[name_of("web-0"), name_of("web-1")], after(560)));
}

/// Sizes near the limit of EventBridge, 256 KiB with source and type.
const NEARLY_ALL: RangeInclusive<usize> = 230 * 1024..=250 * 1024;

#[tokio::test(start_paused = true)]
async fn begun_event_names_as_many_pods_as_the_bus_accepts() {
    let mut so_far = receipt();
    so_far.receipt.pods.clear();
    let all: Vec<PodName> = (0..2_000).map(|n| name_of(&format!("{n:0>200}"))).collect();

    let event = begun(&so_far, &all, after(560));

    assert!(NEARLY_ALL.contains(&event.len()), "{}", event.len());
    let event = json_of(&event);
    let (named, cut) = (event["pods"].as_array().unwrap(), event["pods_cut"].as_u64().unwrap());
    assert_eq!(named.len() + usize::try_from(cut).unwrap(), all.len());
    assert_eq!(named[0]["pod"], all[0].to_string());
}

#[tokio::test(start_paused = true)]
async fn long_receipt_is_cut_alike_for_log_and_bus() {
    let mut published = receipt();
    let clean = published.receipt.pods.iter().find(|pod| pod.fate() == Some(Fate::Clean)).unwrap().clone();
    published.receipt.pods.extend(std::iter::repeat_n(clean, 2_000));
    published.receipt.ending = Some(Ending::Drained);
    let all = published.receipt.pods.len();

    cut(&mut published, after(9_060));

    let event = document::detail(&published, after(9_060));
    let lines = document::lines(&published, after(9_060));
    assert!(NEARLY_ALL.contains(&event.len()), "{}", event.len());
    let mut event = json_of(&event);
    event.as_object_mut().unwrap().remove("node_labels").unwrap();
    let mut parts = lines.iter().map(|line| json_of(line));
    let mut line = parts.next().unwrap();
    assert_eq!(line.as_object_mut().unwrap().remove("receipt_parts"), Some(lines.len().into()));
    for mut part in parts {
        line["pods"].as_array_mut().unwrap().append(part["pods"].as_array_mut().unwrap());
    }
    assert_eq!(event, line);
    let (kept, cut) = (line["pods"].as_array().unwrap(), line["pods_cut"].as_u64().unwrap());
    assert_eq!(u64::try_from(kept.len()).unwrap() + cut, u64::try_from(all).unwrap());
    assert_eq!((&kept[0]["fate"], &kept[1]["fate"]), (&"lost".into(), &"forced".into()));
}

#[tokio::test(start_paused = true)]
async fn failure_has_error_type_and_state_of_the_hook() {
    let receipt = receipt_of(&story(), Err(&pods_lost()));
    let line = json_of(&document::lines(&receipt, after(9_060))[0]);
    assert_eq!((&line["level"], &line["error"]), (&"ERROR".into(), &"PodsLost".into()));
    assert_eq!(receipt_of(&story(), Ok(&drained())).receipt.error, None);
}

#[tokio::test(start_paused = true)]
async fn the_metrics_are_in_the_embedded_format() {
    let mut receipt = receipt_of(&story(), Ok(&drained()));
    receipt.receipt.stack = "spillway".to_owned();
    insta::assert_snapshot!(metrics::line(&receipt, after(9_060)).unwrap());
}

#[tokio::test(start_paused = true)]
async fn pod_is_counted_for_the_followed_notice_else_the_claimant() {
    let clean = |name, left_by| {
        let (uid, mut tracked) = pod(name, gone(), Some((Method::Evict, Grace::Own)));
        tracked.history.left_by = left_by;
        (uid, tracked)
    };
    let counted = |how| {
        let mut story = story();
        story.1.claim = Some(claim(how));
        let left = pod("left", PodState::Requested, Some((Method::Evict, Grace::Own)));
        let pods = [
            left,
            clean("ours-1", Some(RequestedBy::ThisDrain)),
            clean("ours-2", Some(RequestedBy::ThisDrain)),
            clean("anothers", Some(RequestedBy::Another)),
            clean("not_a_node", None),
        ];
        let report = drain_report(pods.into(), DrainEnd::TimeUp);
        story.1.drained(&report, &History::of(Value::Null), |_| 9_000);
        let receipt = receipt_of(&story, Err(&pods_lost()));
        let line = measured(&receipt);
        ["PodsClean", "PodsFullGrace", "PodsLost"].map(|metric| line[metric].as_u64().unwrap())
    };
    assert_eq!(counted(ClaimResult::First), [3, 3, 1]);
    assert_eq!(counted(joined()), [2, 2, 1], "lost pods are counted for each notice");
}

#[tokio::test(start_paused = true)]
async fn time_to_empty_needs_an_empty_node() {
    let mut story = story();
    let times = |receipt: &Publication| {
        let line = measured(receipt);
        (line["NoticeToDrained"].as_i64(), line["TimeLeft"].as_i64())
    };
    assert_eq!(times(&receipt_of(&story, Err(&pods_lost()))), (None, None), "the deadline is unknown");
    let now = tokio::time::Instant::now();
    let goes_after = |seconds| window(Termination::At(now + Duration::from_secs(seconds)));
    story.1.window = Some(goes_after(120));
    assert_eq!(times(&receipt_of(&story, Err(&pods_lost()))), (None, Some(111_000)));
    story.1.pods.retain(|pod| pod.fate != Fate::Lost);
    story.1.window = Some(goes_after(8));
    assert_eq!(times(&receipt_of(&story, Ok(&drained()))), (Some(9_000), Some(0)));
}

#[tokio::test(start_paused = true)]
async fn continued_receipt_counts_no_pod_as_lost() {
    let mut story = story();
    story.1.step(StepName::HandedOn, after(9_050));
    story.1.hook = HookStatus::Held;
    let first = receipt_of(&story, Ok(&Outcome::Continued { unfinished: pods_lost().text() }));
    let line = document::lines(&first, after(9_060)).remove(0);
    // Unformatted, for the tests of receipt readers.
    insta::assert_snapshot!("the_receipt_of_a_drain_that_is_continued", line);
    let metrics = measured(&first);
    assert_eq!((&metrics["PodsLost"], &metrics["HooksNotCompleted"]), (&0.into(), &0.into()));
    assert_eq!(metrics.get("NoticeToDrained"), None, "the node is not empty");
}

#[tokio::test(start_paused = true)]
async fn failures_and_uncompleted_hooks_are_counted() {
    let mut story = story();
    let counted = |published: &Publication| {
        let line = measured(published);
        ["Notices", "Failures", "HooksNotCompleted"].map(|name| line[name].as_u64().unwrap())
    };
    story.1.hook = HookStatus::Failed(LifecycleResult::Continue);
    assert_eq!(counted(&receipt_of(&story, Err(&pods_lost()))), [1, 1, 1]);
    assert_eq!(counted(&receipt_of(&story, Ok(&drained()))), [1, 0, 1], "the drain was none");
    story.1.hook = HookStatus::Completed(LifecycleResult::Continue);
    assert_eq!(counted(&receipt_of(&story, Ok(&drained()))), [1, 0, 0]);
}
