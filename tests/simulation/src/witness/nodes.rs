//! Changes of nodes: none of others' marks, and in the end no mark of the product.

use jiff::Timestamp;
use serde_json::Value;
use spillway_contract::node::is_cordoned;

use super::past::claim;
use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;
use crate::lambda::AttemptId;
use crate::plan::{Fault, NodeId, Side};

/// Field manager of the product.
const US: &str = "spillway";

#[derive(Debug, Default)]
pub(super) struct Nodes;

impl Witness for Nodes {
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::NodePatched { by, node, before, after } => {
                others_untouched(*by, node, before, after, verdict);
                going_not_given_back(*by, before, after, facts, verdict);
            }
            Fact::Quiet { .. } => nothing_left(facts, verdict),
            _ => {}
        }
    }
}

/// A late notice that an instance runs precedes the notice of its end.
fn going_not_given_back(by: AttemptId, before: &Value, after: &Value, facts: &Facts<'_>, verdict: &mut Verdict) {
    let notice = facts.lambda.attempt(by).notice();
    let (Some(claimed), None) = (claim(before), claim(after)) else { return };
    if notice["detail"]["state"] != "running" {
        return;
    }
    let sent = |notice: &Value| notice["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let claimed: Value = serde_json::from_str(claimed).unwrap_or_default();
    let of_claim = facts.lambda.attempts().iter().find(|attempt| attempt.notice()["id"] == claimed["event"]);
    let (ran, goes) = (sent(notice), of_claim.and_then(|attempt| sent(attempt.notice())));
    verdict.check(Invariant::GoingNotGivenBack, goes <= ran, || {
        format!("{by} of {ran:?} gives back a node with the claim {claimed} of {goes:?}")
    });
}

fn others_untouched(by: AttemptId, node: &NodeId, before: &Value, after: &Value, verdict: &mut Verdict) {
    let manager = before["metadata"]["managedFields"][0]["manager"].as_str().unwrap_or_default();
    let is_ours = !is_cordoned(before) || is_cordoned(after) || manager == US;
    verdict.check(Invariant::OthersUntouched, is_ours, || format!("{by} removes the cordon of {manager} from {node}"));
    for map in ["labels", "annotations"] {
        for (key, value) in before["metadata"][map].as_object().into_iter().flatten() {
            let is_ours = key == "spillway/claim" || value == "spillway";
            let stays = is_ours || after["metadata"][map].get(key) == Some(value);
            verdict.check(Invariant::OthersUntouched, stays, || format!("{by} removes {key}={value} from {node}"));
        }
    }
    let taints = |node: &Value| node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    for taint in taints(before) {
        let key = taint["key"].as_str().unwrap_or_default();
        let is_ours = key.starts_with("spillway/") || key.starts_with("aws-node-t") || taint["value"] == "spillway";
        let stays = is_ours || taints(after).contains(&taint);
        verdict.check(Invariant::OthersUntouched, stays, || format!("{by} removes {taint} from {node}"));
    }
}

fn nothing_left(facts: &Facts<'_>, verdict: &mut Verdict) {
    // A cluster that denies access is not tried again.
    let is_denied = facts.plan.has_fault(Side::Api, Fault::Denied);
    for (id, place) in facts.aws.running().filter(|(id, _)| !facts.lambda.has_failed(id)) {
        let Some(node) = facts.clusters.node(place) else { continue };
        let metadata = &node["metadata"];
        if metadata["labels"].get("spillway/ignore").is_some() {
            continue;
        }
        let claim = claim(node);
        let taints = node["spec"]["taints"].to_string();
        // A restarted instance is found by the names that EKS gives nodes (docs/what-happens.md).
        let stops = ["instance stopping", "spot", "return to warm pool"];
        let may_stay =
            claim.map_or(taints.contains("out-of-service"), |claim| stops.iter().any(|kind| claim.contains(kind)));
        let may_stay = may_stay && place.name.starts_with("worker");
        let is_late = claim.is_some_and(|claim| may_be_late(claim, id, facts));
        let is_ours = claim.is_some()
            || metadata["labels"].as_object().is_some_and(|labels| labels.values().any(|value| value == "spillway"))
            || metadata["managedFields"][0]["manager"] == US
            || taints.contains("spillway");
        let holds = verdict.excuse("left in a cluster that denies access", !is_ours, is_denied)
            || verdict.excuse("left on a node with an unusual name", !is_ours, may_stay)
            || verdict.excuse("claimed after it was given back", !is_ours, is_late);
        verdict.check(Invariant::NothingLeft, holds, || format!("{place} of {id} has {metadata} {}", node["spec"]));
    }
}

/// Returns `true` if a node may have been claimed after it was given back.
fn may_be_late(claim: &str, id: &str, facts: &Facts<'_>) -> bool {
    // During a long outage of the API server, a drain may claim the node after the instance restarted or maintenance ended.
    let is_claimed_late = claim.contains("instance stopping") || claim.contains("maintenance");
    if is_claimed_late && !facts.plan.is_well(Side::Api) {
        return true;
    }
    // A duplicate or a late attempt announces maintenance again after its cancellation.
    let statuses = facts.lambda.about(id).filter_map(|attempt| attempt.notice()["detail"]["statusCode"].as_str());
    let mut from_closed = statuses.skip_while(|status| *status != "closed");
    claim.contains("maintenance") && from_closed.any(|status| status == "upcoming")
}
