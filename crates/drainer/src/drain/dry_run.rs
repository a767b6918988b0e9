//! A dry run: what a drain of the node would come to. Each pod that would have to leave is evicted as a dry run, and
//! the API server says whether it would go.
//!
//! The answers are of this moment, each pod's for itself: a budget that allows one disruption says so to all of its
//! pods.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use jiff::Timestamp;
use kube::Client;
use spillway_retry::Backoff;
use tokio::time::{Instant, sleep_until};

use super::deadline::Window;
use super::evict::{self, Answer, EVICTIONS_AT_ONCE, Method};
use super::list::list;
use super::plan::{Disposition, Planned, PodName, PodUid, Stays, plan};
use super::pod::blocker::{Blocker, BudgetName};
use crate::kube::ApiError;

/// For how long an eviction is tried whose answer says nothing of the pod: the API server was busy, or silent.
const TRIED_FOR: Duration = Duration::from_secs(10);

/// The preview of a drain: what would become of each pod on the node.
#[derive(Debug)]
pub(crate) struct Preview {
    pub(crate) pods: BTreeMap<PodUid, PodPreview>,
}

/// The preview of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodPreview {
    pub(crate) name: PodName,
    pub(crate) grace: Duration,
    pub(crate) would: Predicted,
    /// How often each answer was given.
    pub(crate) answers: BTreeMap<&'static str, u32>,
}

/// What would become of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predicted {
    /// It would be left alone.
    Stays(Stays),
    /// It would leave, or is leaving.
    Leaves,
    /// Something blocks it.
    BlockedBy(Blocker),
    /// The API server refuses its eviction, or a webhook does.
    Refused(String),
    /// Nobody knows: the API server was busy, or silent.
    Unanswered(String),
}

/// Evicts each of the node's pods as a dry run. It fails only if they cannot be listed.
pub(crate) async fn preview(client: &Client, node: &str, window: Window, now: Timestamp) -> Result<Preview, ApiError> {
    let listed = list(client, node, window).await?;
    let end = window.end.min(Instant::now() + TRIED_FOR);
    let previews = stream::iter(listed.items.iter().filter_map(plan))
        .map(async |pod| (pod.uid.clone(), preview_pod(client, pod, now, end).await))
        .buffer_unordered(EVICTIONS_AT_ONCE);
    Ok(Preview { pods: previews.collect().await })
}

/// Evicts one pod as a dry run, until `end`, unless what would become of it is known without a request.
pub(crate) async fn preview_pod(client: &Client, pod: Planned, now: Timestamp, end: Instant) -> PodPreview {
    let Planned { uid, name, grace, disposition, .. } = pod;
    let mut answers = BTreeMap::new();
    let would = match without_request(disposition, now) {
        Some(would) => would,
        None => evict(client, &name, &uid, end, &mut answers).await,
    };
    PodPreview { name, grace, would, answers }
}

/// What is known of a pod without an eviction. `None`: the API server has to say.
fn without_request(disposition: Disposition, now: Timestamp) -> Option<Predicted> {
    match disposition {
        Disposition::Stays(why) => Some(Predicted::Stays(why)),
        Disposition::Leaving { .. } | Disposition::Stopped => Some(Predicted::Leaves),
        Disposition::DoNotDisrupt(by) if by.until.is_none_or(|until| until > now) => {
            Some(Predicted::BlockedBy(Blocker::DoNotDisrupt(by)))
        }
        Disposition::DoNotDisrupt(_) | Disposition::Leaves => None,
    }
}

async fn evict(
    client: &Client,
    name: &PodName,
    uid: &PodUid,
    end: Instant,
    answers: &mut BTreeMap<&'static str, u32>,
) -> Predicted {
    let mut backoff = Backoff::new();
    loop {
        let answer = evict::dry_run(client, name, uid).await;
        *answers.entry(word(&answer)).or_default() += 1;
        let again = Instant::now() + backoff.next_pause();
        if !says_nothing(&answer) || again > end {
            return meaning(answer, name);
        }
        sleep_until(again).await;
    }
}

/// What the receipt calls the answer.
fn word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Leaving => "would-leave",
        other => other.name(Method::Evict),
    }
}

/// Whether the answer is about the API server and not about the pod.
fn says_nothing(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Throttled { .. } | Answer::Unauthorized { .. } | Answer::ServerError { .. } | Answer::Unanswered { .. }
    )
}

fn meaning(answer: Answer, name: &PodName) -> Predicted {
    match answer {
        Answer::Leaving | Answer::Gone | Answer::Replaced => Predicted::Leaves,
        Answer::BlockedBy { budget } => {
            Predicted::BlockedBy(Blocker::Budget(BudgetName { namespace: name.namespace.clone(), name: budget }))
        }
        Answer::BlockedBySeveral => Predicted::BlockedBy(Blocker::SeveralBudgets),
        Answer::NamespaceTerminating => Predicted::BlockedBy(Blocker::Namespace),
        Answer::Forbidden { message } | Answer::Refused { message } => Predicted::Refused(message),
        Answer::Throttled { .. } => Predicted::Unanswered("the API server is busy".to_owned()),
        Answer::Unauthorized { message }
        | Answer::ServerError { message, .. }
        | Answer::Unanswered { message }
        | Answer::GivenUp { message } => Predicted::Unanswered(message),
    }
}

