//! Declaring a node out of service, so that Kubernetes frees its pods and volumes at once. It is for a node that is
//! not Ready; whether its instance is down, which no node can tell, has been asked of EC2.

use json_patch::Patch;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::claimant::{Claimant, Unclaimed};
use super::find::find;
use super::patch::{self, Operations, Patched};
use super::readiness::{Ready, ready};
use super::taint;
use crate::aws::instance::Instance;
use crate::kube::{ApiError, Attempted, until_settled};

/// How often it is tried anew when the node changes between looking and patching.
const ATTEMPTS: u32 = 5;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Declared {
    /// It has the taint.
    OutOfService(String),
    /// It is Ready; nothing was changed.
    Ready(String),
}

/// Taints the instance's node.
pub(crate) async fn declare(
    nodes: &Api<Node>,
    instance: &Instance,
    claimant: &Claimant<'_>,
) -> Result<Result<Declared, Unclaimed>, ApiError> {
    let attempt = async || {
        let Some(node) = find(nodes, instance).await? else { return Ok(Attempted::Settled(Err(Unclaimed::NoNode))) };
        if let Some(why) = claimant.barred_from(&node) {
            return Ok(Attempted::Settled(Err(why)));
        }
        let name = node.name_any();
        if ready(&node) == Ready::Yes {
            return Ok(Attempted::Settled(Ok(Declared::Ready(name))));
        }
        let Some(patch) = tainting(&node) else { return Ok(Attempted::Settled(Ok(Declared::OutOfService(name)))) };
        Ok(match patch::send(nodes, &name, patch).await? {
            Patched::Done(_) => Attempted::Settled(Ok(Declared::OutOfService(name))),
            Patched::NoNode => Attempted::Settled(Err(Unclaimed::NoNode)),
            Patched::Refused(status) => Attempted::Contended(status),
        })
    };
    until_settled(ATTEMPTS, attempt).await
}

/// Adds the taint to those that are there; `None`: it is there, ours or somebody else's.
fn tainting(node: &Node) -> Option<Patch> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let taint = Some(taint::out_of_service()).filter(|taint| taint::fits(taint, taints))?;
    let mut patch = Operations::default();
    // What was read decides, so nothing may have changed since: a node that is Ready again is not tainted.
    patch.test(&["metadata", "resourceVersion"], node.metadata.resource_version.clone());
    if taints.is_empty() {
        patch.add(&["spec", "taints"], json!([taint]));
    } else {
        patch.add(&["spec", "taints", "-"], json!(taint));
    }
    Some(patch.done())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn patch(taints: &Value) -> Value {
        let node = json!({"metadata": {"name": "n-1", "resourceVersion": "7"}, "spec": {"taints": taints}});
        json!(tainting(&serde_json::from_value(node).unwrap()))
    }

    #[test]
    fn the_taint_is_added_to_those_that_are_there_and_only_to_the_node_as_it_was_seen() {
        let taint = json!({"key": "node.kubernetes.io/out-of-service", "value": "spillway", "effect": "NoExecute"});
        let seen = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
        let unreachable = json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"});
        assert_eq!(
            patch(&json!([unreachable])),
            json!([seen, {"op": "add", "path": "/spec/taints/-", "value": taint}])
        );
        assert_eq!(patch(&json!([])), json!([seen, {"op": "add", "path": "/spec/taints", "value": [taint]}]));
    }

    #[test]
    fn somebody_elses_taint_of_the_same_key_is_left_as_it_is() {
        let others =
            json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
        assert_eq!(patch(&json!([others])), Value::Null);
    }
}
