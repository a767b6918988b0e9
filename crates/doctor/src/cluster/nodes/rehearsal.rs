//! Evictions without effect: one pod of each budget that lets one go is asked for, so that what no list shows is found: a
//! webhook that refuses, a budget that says no by now.
//!
//! No more than these few, so that the doctor is no load, and none for what is known to be held.

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
use crate::asked_until;

/// How many pods of a cluster are asked for at most, and how many at once: a drain of one full node asks for more.
const ASKED: usize = 100;
const ASKED_AT_ONCE: usize = 4;

#[derive(Debug)]
pub(super) enum Rehearsal {
    Held {
        unanswered: Vec<Unanswered>,
        /// How many budgets that let a pod go were too many to be asked about.
        left_out: usize,
    },
    /// It did not, because each answer would only have been that the right is missing.
    LeftOut,
}

/// A budget of which nobody said whether a pod would go, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unanswered {
    pub(super) budget: BudgetName,
    pub(super) why: String,
}

/// Asks for an eviction of a pod of each budget, and takes the answers into the survey.
pub(super) async fn hold(client: &Client, survey: &mut Survey<'_>, clock: Clock, end: Instant) -> Rehearsal {
    let first =
        |(budget, covered): (&BudgetName, &Covered)| (budget.clone(), covered.pod.clone(), covered.node.clone());
    let candidates: Vec<_> = survey.covered.iter().map(first).take(ASKED).collect();
    let left_out = survey.covered.len() - candidates.len();
    let answers = stream::iter(candidates)
        .map(async |(budget, pod, node)| {
            let end = asked_until(end);
            let asked = timeout_at(end, preview_pod(client, pod.clone(), clock.now(), end)).await;
            let would = asked.map_or_else(|_| Predicted::Unanswered(ApiError::TimeUp.to_string()), |pod| pod.would);
            (budget, pod, node, would)
        })
        .buffered(ASKED_AT_ONCE)
        .collect::<Vec<_>>();
    let mut unanswered = Vec::new();
    for (budget, pod, node, would) in answers.await {
        match meaning(budget, would) {
            Meaning::Leaves => {}
            Meaning::Held(cause) => _ = survey.holds(cause, &pod, &node),
            Meaning::Unanswered(nothing) => unanswered.push(nothing),
        }
    }
    Rehearsal::Held { unanswered, left_out }
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
    fn only_an_answer_that_is_no_is_a_cause() {
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