impl Predicted {
    /// Why it would not leave.
    pub(crate) fn cause(&self) -> Option<String> {
        match self {
            Self::Stays(_) | Self::Leaves => None,
            // Pods of several namespaces stand in one sentence.
            Self::BlockedBy(Blocker::Budget(BudgetName { namespace, name })) => {
                Some(format!("PodDisruptionBudget {namespace}/{name}"))
            }
            Self::BlockedBy(by) => Some(by.to_string()),
            Self::Refused(why) | Self::Unanswered(why) => Some(why.clone()),
        }
    }
}

/// "12 pods would leave, 2 would be blocked by PodDisruptionBudget shop/web (2)".
impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaving = self.pods.values().filter(|pod| pod.would == Predicted::Leaves).count();
        let mut causes = BTreeMap::<_, usize>::new();
        for cause in self.pods.values().filter_map(|pod| pod.would.cause()) {
            *causes.entry(cause).or_default() += 1;
        }
        let pods = if leaving == 1 { "pod" } else { "pods" };
        write!(f, "{leaving} {pods} would leave, {} would be blocked", causes.values().sum::<usize>())?;
        let causes: Vec<_> = causes.into_iter().map(|(cause, count)| format!("{cause} ({count})")).collect();
        if causes.is_empty() { Ok(()) } else { write!(f, " by {}", causes.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(pod: &str) -> PodName {
        PodName { namespace: "shop".to_owned(), name: pod.to_owned() }
    }

    fn web() -> Blocker {
        Blocker::Budget(BudgetName { namespace: "shop".to_owned(), name: "web".to_owned() })
    }

    fn preview(woulds: &[Predicted]) -> String {
        let preview_pod = |would: &Predicted| PodPreview {
            name: name("web-0"),
            grace: Duration::from_secs(30),
            would: would.clone(),
            answers: BTreeMap::new(),
        };
        let pods = woulds.iter().enumerate().map(|(at, would)| (PodUid(at.to_string()), preview_pod(would)));
        Preview { pods: pods.collect() }.to_string()
    }

    #[test]
    fn the_preview_counts_who_would_leave_and_names_what_would_block_the_others() {
        assert_eq!(preview(&[]), "0 pods would leave, 0 would be blocked");
        assert_eq!(preview(&[Predicted::Leaves]), "1 pod would leave, 0 would be blocked");
        let refused = Predicted::Refused("pods is forbidden".to_owned());
        let woulds = [
            Predicted::Leaves,
            Predicted::Leaves,
            Predicted::Stays(Stays::DaemonSet),
            Predicted::BlockedBy(web()),
            refused,
            Predicted::BlockedBy(web()),
        ];
        assert_eq!(
            preview(&woulds),
            "2 pods would leave, 3 would be blocked by PodDisruptionBudget shop/web (2), pods is forbidden (1)"
        );
    }

    #[test]
    fn the_answer_to_an_eviction_without_effect_says_what_would_become_of_the_pod() {
        let would = |answer| meaning(answer, &name("web-0"));
        for answer in [Answer::Leaving, Answer::Gone, Answer::Replaced] {
            assert_eq!(would(answer), Predicted::Leaves);
        }
        assert_eq!(would(Answer::BlockedBy { budget: "web".to_owned() }), Predicted::BlockedBy(web()));
        let message = "pods is forbidden".to_owned();
        assert_eq!(would(Answer::Forbidden { message: message.clone() }), Predicted::Refused(message));
        for answer in [
            Answer::Throttled { retry_after: None },
            Answer::Unauthorized { message: String::new() },
            Answer::ServerError { message: String::new(), retry_after: None },
            Answer::Unanswered { message: String::new() },
        ] {
            assert!(matches!(would(answer.clone()), Predicted::Unanswered(_)), "{answer:?}");
        }
    }

    #[test]
    fn a_pod_that_is_not_to_be_disrupted_is_not_evicted_in_a_dry_run_as_long_as_it_says_so() {
        let pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u",
            "annotations": {"karpenter.sh/do-not-disrupt": "1h"}}, "status": {"startTime": "2026-11-21T03:00:00Z"}});
        let disposition = plan(&serde_json::from_value(pod).unwrap()).unwrap().disposition;
        let at = |time: &str| without_request(disposition.clone(), time.parse().unwrap());
        assert!(matches!(at("2026-11-21T03:59:59Z"), Some(Predicted::BlockedBy(Blocker::DoNotDisrupt(_)))));
        assert_eq!(at("2026-11-21T04:00:00Z"), None);
    }

    #[test]
    fn what_is_leaving_and_what_stays_is_not_evicted_in_a_dry_run() {
        assert_eq!(without_request(Disposition::Stopped, Timestamp::MIN), Some(Predicted::Leaves));
        assert_eq!(
            without_request(Disposition::Leaving { by: Timestamp::MAX, given: None }, Timestamp::MIN),
            Some(Predicted::Leaves)
        );
        assert_eq!(
            without_request(Disposition::Stays(Stays::Mirror), Timestamp::MIN),
            Some(Predicted::Stays(Stays::Mirror))
        );
    }
}
