//! A dry run: what the answer to each eviction without effect says of the pod.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::answer::Answer;
use super::plan::{Disposition, PodName, PodUid, Stays};
use super::pod::blocker::{Blocker, BudgetName};
use super::request::Method;

/// The preview of a drain: what would become of each pod on the node.
#[derive(Debug)]
pub struct Preview {
    pub pods: BTreeMap<PodUid, PodPreview>,
}

/// The preview of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPreview {
    pub name: PodName,
    pub grace: Duration,
    pub would: Predicted,
    /// How often each answer was given.
    pub answers: BTreeMap<&'static str, u32>,
}

/// What would become of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicted {
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

/// What is known of a pod without an eviction. `None`: the API server has to say.
pub fn without_request(disposition: Disposition, now: Timestamp) -> Option<Predicted> {
    match disposition {
        Disposition::Stays(why) => Some(Predicted::Stays(why)),
        Disposition::Leaving { .. } | Disposition::Stopped => Some(Predicted::Leaves),
        Disposition::DoNotDisrupt(by) if by.until.is_none_or(|until| until > now) => {
            Some(Predicted::BlockedBy(Blocker::DoNotDisrupt(by)))
        }
        Disposition::DoNotDisrupt(_) | Disposition::Leaves => None,
    }
}

/// What the receipt calls the answer.
pub fn word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Leaving => "would-leave",
        other => other.name(Method::Evict),
    }
}

/// Whether the answer is about the API server and not about the pod.
pub fn says_nothing(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Throttled { .. } | Answer::Unauthorized { .. } | Answer::ServerError { .. } | Answer::Unanswered { .. }
    )
}

/// What the answer means for the pod.
pub fn meaning(answer: Answer, name: &PodName) -> Predicted {
    match answer {
        Answer::Leaving | Answer::Gone | Answer::Replaced => Predicted::Leaves,
        Answer::BlockedBy { budget } => {
            Predicted::BlockedBy(Blocker::Budget(BudgetName { namespace: name.namespace.clone(), name: budget }))
        }
        Answer::BlockedBySeveral => Predicted::BlockedBy(Blocker::SeveralBudgets(Vec::new())),
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
    pub fn cause(&self) -> Option<String> {
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
    use crate::drain::plan::plan;

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
            assert!(says_nothing(&answer), "{answer:?} is asked for again");
        }
        assert!(!says_nothing(&Answer::Leaving) && !says_nothing(&Answer::BlockedBySeveral));
        assert_eq!((word(&Answer::Leaving), word(&Answer::Gone)), ("would-leave", "gone"), "nobody was evicted");
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
