//! What a case came to, and whether it may: drained past a fault that passes, a receipt that names one
//! that does not.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use spillway_bed::aws::LifecycleAction;
use spillway_bed::lambda::{Delivery, Outcome};

use super::FaultCase;
use super::fault::{Fault, Lasts};
use super::step::Step;

/// What was seen of a drain, by the function's word and by the others'.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) delivery: Delivery,
    /// The pods that the API server still has on the node.
    pub(super) left: Vec<String>,
    pub(super) hook: Option<LifecycleAction>,
    /// What is not as the step leaves it when it has been done, by the API server.
    pub(super) undone: Option<&'static str>,
    /// Whether the fault was met.
    pub(super) reached: bool,
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CaseResult {
    /// The pods have gone and the hook is completed; the receipt says so.
    Drained { tries: usize },
    /// The receipt says that it did not work, and why.
    Told { error: String, reason: String, names_it: bool, left: Left },
    /// The receipt says drained, and it is not so.
    Untrue { what: String },
    /// There is no receipt.
    Untold { error: String },
    /// Nothing came in time.
    Hung,
    /// The fault was never met.
    NotReached,
    /// The test bed failed.
    Unseen(String),
}

/// Pods that are left on the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    /// By the receipt.
    pub(super) told: usize,
    /// By the API server.
    pub(super) there: usize,
}

impl CaseResult {
    pub(super) fn of(seen: &Seen, case: FaultCase) -> Self {
        let last = &seen.delivery.last;
        let Some(receipt) = receipt(last) else {
            let error = last.result.as_ref().err().map_or_else(|| "no error".to_owned(), ToString::to_string);
            return Self::Untold { error };
        };
        if !seen.reached {
            return Self::NotReached;
        }
        let reason = receipt["reason"].as_str().unwrap_or_default().to_owned();
        match receipt["ending"].as_str() {
            Some(ending) if ends_well(case.step, ending) => match untrue(&receipt, seen, case) {
                None => Self::Drained { tries: seen.delivery.failed.len() + 1 },
                Some(what) => Self::Untrue { what },
            },
            ending => {
                let error = match &last.result {
                    Err(error) => error.error_type.clone(),
                    Ok(_) => ending.unwrap_or("no ending").to_owned(),
                };
                let names_it = names(&receipt, case.fault);
                Self::Told { error, reason, names_it, left: left(&receipt, seen) }
            }
        }
    }

    pub(super) fn is_allowed(&self, case: FaultCase) -> bool {
        match self {
            Self::Drained { .. } => true,
            Self::Told { error, names_it, left, .. } => {
                let is_told = *names_it && left.are_told(case.step.is_after_list());
                // Nothing is told by who has left pods behind and calls it nothing to do.
                // An instance that runs needs nobody's time, nor does one that may stay: what is left is put off.
                let is_put_off =
                    matches!(case.step, Step::Undo | Step::Schedule) && error == "continued" && left.there == 0;
                (case.lasts == Lasts::ForEver || is_put_off) && is_told && (error != "ignored" || left.there == 0)
            }
            Self::Untrue { .. } | Self::Untold { .. } | Self::Hung | Self::NotReached | Self::Unseen(_) => false,
        }
    }

    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Drained { tries: 1 } => "drained".to_owned(),
            Self::Drained { tries } => format!("drained, {tries} tries"),
            Self::Told { error, names_it, left, .. } => {
                let unnamed = if *names_it { "" } else { ", fault not named" };
                format!("{error}{}{unnamed}", left.in_words())
            }
            Self::Untrue { what } => format!("says drained, but {what}"),
            Self::Untold { error } => format!("no receipt: {error}"),
            Self::Hung => "hangs".to_owned(),
            Self::NotReached => "fault not met".to_owned(),
            Self::Unseen(why) => format!("not seen: {why}"),
        }
    }
}

impl Left {
    /// A receipt of a step before the list has no pods, and says at which step it ended. One that could not
    /// see the pods go may tell of more than there are, never of fewer.
    fn are_told(self, after_list: bool) -> bool {
        self.told >= self.there || (!after_list && self.told == 0)
    }

    fn in_words(self) -> String {
        match (self.told, self.there) {
            (0, 0) => String::new(),
            (0, there) => format!(", {there} there"),
            (told, there) if told == there => format!(", {told} left"),
            (told, there) => format!(", {told} left, in truth {there}"),
        }
    }
}

/// Whether that is how a notice ends when all has been done.
fn ends_well(step: Step, ending: &str) -> bool {
    match step {
        // If its answer was lost: the NodeClaim, or its node, has gone.
        Step::NodeClaim => matches!(ending, "done" | "joined" | "ignored"),
        Step::Undo => ending == "done",
        _ => matches!(ending, "drained" | "joined"),
    }
}

