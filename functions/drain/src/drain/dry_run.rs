//! What a drain of the node would come to: each pod that would have to leave is asked for by an eviction without
//! effect, and the API server says whether it would go.
//!
//! The answers are of this moment, each pod's for itself: a budget that has room for one pod says so to all of its
//! pods.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep_until};

use super::blocker::Blocker;
use super::deadline::Window;
use super::disruptions_allowed::BudgetName;
use super::evict::{self, Answer, Method};
use super::plan::{Disposition, Planned, PodName, PodUid, Stays, plan};
use super::progress::EVICTIONS_AT_ONCE;
use super::{list, pods_of};
use crate::invocation::retry::Backoff;
use crate::kube::ApiError;

/// For how long a pod is asked for again whose answer says nothing of it: the API server was busy, or silent.
const ASKED_FOR: Duration = Duration::from_secs(10);

/// What would become of each pod on the node.
#[derive(Debug)]
pub(crate) struct Preview {
    pub(crate) pods: BTreeMap<PodUid, PodPreview>,
}

/// One pod and its preview_pod.
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
    Stay(Stays),
    /// It would leave, or is leaving.
    Leave,
    /// Something would hold it.
    BeHeldBy(Blocker),
    /// The API server, or what it asks, would not let it go.
    BeRefused(String),
    /// Nobody knows: the API server was busy, or silent.
    GoUnanswered(String),
}

/// Asks for each of the node's pods. It fails only if they cannot be listed.
pub(crate) async fn preview(client: &Client, node: &str, window: Window, now: Timestamp) -> Result<Preview, ApiError> {
    let listed = list(&pods_of(client, node), node, window).await?;
    let end = window.end.min(Instant::now() + ASKED_FOR);
    let previews = stream::iter(listed.items.iter().filter_map(plan))
        .map(async |pod| (pod.uid.clone(), preview_pod(client, pod, now, end).await))
        .buffer_unordered(EVICTIONS_AT_ONCE);
    Ok(Preview { pods: previews.collect().await })
}

/// Asks for one pod until `end`, unless what would become of it is known without asking.
pub(crate) async fn preview_pod(client: &Client, pod: Planned, now: Timestamp, end: Instant) -> PodPreview {
    let Planned { uid, name, grace, place, .. } = pod;
    let mut answers = BTreeMap::new();
    let would = match without_asking(place, now) {
        Some(would) => would,
        None => ask(client, &name, &uid, end, &mut answers).await,
    };
    PodPreview { name, grace, would, answers }
}

/// What is known of a pod without an eviction. `None`: the API server has to say.
fn without_asking(place: Disposition, now: Timestamp) -> Option<Predicted> {
    match place {
        Disposition::Stays(why) => Some(Predicted::Stay(why)),
        Disposition::Leaving { .. } | Disposition::Stopped => Some(Predicted::Leave),
        Disposition::DoNotDisrupt(wish) if wish.until.is_none_or(|until| until > now) => {
            Some(Predicted::BeHeldBy(Blocker::DoNotDisrupt(wish)))
        }
        Disposition::DoNotDisrupt(_) | Disposition::Leaves => None,
    }
}

async fn ask(
    client: &Client,
    name: &PodName,
    uid: &PodUid,
    end: Instant,
    answers: &mut BTreeMap<&'static str, u32>,
) -> Predicted {
    let mut backoff = Backoff::new();
    loop {
        let answer = evict::ask(client, name, uid).await;
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
        Answer::Leaving | Answer::Gone | Answer::Replaced => Predicted::Leave,
        Answer::HeldBy { budget } => {
            Predicted::BeHeldBy(Blocker::Budget(BudgetName { namespace: name.namespace.clone(), name: budget }))
        }
        Answer::HeldBySeveral => Predicted::BeHeldBy(Blocker::SeveralBudgets),
        Answer::NamespaceTerminating => Predicted::BeHeldBy(Blocker::Namespace),
        Answer::Forbidden { message } | Answer::Refused { message } => Predicted::BeRefused(message),
        Answer::Throttled { .. } => Predicted::GoUnanswered("the API server is busy".to_owned()),
        Answer::Unauthorized { message } | Answer::ServerError { message, .. } | Answer::Unanswered { message } => {
            Predicted::GoUnanswered(message)
        }
    }
}

