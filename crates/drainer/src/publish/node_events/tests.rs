use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use spillway_core::drain::deadline::{Deletion, Grace, Termination};
use spillway_core::drain::report::DrainEnd;
use spillway_core::drain::request::Method;
use spillway_core::outcome::Outcome;
use spillway_notice::continued::{History, PublishedBlockage};
use spillway_receipt::Pod;
use spillway_settings::LifecycleResult;

use super::*;
use crate::publish::tests::{
    after, drain_report, gone, pod, pods_lost, receipt as receipt_so_far, receipt_of, story, window,
};
use crate::receipt::Fate;
use crate::receipt::record::{HookStatus, Record};

/// Receipt with a pod for each fate. Evictions were accepted two seconds after the notice.
fn receipt() -> Publication {
    under_way(receipt_so_far())
}

fn under_way(mut published: Publication) -> Publication {
    for pod in published.receipt.records_mut() {
        pod.accepted_ms = (!matches!(pod.fate, Fate::Lost | Fate::Remaining | Fate::Stayed)).then_some(2_000);
    }
    published
}

/// Events in the form of `kubectl get events`.
fn lines(events: Vec<Event>) -> String {
    let line = |event: Event| {
        let regarding = event.regarding.unwrap();
        let fields = [event.type_, event.reason, regarding.kind, regarding.name, event.note];
        let [severity, reason, kind, name, note] = fields.map(Option::unwrap);
        format!("{severity} {reason} {}/{name} {note}\n", kind.to_lowercase())
    };
    events.into_iter().map(line).collect()
}

fn shown(published: &Publication) -> String {
    let now = after(9_060);
    let is_over = published.receipt.ending.is_some();
    lines(if is_over { ended(published, now) } else { begun(published, 6, now) })
}

fn failed() -> Publication {
    let mut story = story();
    story.1.step(StepName::Completed, after(9_050));
    story.1.hook = HookStatus::Completed(LifecycleResult::Continue);
    under_way(receipt_of(&story, Err(&pods_lost())))
}

fn continued() -> Publication {
    let mut story = story();
    story.1.hook = HookStatus::Held;
    let mut published = under_way(receipt_of(&story, Ok(&Outcome::Continued { unfinished: String::new() })));
    published.receipt.reason = "handed on to a later invocation".to_owned();
    published
}

fn ending(ending: Ending) -> Publication {
    let mut published = receipt();
    published.receipt.pods.clear();
    (published.receipt.ending, published.receipt.reason) = (Some(ending), "the reason".to_owned());
    published
}

#[tokio::test(start_paused = true)]
async fn begun_drain_has_an_event_on_the_node() {
    let mut so_far = receipt();
    let with_a_hook = shown(&so_far);
    so_far.receipt.hook = None;
    so_far.receipt.notice.deadline = Some(after(120_000));
    insta::assert_snapshot!(with_a_hook + &shown(&so_far));
}

/// Blockage of this many pods.
fn blockage(turn: PublishedBlockage, pods: u32) -> BlockedPods {
    let mut publication = receipt();
    publication.receipt.reason = "the reason".to_owned();
    let pod = |n| PodRecord {
        why: Some("PodDisruptionBudget db blocks it".to_owned()),
        ..PodRecord::of(format!("shop/db-{n}"), format!("uid-{n}"), Fate::Remaining, Duration::from_secs(30))
    };
    BlockedPods { turn, publication, pods: (0..pods).map(pod).collect() }
}

#[tokio::test(start_paused = true)]
async fn blockage_has_events_on_node_and_pods() {
    let published = |turn| lines(blocked(&blockage(turn, 1), after(9_060)));
    let node = "node/ip-10-0-0-1.ec2.internal terminate lifecycle action: the reason";
    let of_pod = "pod/db-0 drain of node ip-10-0-0-1.ec2.internal (terminate lifecycle action):";
    let begun = format!("Warning DrainBlocked {node}\nWarning Blocked {of_pod} PodDisruptionBudget db blocks it\n");
    assert_eq!(published(PublishedBlockage::Begun), begun);
    let over = format!("Normal DrainUnblocked {node}\nNormal Unblocked {of_pod} nothing blocks it any more\n");
    assert_eq!(published(PublishedBlockage::Over), over);
    assert_eq!(blocked(&blockage(PublishedBlockage::Begun, 300), after(9_060)).len(), 1 + 20);
}

