//! Builds the messages about blocked pods.

use std::time::Duration;

use spillway_core::clock::Clock;
use spillway_core::drain::blockage::{BlockageNews, BlockedPod, ReleasedPod};
use spillway_notice::continued::PublishedBlockage;
use spillway_receipt::{DRAIN_BLOCKED, DRAIN_UNBLOCKED, Fate, Leaving, Pod, PodRecord};

use crate::receipt::Publication;

pub(super) struct BlockedPods {
    pub(super) turn: PublishedBlockage,
    /// Receipt of the drain in progress. The reason describes the blockage, and the list of pods has only the affected pods.
    pub(super) publication: Publication,
    pub(super) pods: Vec<PodRecord>,
}

impl BlockedPods {
    pub(super) fn of(so_far: &Publication, news: BlockageNews, clock: Clock) -> Self {
        let mut publication = so_far.clone();
        let receipt = &mut publication.receipt;
        let node = receipt.node.as_deref().unwrap_or("without a name");
        let (turn, pods) = match news {
            BlockageNews::Begun(pods) => {
                let pods: Vec<_> = pods.into_iter().map(|pod| blocked(pod, clock)).collect();
                receipt.reason = cannot_leave(&pods, node);
                receipt.pods = pods.iter().cloned().map(Pod::Full).collect();
                (PublishedBlockage::Begun, pods)
            }
            BlockageNews::Over(pods) => {
                let released =
                    |pod: ReleasedPod| PodRecord::of(pod.name.to_string(), pod.uid.0, Fate::Remaining, Duration::ZERO);
                let pods: Vec<_> = pods.into_iter().map(released).collect();
                receipt.reason = can_leave(&pods, node);
                // The fates of released pods are not known yet.
                receipt.pods = pods.iter().map(|pod| Pod::NameOnly(Leaving { pod: pod.pod.clone() })).collect();
                (PublishedBlockage::Over, pods)
            }
        };
        Self { turn, publication, pods }
    }

    pub(super) fn detail_type(&self) -> &'static str {
        match self.turn {
            PublishedBlockage::Begun => DRAIN_BLOCKED,
            PublishedBlockage::Over => DRAIN_UNBLOCKED,
        }
    }
}

/// Returns the record of a blocked pod. The record contains the blocker and the latest possible end of the blockage.
fn blocked(pod: BlockedPod, clock: Clock) -> PodRecord {
    let BlockedPod { uid, name, by, until, grace, advice } = pod;
    let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
    let until = match until {
        Some(until) => format!("until {} at the latest", clock.at(until).strftime("%Y-%m-%dT%H:%M:%SZ")),
        None => "and nothing forces it to leave".to_owned(),
    };
    PodRecord {
        why: Some(format!("{by} blocks it {until}{advice}")),
        blocked_by: by.budget().map(ToString::to_string),
        ..PodRecord::of(name.to_string(), uid.0, Fate::Remaining, grace)
    }
}

fn cannot_leave(pods: &[PodRecord], node: &str) -> String {
    match pods {
        [] => format!("something blocked the drain of node {node}"),
        [one] => format!("pod {} cannot leave node {node}: {}", one.pod, one.why()),
        [first, ..] => format!("{} pods cannot leave node {node}, such as {}: {}", pods.len(), first.pod, first.why()),
    }
}

fn can_leave(pods: &[PodRecord], node: &str) -> String {
    match pods {
        [one] => format!("nothing blocks pod {} of node {node} any more", one.pod),
        _ => format!("nothing blocks the {} pods of node {node} any more", pods.len()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use spillway_core::drain::plan::{PodName, PodUid};
    use spillway_core::drain::pod::blocker::{Blocker, BudgetName};
    use tokio::time::Instant;

    use super::*;
    use crate::publish::tests::receipt;

    fn name(pod: &str) -> PodName {
        PodName { namespace: "shop".to_owned(), name: pod.to_owned() }
    }

    fn by(budget: &str, pod: &str, until: Option<Instant>) -> BlockedPod {
        let by = Blocker::Budget(BudgetName { namespace: "shop".to_owned(), name: budget.to_owned() });
        let uid = PodUid(format!("uid-of-{pod}"));
        BlockedPod { uid, name: name(pod), by, until, grace: Duration::from_secs(30), advice: None }
    }

    fn published(news: BlockageNews) -> (String, Vec<Pod>, &'static str) {
        let clock = Clock::starting_at("2026-11-21T03:12:00Z".parse::<Timestamp>().unwrap());
        let blockage = BlockedPods::of(&receipt(), news, clock);
        let detail_type = blockage.detail_type();
        (blockage.publication.receipt.reason, blockage.publication.receipt.pods, detail_type)
    }

    #[tokio::test(start_paused = true)]
    async fn blockage_names_pods_blocker_and_end() {
        let until = Some(Instant::now() + Duration::from_secs(88));
        let (reason, pods, detail_type) = published(BlockageNews::Begun(vec![by("db", "db-0", until)]));
        assert_eq!(detail_type, "Spillway Drain Blocked");
        let sentence = "PodDisruptionBudget db blocks it until 2026-11-21T03:13:28Z at the latest";
        assert_eq!(reason, format!("pod shop/db-0 cannot leave node ip-10-0-0-1.ec2.internal: {sentence}"));
        let Pod::Full(pod) = &pods[0] else { panic!("{pods:?}") };
        assert_eq!((pod.fate, pod.blocked_by.as_deref(), pod.why()), (Fate::Remaining, Some("db"), sentence));

        let unready = BlockedPod { advice: Some("set a policy".to_owned()), ..by("db", "db-0", until) };
        let (reason, ..) = published(BlockageNews::Begun(vec![unready]));
        assert!(reason.ends_with(&format!("{sentence}; set a policy")), "{reason}");

        let (reason, ..) = published(BlockageNews::Begun(vec![by("db", "db-0", None)]));
        assert!(reason.ends_with("PodDisruptionBudget db blocks it and nothing forces it to leave"), "{reason}");
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_a_blockage_names_pods_without_fates() {
        let released = |pod: &str| ReleasedPod { uid: PodUid(format!("uid-of-{pod}")), name: name(pod) };
        let (reason, pods, detail_type) = published(BlockageNews::Over(vec![released("db-0")]));
        assert_eq!(detail_type, "Spillway Drain Unblocked");
        assert_eq!(reason, "nothing blocks pod shop/db-0 of node ip-10-0-0-1.ec2.internal any more");
        assert_eq!(pods, [Pod::NameOnly(Leaving { pod: "shop/db-0".to_owned() })]);
    }
}