/// What is not as a receipt that says that all has been done has it.
fn untrue(receipt: &Value, seen: &Seen, case: FaultCase) -> Option<String> {
    let told = receipt["hook"]["state"].as_str();
    let ended_by = seen.hook.as_ref().map(|hook| hook.ended_by.as_deref());
    match (told, ended_by) {
        _ if seen.undone.is_some() => seen.undone.map(str::to_owned),
        _ if case.step.is_of_drain() && !seen.left.is_empty() => Some(format!("{} pods are there", seen.left.len())),
        (_, None) | (Some("completed" | "already-over"), Some(Some("call"))) => None,
        // One whose heartbeats never arrive ends by itself, and the receipt says so.
        (Some("already-over"), Some(Some(_))) if case.step == Step::Heartbeat && case.lasts == Lasts::ForEver => None,
        (_, Some(_)) => Some("the hook is not completed".to_owned()),
    }
}

/// Whether the reason, or that of a pod, has the fault in it.
fn names(receipt: &Value, fault: Fault) -> bool {
    let pods = receipt["pods"].as_array().into_iter().flatten();
    let texts = pods.map(|pod| &pod["why"]).chain([&receipt["reason"]]).filter_map(Value::as_str);
    let names = fault.names();
    texts.into_iter().any(|text| names.iter().any(|name| text.contains(name)))
}

fn left(receipt: &Value, seen: &Seen) -> Left {
    let pods = receipt["pods"].as_array().into_iter().flatten();
    Left { told: pods.filter(|pod| pod["fate"] == "lost").count(), there: seen.left.len() }
}

fn receipt(outcome: &Outcome) -> Option<Value> {
    let lines = outcome.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.rev().find(|line| line.get("receipt").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(names_it: bool, told: usize, there: usize) -> CaseResult {
        CaseResult::Told { error: "PodsLost".to_owned(), reason: String::new(), names_it, left: Left { told, there } }
    }

    fn case(step: Step, lasts: Lasts) -> FaultCase {
        FaultCase { step, fault: Fault::Refusal(403), lasts }
    }

    #[test]
    fn a_fault_that_passes_must_end_in_drained() {
        let once = case(Step::Evict, Lasts::Once);
        assert!(CaseResult::Drained { tries: 2 }.is_allowed(once));
        assert!(!told(true, 2, 2).is_allowed(once));
    }

    #[test]
    fn a_fault_that_lasts_may_end_in_a_receipt_that_names_it_and_no_fewer_pods_than_there_are() {
        let for_ever = case(Step::Evict, Lasts::ForEver);
        assert!(told(true, 2, 2).is_allowed(for_ever));
        assert!(told(true, 2, 0).is_allowed(for_ever), "it could not see them go");
        assert!(!told(true, 1, 2).is_allowed(for_ever));
        assert!(!told(false, 2, 2).is_allowed(for_ever));
    }

    #[test]
    fn a_receipt_that_has_left_pods_behind_and_calls_it_nothing_to_do_tells_nothing() {
        let ignored = |there| {
            let (error, reason) = ("ignored".to_owned(), "the API server answered 403".to_owned());
            CaseResult::Told { error, reason, names_it: true, left: Left { told: 0, there } }
        };
        assert!(!ignored(2).is_allowed(case(Step::FindTag, Lasts::ForEver)));
        assert!(ignored(0).is_allowed(case(Step::Undo, Lasts::ForEver)));
    }

    #[test]
    fn a_receipt_names_no_pods_only_when_they_have_gone_or_were_never_listed() {
        assert!(told(true, 0, 2).is_allowed(case(Step::Claim, Lasts::ForEver)), "it ended before the list");
        assert!(told(true, 0, 0).is_allowed(case(Step::Complete, Lasts::ForEver)), "they have gone");
        assert!(!told(true, 0, 2).is_allowed(case(Step::Watch, Lasts::ForEver)));
    }

    #[test]
    fn a_fault_that_has_no_words_is_never_named() {
        let receipt = serde_json::json!({"reason": "the API server answered late"});
        assert!(!names(&receipt, Fault::Slow));
        assert!(names(&serde_json::json!({"reason": "the answer was lost"}), Fault::CutShort));
    }

    #[test]
    fn a_drain_without_a_receipt_that_is_true_is_never_allowed() {
        let results = [
            CaseResult::Untrue { what: "2 pods are there".to_owned() },
            CaseResult::Untold { error: "Sandbox.Timedout".to_owned() },
            CaseResult::Hung,
            CaseResult::NotReached,
            CaseResult::Unseen("no world".to_owned()),
        ];
        for result in results {
            assert!(Lasts::ALL.into_iter().all(|lasts| !result.is_allowed(case(Step::List, lasts))), "{result:?}");
        }
    }
}