#[tokio::test(start_paused = true)]
async fn ended_drain_has_events_on_node_and_pods() {
    insta::assert_snapshot!(shown(&failed()));
    // The next invocation publishes the remaining pods.
    assert!(!shown(&continued()).contains("pod/held"));
}

#[tokio::test(start_paused = true)]
async fn pod_evicted_by_another_has_an_event_with_the_cause() {
    let (uid, mut cut_short) = pod("cut-short", gone(), Some((Method::Evict, Grace::Own)));
    cut_short.history.accepted_at = None;
    let (now, window) = (tokio::time::Instant::now(), window(Termination::MayStay));
    cut_short.terminating(Deletion { since: now, by: now }, Some(Duration::from_secs(8)), window, now);
    let report = drain_report([(uid, cut_short)].into(), DrainEnd::Empty);
    let mut published = ending(Ending::Drained);
    let mut record = Record::default();
    record.drained(&report, &History::of(Value::Null), |_| 9_000);
    published.receipt.pods = record.pods.into_iter().map(Pod::Full).collect();
    published.left_by = record.left_by;
    let events = shown(&published);
    let of_pod = "Warning EvictedWithLessGrace pod/cut-short drain of node ip-10-0-0-1.ec2.internal (terminate lifecycle action): \
                  evicted, with 8 s of its grace period of 30 s (another notice's drain or a person had it leave)";
    assert_eq!(events.lines().last(), Some(of_pod));
}

#[tokio::test(start_paused = true)]
async fn event_is_valid_for_the_api_server() {
    let events = ended(&failed(), after(9_060));
    insta::assert_compact_json_snapshot!(events[1]);
    let node = events[0].regarding.as_ref().unwrap();
    assert_eq!((&node.name, node.namespace.as_deref()), (&node.uid, None), "as the kubelet writes it");
    assert_eq!(events[0].metadata.namespace.as_deref(), Some("default"));
    let begun = begun(&receipt(), 1, after(9_060)).remove(0);
    assert_eq!(begun.metadata.annotations, Some([("spillway/pods".to_owned(), "1".to_owned())].into()));
    assert!(begun.note.unwrap().ends_with("; 1 pod has to leave"));
    let names: BTreeSet<_> = events.iter().map(|event| &event.metadata.name).collect();
    assert_eq!(names.len(), events.len());
}

#[tokio::test(start_paused = true)]
async fn note_is_cut_to_the_limit_of_the_api_server() {
    let mut published = receipt();
    (published.receipt.ending, published.receipt.reason) = (Some(Ending::Failed), format!("x{}", "é".repeat(1_000)));
    let notes = ended(&published, after(9_060)).into_iter().map(|event| event.note.unwrap());
    assert_eq!(notes.map(|note| note.len()).max(), Some(1_023));
}

#[tokio::test(start_paused = true)]
async fn joined_unclaimed_and_dry_drains_have_no_events() {
    let changes: [fn(&mut Receipt); 3] = [
        |receipt| receipt.ending = Some(Ending::Joined),
        |receipt| receipt.dry_run = true,
        |receipt| receipt.steps.retain(|done| done.step != StepName::Claimed),
    ];
    for change in changes {
        let mut published = failed();
        change(&mut published.receipt);
        assert_eq!(shown(&published), "");
    }
}

#[tokio::test(start_paused = true)]
async fn page_has_each_reason_with_its_type() {
    let mut receipts = vec![receipt(), failed(), continued()];
    receipts.extend([Ending::Drained, Ending::Done, Ending::Ignored].map(ending));
    let blocked = [PublishedBlockage::Begun, PublishedBlockage::Over]
        .map(|turn| lines(blocked(&blockage(turn, 1), after(9_060))));
    let ours: BTreeSet<_> = receipts
        .iter()
        .map(shown)
        .chain(blocked)
        .flat_map(|shown| {
            let reason = |line: &str| {
                let mut words = line.split(' ');
                let (severity, reason) = (words.next().unwrap(), words.next().unwrap());
                let on = words.next().unwrap().split('/').next().unwrap();
                format!("| `{reason}` | {on} | {severity} |")
            };
            shown.lines().map(reason).collect::<Vec<_>>()
        })
        .collect();
    let page = include_str!("../../../../../docs/what-happens.md");
    let rows = page.lines().skip_while(|line| *line != "| reason | on | type | when |").skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let documented: BTreeSet<_> = rows.map(|row| row.split('|').take(4).collect::<Vec<_>>().join("|") + "|").collect();
    assert_eq!(documented, ours);
}
