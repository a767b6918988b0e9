//! What is changed on nodes: nothing that others put there, and in the end nothing is left of ours.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use spillway_contract::node::is_cordoned;

use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;
use crate::lambda::AttemptId;
use crate::plan::{CLUSTERS, Command, Fault, NodeId, Side};

/// The field manager of the product.
const US: &str = "spillway";

/// The nodes that people have opted out, and when.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    opted_out: BTreeMap<NodeId, Timestamp>,
}

impl Witness for Nodes {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::Person { command: Command::OptOut, node, .. } => {
                self.opted_out.entry(node.clone()).or_insert(facts.clock.now());
            }
            Fact::WriteArrives { by, cluster } => {
                let node = facts.node(*by);
                let is_own = node.is_some_and(|node| node.cluster == *cluster) && facts.plan.serves(*cluster);
                verdict.holds(Invariant::OwnCluster, is_own, || {
                    format!("{by} is about {node:?}, and writes to {}", CLUSTERS[*cluster])
                });
            }
            Fact::NodePatched { by, node, before, after } => {
                let own = facts.node(*by);
                verdict.holds(Invariant::OthersUntouched, own == Some(node), || {
                    format!("{by} is about {own:?}, and patches {node}")
                });
                let labels = &before["metadata"]["labels"];
                // A drain that is under way goes on.
                let began = facts.lambda.attempt(*by).began;
                let is_early = self.opted_out.get(node).is_some_and(|at| began <= *at + facts.skew());
                let is_opted_out = labels.get("karpenter.sh/nodepool").is_some()
                    || labels.get("spillway/ignore").is_some() && !is_early;
                verdict.holds(Invariant::DryRunTouchesNothing, !facts.plan.is_dry_run(), || {
                    format!("{by} patches {node}")
                });
                let is_left = is_opted_out || facts.is_left_to_eks(*by);
                verdict.holds(Invariant::OptedOutUntouched, !is_left, || format!("{by} patches {node}"));
                others_untouched(*by, node, before, after, verdict);
                going_not_given_back(*by, before, after, facts, verdict);
            }
            Fact::Quiet { .. } => nothing_left(facts, verdict),
            _ => {}
        }
    }
}

/// A late notice that an instance runs is about a time before the one that it goes.
fn going_not_given_back(by: AttemptId, before: &Value, after: &Value, facts: &Facts<'_>, verdict: &mut Verdict) {
    let claim = |node: &Value| node["metadata"]["annotations"]["spillway/claim"].as_str().map(str::to_owned);
    let notice = facts.lambda.attempt(by).notice();
    let (Some(claimed), None, "running") =
        (claim(before), claim(after), notice["detail"]["state"].as_str().unwrap_or_default())
    else {
        return;
    };
    let sent = |notice: &Value| notice["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let claimed: Value = serde_json::from_str(&claimed).unwrap_or_default();
    let of_claim = facts.lambda.attempts().iter().find(|attempt| attempt.notice()["id"] == claimed["event"]);
    let (ran, goes) = (sent(notice), of_claim.and_then(|attempt| sent(attempt.notice())));
    verdict.holds(Invariant::GoingNotGivenBack, goes <= ran, || {
        format!(
            "{by} says that the instance ran at {ran:?}, and its node is claimed for {claimed}, which is of {goes:?}"
        )
    });
}

fn others_untouched(by: AttemptId, node: &NodeId, before: &Value, after: &Value, verdict: &mut Verdict) {
    if is_cordoned(before) && !is_cordoned(after) {
        let manager = before["metadata"]["managedFields"][0]["manager"].as_str().unwrap_or("nobody");
        verdict.holds(Invariant::OthersUntouched, manager == US, || {
            format!("{by} takes the cordon of {manager} from {node}")
        });
    }
    for map in ["labels", "annotations"] {
        for (key, value) in before["metadata"][map].as_object().into_iter().flatten() {
            let is_ours = key == "spillway/claim" || value == "spillway";
            let stays = is_ours || after["metadata"][map].get(key) == Some(value);
            verdict.holds(Invariant::OthersUntouched, stays, || format!("{by} takes {key}={value} from {node}"));
        }
    }
    let taints = |node: &Value| node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    for taint in taints(before) {
        let key = taint["key"].as_str().unwrap_or_default();
        let is_ours = key.starts_with("spillway/") || key.starts_with("aws-node-t") || taint["value"] == "spillway";
        let stays = is_ours || taints(after).contains(&taint);
        verdict.holds(Invariant::OthersUntouched, stays, || format!("{by} takes {taint} from {node}"));
    }
}

fn nothing_left(facts: &Facts<'_>, verdict: &mut Verdict) {
    // A cluster that lets nobody in is none of ours: it is not asked again.
    let is_denied = facts.plan.has_fault(Side::Api, Fault::Denied);
    for (id, place) in facts.aws.running().filter(|(id, _)| !facts.lambda.has_failed(id)) {
        let Some(node) = facts.clusters.node(place) else { continue };
        let name = &place.name;
        let metadata = &node["metadata"];
        let claim = metadata["annotations"]["spillway/claim"].as_str();
        if metadata["labels"].get("spillway/ignore").is_some() {
            continue;
        }
        let has_only_taint = claim.is_none() && node["spec"]["taints"].to_string().contains("out-of-service");
        let may_stay = claim.map_or(has_only_taint && name.starts_with("worker"), |claim| may_stay(claim, name));
        let is_late = claim.is_some_and(|claim| may_be_late(claim, id, facts));
        let is_ours = claim.is_some()
            || metadata["labels"].as_object().is_some_and(|labels| labels.values().any(|value| value == "spillway"))
            || metadata["managedFields"][0]["manager"] == US
            || node["spec"]["taints"].to_string().contains("spillway");
        let holds = verdict.excuses("left in a cluster that lets nobody in", !is_ours, is_denied)
            || verdict.excuses("left on a node whose name nobody can guess", !is_ours, may_stay)
            || verdict.excuses("claimed after it was given back", !is_ours, is_late);
        verdict.holds(Invariant::NothingLeft, holds, || format!("{place} of {id} has {metadata} {}", node["spec"]));
    }
}

/// Whether a claim may stay on a node that is in use: when its instance runs again, it is looked for by the names that EKS gives
/// nodes (docs/what-happens.md).
fn may_stay(claim: &str, name: &str) -> bool {
    let stops = ["instance stopping", "spot", "return to warm pool"];
    name.starts_with("worker") && stops.iter().any(|kind| claim.contains(kind))
}

/// Whether a node may have been claimed after it was given back.
fn may_be_late(claim: &str, id: &str, facts: &Facts<'_>) -> bool {
    // Where the API server is away for longer than the instance or the maintenance, a drain claims the node after it was given back.
    let may_be_late = ["instance stopping", "maintenance"].iter().any(|kind| claim.contains(kind));
    let is_claimed_late = may_be_late && !facts.plan.is_well(Side::Api);
    // Nobody remembers that maintenance was called off: what comes late announces it once more.
    is_claimed_late || claim.contains("maintenance") && is_announced_late(id, facts)
}

/// Whether maintenance was announced after it was called off: by a duplicate, or an attempt that came late.
fn is_announced_late(instance: &str, facts: &Facts<'_>) -> bool {
    let statuses = facts.lambda.about(instance).filter_map(|attempt| attempt.notice()["detail"]["statusCode"].as_str());
    let mut from_closed = statuses.skip_while(|status| *status != "closed");
    from_closed.any(|status| status == "upcoming")
}