impl Predicted {
    /// Why it would not leave.
    pub(crate) fn cause(&self) -> Option<String> {
        match self {
            Self::Stay(_) | Self::Leave => None,
            // Pods of several namespaces are told of in one sentence.
            Self::BeHeldBy(Blocker::Budget(BudgetName { namespace, name })) => {
                Some(format!("PodDisruptionBudget {namespace}/{name}"))
            }
            Self::BeHeldBy(hold) => Some(hold.to_string()),
            Self::BeRefused(why) | Self::GoUnanswered(why) => Some(why.clone()),
        }
    }
}

/// "12 pods would leave, 2 would be held by PodDisruptionBudget shop/web (2)".
impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaving = self.pods.values().filter(|pod| pod.would == Predicted::Leave).count();
        let mut causes = BTreeMap::<_, usize>::new();
        for cause in self.pods.values().filter_map(|pod| pod.would.cause()) {
            *causes.entry(cause).or_default() += 1;
        }
        write!(f, "{leaving} pods would leave, {} would be held", causes.values().sum::<usize>())?;
        let causes: Vec<_> = causes.into_iter().map(|(cause, count)| format!("{cause} ({count})")).collect();
        if causes.is_empty() { Ok(()) } else { write!(f, " by {}", causes.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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
    fn the_outlook_counts_who_would_leave_and_names_what_would_hold_the_others() {
        assert_eq!(preview(&[]), "0 pods would leave, 0 would be held");
        let refused = Predicted::BeRefused("pods is forbidden".to_owned());
        let woulds = [
            Predicted::Leave,
            Predicted::Leave,
            Predicted::Stay(Stays::DaemonSet),
            Predicted::BeHeldBy(web()),
            refused,
            Predicted::BeHeldBy(web()),
        ];
        assert_eq!(
            preview(&woulds),
            "2 pods would leave, 3 would be held by PodDisruptionBudget shop/web (2), pods is forbidden (1)"
        );
    }

    #[test]
    fn the_answer_to_an_eviction_without_effect_says_what_would_become_of_the_pod() {
        let would = |answer| meaning(answer, &name("web-0"));
        for answer in [Answer::Leaving, Answer::Gone, Answer::Replaced] {
            assert_eq!(would(answer), Predicted::Leave);
        }
        assert_eq!(would(Answer::HeldBy { budget: "web".to_owned() }), Predicted::BeHeldBy(web()));
        let message = "pods is forbidden".to_owned();
        assert_eq!(would(Answer::Forbidden { message: message.clone() }), Predicted::BeRefused(message));
        for answer in [
            Answer::Throttled { retry_after: None },
            Answer::Unauthorized { message: String::new() },
            Answer::ServerError { message: String::new(), retry_after: None },
            Answer::Unanswered { message: String::new() },
        ] {
            assert!(matches!(would(answer.clone()), Predicted::GoUnanswered(_)), "{answer:?}");
        }
    }

    #[test]
    fn a_pod_that_wishes_not_to_be_disturbed_is_not_asked_for_while_its_wish_stands() {
        let pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u",
            "annotations": {"karpenter.sh/do-not-disrupt": "1h"}}, "status": {"startTime": "2026-11-21T03:00:00Z"}});
        let place = plan(&serde_json::from_value(pod).unwrap()).unwrap().place;
        let at = |time: &str| without_asking(place.clone(), time.parse().unwrap());
        assert!(matches!(at("2026-11-21T03:59:59Z"), Some(Predicted::BeHeldBy(Blocker::DoNotDisrupt(_)))));
        assert_eq!(at("2026-11-21T04:00:00Z"), None);
    }

    #[test]
    fn what_is_leaving_and_what_stays_is_not_asked_for() {
        assert_eq!(without_asking(Disposition::Stopped, Timestamp::MIN), Some(Predicted::Leave));
        assert_eq!(
            without_asking(Disposition::Leaving { by: Timestamp::MAX, given: None }, Timestamp::MIN),
            Some(Predicted::Leave)
        );
        assert_eq!(
            without_asking(Disposition::Stays(Stays::Mirror), Timestamp::MIN),
            Some(Predicted::Stay(Stays::Mirror))
        );
    }
}
