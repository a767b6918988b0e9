//! Builds the log line with a receipt's CloudWatch metrics.

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_core::drain::pod::RequestedBy;
use spillway_startup::emf::{self, Breakdown, Metric, Unit};

use crate::receipt::{Ending, Fate, HookState, PodRecord, Publication, StepName};

/// Metrics with the dimensions `Cluster`, `Notice` and `Ending`. The list is short, because CloudWatch charges for each
/// combination of values.
const BY_CLUSTER: [&str; 3] = ["Notices", "PodsLost", "PodsForced"];

/// Returns the log line with the metrics. Returns `None` for successful maintenance lookups, unhandled events and instances of
/// other clusters.
pub(super) fn line(publication: &Publication, now: Timestamp) -> Option<String> {
    let receipt = &publication.receipt;
    let ending = receipt.ending?;
    if publication.is_uncounted {
        return None;
    }
    let kind = match (receipt.notice.kind.as_deref(), ending) {
        (Some(kind), _) => kind,
        (None, Ending::Failed) => "unreadable",
        (None, _) => return None,
    };
    let dimensions = [
        ("Cluster", json!(receipt.cluster.as_deref().unwrap_or("none"))),
        ("Notice", json!(kind)),
        ("Ending", json!(ending)),
    ];
    let metrics = metrics(publication).into_iter().filter_map(|(name, unit, value)| Some((name, unit, value?)));
    let by_cluster = Breakdown { dimensions: &dimensions, metrics: &BY_CLUSTER };
    Some(emf::line(&receipt.stack, &metrics.collect::<Vec<_>>(), &by_cluster, now))
}

/// Returns all metrics (docs/metrics.md) with their values for this receipt.
fn metrics(publication: &Publication) -> [Metric<Option<Value>>; 15] {
    let receipt = &publication.receipt;
    let count = |count: usize| Some(json!(count));
    let failed = receipt.ending == Some(Ending::Failed);
    let hook_not_completed = receipt.hook.as_ref().is_some_and(|hook| hook.state == HookState::Failed);
    let counted: Vec<_> = receipt.records().filter(|pod| is_counted(pod, publication)).collect();
    let pods = |is_meant: fn(&PodRecord) -> bool| count(counted.iter().filter(|pod| is_meant(pod)).count());
    let refusals: u32 = receipt.records().map(PodRecord::refusals).sum();
    let drained = receipt.step_ms(StepName::Drained);
    let emptied = drained.filter(|_| receipt.count(Fate::Lost) + receipt.count(Fate::Remaining) == 0);
    let goes = receipt.window.and_then(|window| window.deadline_ms);
    // CloudWatch has no percentiles of a metric with a negative value.
    let time_left = goes.zip(drained).map(|(goes, drained)| goes.saturating_sub(drained).max(0));
    [
        ("Notices", Unit::Count, count(1)),
        ("Failures", Unit::Count, count(usize::from(failed))),
        ("PodsClean", Unit::Count, pods(|pod| pod.fate == Fate::Clean)),
        ("PodsClamped", Unit::Count, pods(|pod| pod.fate == Fate::Clamped)),
        ("PodsForced", Unit::Count, pods(|pod| pod.fate == Fate::Forced)),
        // Counted for each notice, because a joined notice may be the only one with a receipt.
        ("PodsLost", Unit::Count, count(receipt.count(Fate::Lost))),
        ("PodsUnconfirmed", Unit::Count, pods(|pod| pod.fate == Fate::Unconfirmed)),
        ("PodsFullGrace", Unit::Count, pods(PodRecord::had_its_full_grace)),
        ("PodsBlocked", Unit::Count, pods(|pod| pod.refusals() > 0)),
        ("BudgetRefusals", Unit::Count, Some(json!(refusals))),
        ("HooksNotCompleted", Unit::Count, count(usize::from(hook_not_completed))),
        ("NoticeToClaim", Unit::Milliseconds, receipt.step_ms(StepName::Claimed).map(Value::from)),
        ("NoticeToReplacement", Unit::Milliseconds, receipt.step_ms(StepName::ReplacementRequested).map(Value::from)),
        ("NoticeToDrained", Unit::Milliseconds, emptied.map(Value::from)),
        ("TimeLeft", Unit::Milliseconds, time_left.map(Value::from)),
    ]
}

/// Returns `true` if this notice's drain made the pod leave. If the cause is unknown, the pod counts for the notice that holds
/// the claim.
fn is_counted(pod: &PodRecord, publication: &Publication) -> bool {
    match publication.left_by(pod) {
        Some(RequestedBy::ThisDrain) => true,
        Some(RequestedBy::Another) => false,
        None => !publication.is_joined,
    }
}

#[cfg(test)]
mod tests {
    use spillway_core::cluster::ClusterName;
    use spillway_core::decision::Reason;
    use spillway_core::outcome::Outcome;
    use spillway_core::test_support::instance_id;

    use super::*;
    use crate::publish::tests::{pods_lost, receipt_of, story, unread};

    #[test]
    fn notices_of_foreign_clusters_have_no_metrics() {
        let is_counted =
            |ended: Result<&Outcome, &_>| line(&receipt_of(&story(), ended), Timestamp::UNIX_EPOCH).is_some();
        let ignored = |reason| is_counted(Ok(&Outcome::Ignored(reason)));
        let other = || ClusterName::new("other");
        for reason in [
            Reason::NoCluster(instance_id()),
            Reason::NotOurCluster(other()),
            Reason::AccessDenied { cluster: other(), code: 401 },
            Reason::UnknownCluster(other()),
            Reason::NothingLeft,
        ] {
            assert!(!ignored(reason.clone()), "{reason}");
        }
        assert!(ignored(Reason::OptedOut("n-1".to_owned())));
        assert!(is_counted(Err(&pods_lost())));
        let mut unhandled = unread();
        unhandled.receipt.ending = Some(Ending::Ignored);
        assert_eq!(line(&unhandled, Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn page_of_metrics_has_each_metric_and_unit() {
        let page = include_str!("../../../../docs/metrics.md");
        let cells = |row: &'static str| row.split('|').map(str::trim).collect::<Vec<_>>();
        let is_metric = |line: &&str| line.starts_with("| `");
        let rows = page.lines().skip_while(|line| !is_metric(line)).take_while(is_metric).map(cells);
        let documented: Vec<_> = rows.map(|row| (row[1].trim_matches('`'), row[2])).collect();
        let emitted = metrics(&unread()).map(|(name, unit, _)| (name, unit.as_str()));
        assert_eq!(documented, emitted);
    }
}
