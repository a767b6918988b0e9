//! Finds webhooks that refuse evictions: evicts one pod of each budget as a dry run.

use futures_util::stream::{self, StreamExt as _};
use kube::Client;
use spillway_core::clock::Clock;
use spillway_core::drain::dry_run::Predicted;
use spillway_core::drain::pod::blocker::{Blocker, BudgetName};
use spillway_drainer::kube::ApiError;
use spillway_drainer::preview_pod;
use tokio::time::{Instant, timeout_at};

use super::cause::Cause;
use super::survey::{Covered, Survey};
use crate::retry_end;

/// Maximum number of dry-run evictions in one cluster.
const MOST: usize = 100;
const AT_ONCE: usize = 4;

#[derive(Debug)]
pub(super) enum Rehearsal {
    Made {
        unanswered: Vec<Unanswered>,
        left_out: usize,
    },
    /// No eviction was tried, because Spillway lacks the right to evict pods.
    Skipped,
}

/// Budget whose effect is unknown, because the dry-run eviction of one of its pods failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unanswered {
    pub(super) budget: BudgetName,
    pub(super) why: String,
}

pub(super) async fn rehearse(client: &Client, survey: &mut Survey<'_>, clock: Clock, end: Instant) -> Rehearsal {
    let first =
        |(budget, covered): (&BudgetName, &Covered)| (budget.clone(), covered.pod.clone(), covered.node.clone());
    let candidates: Vec<_> = survey.covered.iter().map(first).take(MOST).collect();
    let left_out = survey.covered.len() - candidates.len();
    let answers = stream::iter(candidates)
        .map(async |(budget, pod, node)| {
            let end = retry_end(end);
            let preview = timeout_at(end, preview_pod(client, pod.clone(), clock.now(), end)).await;
            let would = preview.map_or_else(|_| Predicted::Unanswered(ApiError::TimeUp.to_string()), |pod| pod.would);
            (budget, pod, node, would)
        })
        .buffered(AT_ONCE)
        .collect::<Vec<_>>();
    let mut unanswered = Vec::new();
    for (budget, pod, node, would) in answers.await {
        match meaning(budget, would) {
            Meaning::Leaves => {}
            Meaning::Held(cause) => _ = survey.hold(cause, &pod, &node),
            Meaning::Unanswered(budget) => unanswered.push(budget),
        }
    }
    Rehearsal::Made { unanswered, left_out }
}

#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Leaves,
    Held(Cause),
    Unanswered(Unanswered),
}

fn meaning(budget: BudgetName, would: Predicted) -> Meaning {
    match would {
        Predicted::Leaves
        | Predicted::Stays(_)
        | Predicted::BlockedBy(Blocker::DoNotDisrupt(_) | Blocker::Namespace) => Meaning::Leaves,
        Predicted::BlockedBy(Blocker::Budget(holds)) => Meaning::Held(Cause::AllowsNoneNow(holds)),
        Predicted::BlockedBy(hold @ (Blocker::SeveralBudgets(_) | Blocker::FailingEviction(_))) => {
            Meaning::Held(Cause::Refused(budget, hold.to_string()))
        }
        Predicted::Refused(why) => Meaning::Held(Cause::Refused(budget, why)),
        Predicted::Unanswered(why) => Meaning::Unanswered(Unanswered { budget, why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(name: &str) -> BudgetName {
        BudgetName { namespace: "shop".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn only_a_refusal_is_a_cause() {
        assert_eq!(meaning(budget("web"), Predicted::Leaves), Meaning::Leaves);
        let held = Predicted::BlockedBy(Blocker::Budget(budget("web")));
        assert_eq!(meaning(budget("web"), held), Meaning::Held(Cause::AllowsNoneNow(budget("web"))));
        let why = "admission webhook \"keep.example.com\" denied the request".to_owned();
        let refused = Predicted::Refused(why.clone());
        assert_eq!(meaning(budget("web"), refused), Meaning::Held(Cause::Refused(budget("web"), why)));
        let busy = "the API server is busy".to_owned();
        let unanswered = Predicted::Unanswered(busy.clone());
        let nothing = Unanswered { budget: budget("web"), why: busy };
        assert_eq!(meaning(budget("web"), unanswered), Meaning::Unanswered(nothing));
    }
}
