//! Judgement of a case: drained past a fault that passes, a true receipt of a lasting fault. Pure.

use serde_json::Value;
use spillway_bed::aws::LifecycleAction;
use spillway_bed::faults::Way;

use super::{Case, Lasts};

/// Refusals that fail the invocation.
const FOR_GOOD: [&str; 3] = ["403", "422", "denied"];

/// Observations of a drain beside its receipt.
pub(super) struct Observed {
    pub(super) met_fault: bool,
    /// Failed attempts of Lambda before the last.
    pub(super) failed_tries: usize,
    /// Count of pods on the node in the API server.
    pub(super) left: usize,
    pub(super) hook: Option<LifecycleAction>,
    /// Object that the step deletes, if it still exists.
    pub(super) kept: Option<&'static str>,
}

/// Returns the first violation as an error.
pub(super) fn judge(case: Case, receipt: &Value, observed: &Observed) -> Result<(), String> {
    if !observed.met_fault {
        return Err("the fault was not met".to_owned());
    }
    let (ending, way) = (receipt["ending"].as_str().unwrap_or("no ending"), case.step.way);
    let ends_well = match way {
        // After a lost answer to the deletion, the NodeClaim or its node has gone.
        Way::Karpenter => matches!(ending, "done" | "joined" | "ignored"),
        Way::RunsAgain => ending == "done",
        _ => matches!(ending, "drained" | "joined"),
    };
    if ends_well { judge_success(case, receipt, observed) } else { judge_failure(case, receipt, observed, ending) }
}

/// A receipt of success is true.
fn judge_success(case: Case, receipt: &Value, observed: &Observed) -> Result<(), String> {
    let Observed { failed_tries, left, hook, kept, .. } = observed;
    // The invocation waits out every other fault that passes.
    if case.lasts == Lasts::Once && *failed_tries > 0 && !FOR_GOOD.contains(&case.fault.name) {
        return Err(format!("it took {failed_tries} more tries"));
    }
    if let Some(kept) = kept {
        return Err(format!("the receipt reports success, but {kept} exists"));
    }
    // Karpenter drains its nodes, and the pods of a restarted instance have left before.
    if *left > 0 && !matches!(case.step.way, Way::Karpenter | Way::RunsAgain) {
        return Err(format!("the receipt reports drained, but {left} pods exist"));
    }
    let Some(hook) = hook else { return Ok(()) };
    match (receipt["hook"]["state"].as_str(), hook.ended_by.as_deref()) {
        (Some("completed" | "already-over"), Some("call")) => Ok(()),
        // A hook without heartbeats expires, and the receipt says so.
        (Some("already-over"), Some(_)) if case.step.name == "heartbeat" && case.lasts == Lasts::ForEver => Ok(()),
        (state, ended_by) => Err(format!("the receipt reports {state:?}, but {ended_by:?} ended the hook")),
    }
}

/// A receipt of failure names the fault and the pods that are left.
fn judge_failure(case: Case, receipt: &Value, observed: &Observed, ending: &str) -> Result<(), String> {
    let left = observed.left;
    // A later invocation continues for an instance that runs or may stay.
    let put_off = matches!(case.step.way, Way::RunsAgain | Way::Rebalance) && ending == "continued" && left == 0;
    if case.lasts == Lasts::Once && !put_off {
        return Err(format!("the ending is {ending}"));
    }
    let pods: Vec<&Value> = receipt["pods"].as_array().into_iter().flatten().collect();
    let mut reasons = pods
        .iter()
        .map(|pod| &pod["why"])
        .chain([&receipt["reason"], &receipt["not_cordoned"]])
        .filter_map(Value::as_str);
    if !reasons.any(|reason| case.fault.words.iter().any(|word| reason.contains(word))) {
        return Err(format!("the receipt names the fault by none of {:?}", case.fault.words));
    }
    let reported = pods.iter().filter(|pod| pod["fate"] == "lost").count();
    // A drain without a watch may report more pods than exist, never fewer. Before the list it knows none.
    if reported < left && (case.step.after_list || reported > 0) {
        return Err(format!("the receipt reports {reported} lost pods, but {left} exist"));
    }
    if ending == "ignored" && left > 0 {
        return Err(format!("the receipt reports nothing to do, but {left} pods exist"));
    }
    Ok(())
}
