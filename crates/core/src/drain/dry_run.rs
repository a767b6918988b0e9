//! Predicts the result of a drain from dry-run evictions. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::answer::Answer;
use super::plan::{Disposition, PodName, PodUid, Stays};
use super::pod::blocker::{Blocker, BudgetName};
use super::request::Method;

/// Predicted result of a drain, for each pod on the node.
#[derive(Debug)]
pub struct Preview {
    pub pods: BTreeMap<PodUid, PodPreview>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPreview {
    pub name: PodName,
    pub grace: Duration,
    pub would: Predicted,
    pub answers: BTreeMap<&'static str, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicted {
    Stays(Stays),
    /// The pod would be evicted, or is terminating already.
    Leaves,
    BlockedBy(Blocker),
    /// The API server or a webhook would refuse the eviction.
    Refused(String),
    /// The API server gave no conclusive answer to the dry-run eviction.
    Unanswered(String),
}

/// Predicts the result for a pod that needs no dry-run eviction. `None`: a dry-run eviction is needed.
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

/// Returns the name that the receipt shows for the answer to a dry-run eviction.
pub fn dry_run_name(answer: &Answer) -> &'static str {
    match answer {
        Answer::Leaving => "would-leave",
        other => other.name(Method::Evict),
    }
}

/// Returns `true` if the answer shows nothing about the pod, so the dry-run eviction has to be repeated.
pub fn is_inconclusive(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Throttled { .. } | Answer::Unauthorized { .. } | Answer::ServerError { .. } | Answer::Unanswered { .. }
    )
}

/// Predicts the result for a pod from the answer to its dry-run eviction.
pub fn predicted(answer: Answer, name: &PodName) -> Predicted {
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
    /// Returns the reason why the pod could not be evicted. `None`: the pod would be evicted, or the drain leaves the
    /// pod alone.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Stays(_) | Self::Leaves => None,
            // With the namespace, because the text of [`Preview`] combines pods of several namespaces.
            Self::BlockedBy(Blocker::Budget(BudgetName { namespace, name })) => {
                Some(format!("PodDisruptionBudget {namespace}/{name}"))
            }
            Self::BlockedBy(by) => Some(by.to_string()),
            Self::Refused(why) | Self::Unanswered(why) => Some(why.clone()),
        }
    }
}

/// Writes a sentence such as "12 pods would leave, 2 would be blocked by PodDisruptionBudget shop/web (2)".
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

    #[test]
    fn answer_to_an_eviction_predicts_the_result() {
        let would = |answer| predicted(answer, &name("web-0"));
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
            assert!(is_inconclusive(&answer), "{answer:?}");
        }
        assert!(!is_inconclusive(&Answer::Leaving) && !is_inconclusive(&Answer::BlockedBySeveral));
        assert_eq!((dry_run_name(&Answer::Leaving), dry_run_name(&Answer::Gone)), ("would-leave", "gone"));
    }

    #[test]
    fn do_not_disrupt_pod_is_predicted_without_an_eviction() {
        let pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u",
            "annotations": {"karpenter.sh/do-not-disrupt": "1h"}}, "status": {"startTime": "2026-11-21T03:00:00Z"}});
        let disposition = plan(&serde_json::from_value(pod).unwrap()).unwrap().disposition;
        let at = |time: &str| without_request(disposition.clone(), time.parse().unwrap());
        assert!(matches!(at("2026-11-21T03:59:59Z"), Some(Predicted::BlockedBy(Blocker::DoNotDisrupt(_)))));
        assert_eq!(at("2026-11-21T04:00:00Z"), None);
    }

    #[test]
    fn leaving_and_staying_pods_are_predicted_without_an_eviction() {
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
