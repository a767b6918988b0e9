//! Cordons a claimed node again if somebody uncordons the node during its drain. Pure.

use json_patch::Patch;
use k8s_openapi::api::core::v1::Node;
use serde_json::Value;
use spillway_notice::Kind;

use super::claim_annotation::{ANNOTATION, ClaimAnnotation};
use super::claimant::Claim;
use super::labels::IGNORE;
use super::observed::ObservedNode;
use super::patch::Operations;

/// Returns the patch that cordons the node again. Returns `None` if the node is cordoned, has the opt-out label, or is not the
/// claimed node. Also returns `None` if AWS may keep the instance.
pub fn cordoning_again(node: &Node, claim: &Claim) -> Option<Patch> {
    let observed = ObservedNode::of(node);
    let annotation = observed.annotation()?;
    let goes = annotation.kind().is_some_and(|kind: Kind| !kind.may_stay());
    if observed.cordoned || !goes || !claim.is_of(node) || observed.label(IGNORE).is_some() {
        return None;
    }
    let (labels, annotations) = (observed.labels.as_ref(), observed.annotations.as_ref());
    let mut patch = Operations::default();
    patch.test(&["spec", "providerID"], claim.provider_id.clone());
    patch.test_entry("annotations", ANNOTATION, annotations);
    patch.test_entry("labels", IGNORE, labels);
    patch.test(&["spec", "unschedulable"], Value::Null);
    patch.add(&["spec", "unschedulable"], true);
    if !annotation.cordoned {
        let annotation = ClaimAnnotation { cordoned: true, ..annotation };
        patch.add_entry("annotations", ANNOTATION, &annotation.text(), annotations);
    }
    Some(patch.done())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::node::claimant::ClaimResult;

    /// Uncordoned node with a claim for that notice.
    fn uncordoned(notice: &str, cordoned_by_us: bool) -> Value {
        let annotation = json!({"event": "e-1", "request": "r-1", "notice": notice, "cordoned": cordoned_by_us});
        json!({
            "metadata": {"name": "n-1", "labels": {}, "annotations": {ANNOTATION: annotation.to_string()}},
            "spec": {"providerID": "aws:///us-east-1a/i-1"},
        })
    }

    fn patch(node: Value) -> Option<String> {
        let claim = Claim {
            node: "n-1".to_owned(),
            provider_id: "aws:///us-east-1a/i-1".to_owned(),
            how: ClaimResult::First,
            holder: "e-1".to_owned(),
            labels: BTreeMap::new(),
            cordoned: None,
            until: None,
        };
        cordoning_again(&serde_json::from_value(node).unwrap(), &claim).map(|patch| json!(patch).to_string())
    }

    #[test]
    fn uncordoned_node_of_a_going_instance_is_cordoned_by_us() {
        let again = patch(uncordoned("spot interruption", true)).unwrap();
        assert!(again.contains(r#"{"op":"add","path":"/spec/unschedulable","value":true}"#), "{again}");
        assert!(!again.contains(r#""op":"add","path":"/metadata"#), "{again}");
        let of_others = patch(uncordoned("spot interruption", false)).unwrap();
        assert!(of_others.contains(r#"\"cordoned\":true"#), "{of_others}");
    }

    #[test]
    fn node_that_may_stay_in_use_is_not_cordoned_again() {
        assert_eq!(patch(uncordoned("scheduled maintenance", true)), None, "it may have been called off");
        assert_eq!(patch(uncordoned("rebalance recommendation", true)), None);
        let mut cordoned = uncordoned("spot interruption", true);
        cordoned["spec"]["unschedulable"] = json!(true);
        assert_eq!(patch(cordoned), None);
        let mut given_back = uncordoned("spot interruption", true);
        given_back["metadata"]["annotations"] = json!({});
        assert_eq!(patch(given_back), None);
        let mut opted_out = uncordoned("spot interruption", true);
        opted_out["metadata"]["labels"][IGNORE] = json!("");
        assert_eq!(patch(opted_out), None);
        let mut anothers = uncordoned("spot interruption", true);
        anothers["spec"]["providerID"] = json!("aws:///us-east-1a/i-2");
        assert_eq!(patch(anothers), None);
    }
}
