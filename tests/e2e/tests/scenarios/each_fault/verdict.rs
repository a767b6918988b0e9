//! What a case may come to: drained past a fault that passes, a receipt that names one that does not. Pure.

use serde_json::Value;
use spillway_bed::aws::LifecycleAction;
use spillway_bed::faults::Way;

use super::{Case, Lasts};

/// Refusals that no further request of the same invocation changes.
const FOR_GOOD: [&str; 3] = ["403", "422", "denied"];

/// What was seen of a drain beside its receipt.
pub(super) struct Seen {
    /// Whether the fault was met.
    pub(super) met: bool,
    /// How often Lambda tried before, in vain.
    pub(super) failed_tries: usize,
    /// How many pods the API server still has on the node.
    pub(super) left: usize,
    pub(super) hook: Option<LifecycleAction>,
    /// What the step takes away, if it is still there.
    pub(super) is_there: Option<&'static str>,
}

/// Says what is not as required, if something is not.
pub(super) fn judge(case: Case, receipt: &Value, seen: &Seen) -> Result<(), String> {
    if !seen.met {
        return Err("the fault was not met".to_owned());
    }
    let (ending, way) = (receipt["ending"].as_str().unwrap_or("no ending"), case.step.way);
    let ends_well = match way {
        // The answer to the deletion may be lost: then the NodeClaim, or its node, has gone.
        Way::Karpenter => matches!(ending, "done" | "joined" | "ignored"),
        Way::RunsAgain => ending == "done",
        _ => matches!(ending, "drained" | "joined"),
    };
    if ends_well { judge_success(case, receipt, seen) } else { judge_failure(case, receipt, seen, ending) }
}

/// A receipt that says that all has been done is true.
fn judge_success(case: Case, receipt: &Value, seen: &Seen) -> Result<(), String> {
    let Seen { failed_tries, left, hook, is_there, .. } = seen;
    // A refusal for good fails the invocation. Everything else that passes is waited for.
    if case.lasts == Lasts::Once && *failed_tries > 0 && !FOR_GOOD.contains(&case.fault.name) {
        return Err(format!("it took {failed_tries} more tries"));
    }
    if let Some(what) = is_there {
        return Err(format!("{what} is still there, but the receipt says that it is not"));
    }
    // Karpenter has the pods leave, and those of an instance that runs again have left before.
    if *left > 0 && !matches!(case.step.way, Way::Karpenter | Way::RunsAgain) {
        return Err(format!("{left} pods are there, but the receipt says drained"));
    }
    let Some(hook) = hook else { return Ok(()) };
    match (receipt["hook"]["state"].as_str(), hook.ended_by.as_deref()) {
        (Some("completed" | "already-over"), Some("call")) => Ok(()),
        // One whose heartbeats never arrive ends by itself, and the receipt says so.
        (Some("already-over"), Some(_)) if case.step.name == "heartbeat" && case.lasts == Lasts::ForEver => Ok(()),
        (told, ended_by) => Err(format!("the hook was ended by {ended_by:?}, but the receipt says {told:?}")),
    }
}

/// A receipt that says that something has not been done names the fault and the pods that are left.
fn judge_failure(case: Case, receipt: &Value, seen: &Seen, ending: &str) -> Result<(), String> {
    let left = seen.left;
    // A later invocation does what could not be done for an instance that runs or may stay: it needs nobody's time.
    let put_off = matches!(case.step.way, Way::RunsAgain | Way::Rebalance) && ending == "continued" && left == 0;
    if case.lasts == Lasts::Once && !put_off {
        return Err(format!("it ended in {ending}"));
    }
    let pods: Vec<&Value> = receipt["pods"].as_array().into_iter().flatten().collect();
    let mut reasons = pods
        .iter()
        .map(|pod| &pod["why"])
        .chain([&receipt["reason"], &receipt["not_cordoned"]])
        .filter_map(Value::as_str);
    if !reasons.any(|reason| case.fault.words.iter().any(|word| reason.contains(word))) {
        return Err(format!("the receipt does not name the fault: it has none of {:?}", case.fault.words));
    }
    let told = pods.iter().filter(|pod| pod["fate"] == "lost").count();
    // A drain that could not see the pods go may tell of more than there are, never of fewer. Before the list it knows none.
    if told < left && (case.step.after_list || told > 0) {
        return Err(format!("{left} pods are there, but the receipt tells of {told}"));
    }
    if ending == "ignored" && left > 0 {
        return Err(format!("{left} pods are there, but the receipt says that there was nothing to do"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spillway_bed::faults::{Fault, Step};

    use super::*;

    const NOTHING_LEFT: Seen = Seen { met: true, failed_tries: 0, left: 0, hook: None, is_there: None };

    /// The step is denied, by whichever server it asks.
    fn case(step: &str, lasts: Lasts) -> Case {
        case_of(step, &["403", "denied"], lasts)
    }

    fn case_of(step: &str, faults: &[&str], lasts: Lasts) -> Case {
        let step = Step::ALL.into_iter().find(|one| one.name == step).expect("a step");
        let fault = Fault::of(step).into_iter().find(|fault| faults.contains(&fault.name)).expect("a fault of it");
        Case { step, fault, lasts }
    }

    /// A receipt with that ending and reason, and so many pods that are lost.
    fn receipt(ending: &str, reason: &str, lost: usize) -> Value {
        json!({"ending": ending, "reason": reason, "pods": vec![json!({"fate": "lost"}); lost]})
    }

    #[test]
    fn a_fault_that_passes_must_end_in_drained() {
        let once = case("evict", Lasts::Once);
        assert_eq!(judge(once, &receipt("drained", "", 0), &NOTHING_LEFT), Ok(()));
        assert!(judge(once, &receipt("drained", "", 0), &Seen { met: false, ..NOTHING_LEFT }).is_err());
        let late = Seen { failed_tries: 1, ..NOTHING_LEFT };
        assert_eq!(judge(once, &receipt("drained", "", 0), &late), Ok(()), "nobody is let in by asking again");
        assert!(judge(case_of("evict", &["500"], Lasts::Once), &receipt("drained", "", 0), &late).is_err());
        assert!(judge(once, &receipt("failed", "this is forbidden", 2), &Seen { left: 2, ..NOTHING_LEFT }).is_err());
    }

    #[test]
    fn a_receipt_names_the_fault_that_lasts_and_no_fewer_pods_than_are_left() {
        let left = |left| Seen { left, ..NOTHING_LEFT };
        let told = |step, reason, lost, there| {
            judge(case(step, Lasts::ForEver), &receipt("failed", reason, lost), &left(there)).is_ok()
        };
        assert!(told("evict", "this is forbidden", 2, 2));
        assert!(told("evict", "this is forbidden", 2, 0), "it could not see them go");
        assert!(!told("evict", "this is forbidden", 1, 2));
        assert!(!told("evict", "this is odd", 2, 2));
        assert!(told("claim", "this is forbidden", 0, 2), "it ended before the list");
        assert!(!told("watch", "this is forbidden", 0, 2));
    }

    #[test]
    fn a_receipt_that_says_what_is_not_so_is_never_as_required() {
        for lasts in [Lasts::Once, Lasts::ForEver] {
            let untrue = |step, ending, seen: Seen| {
                judge(case(step, lasts), &receipt(ending, "is denied: this is forbidden", 0), &seen).is_err()
            };
            assert!(untrue("evict", "drained", Seen { left: 1, ..NOTHING_LEFT }));
            assert!(untrue("find the tag", "ignored", Seen { left: 2, ..NOTHING_LEFT }));
            assert!(untrue("uncordon", "done", Seen { is_there: Some("the cordon"), ..NOTHING_LEFT }));
        }
        let waits = LifecycleAction {
            hook: "drain".to_owned(),
            token: String::new(),
            heartbeats: 1,
            result: None,
            ended_by: None,
        };
        let seen = Seen { hook: Some(waits), ..NOTHING_LEFT };
        assert!(judge(case("complete", Lasts::Once), &receipt("drained", "", 0), &seen).is_err());
    }
}
