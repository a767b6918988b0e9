//! The conditions by which a node says that it is drained: those of Kubernetes' node lifecycle (KEP-5683), which each API server
//! takes. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

/// The condition types that we set, and no other.
pub const TYPES: [&str; 3] = [MAINTENANCE_PLANNED, DRAIN_IN_PROGRESS, DRAINED];
const MAINTENANCE_PLANNED: &str = "MaintenancePlanned";
const DRAIN_IN_PROGRESS: &str = "DrainInProgress";
const DRAINED: &str = "Drained";
/// The reason of each of ours: by it they are found again, and others' are left.
const REASON: &str = "DrainedBySpillway";

/// Where a node is in its drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainStage {
    /// Its drain begins at that time.
    Planned { begins: Timestamp },
    /// Its drain has come so far. `is_new`: it says so for the first time.
    InProgress { progress: String, is_new: bool },
    /// All pods that had to leave have left.
    Drained { progress: String },
    /// The drain is over, and pods remain.
    Incomplete { progress: String },
    /// The node was given back while it was drained.
    GivenBack,
}

/// The strategic merge patch of a node's status that says so. Other conditions stay as they are.
pub fn setting(stage: &DrainStage, now: Timestamp) -> Value {
    let condition = |of_type: &str, status: &str, message: &str| {
        json!({
            "type": of_type, "status": status, "reason": REASON, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let conditions = match stage {
        DrainStage::Planned { begins } => {
            vec![condition(MAINTENANCE_PLANNED, "True", &format!("its drain begins at {begins:.0}"))]
        }
        DrainStage::InProgress { progress, is_new } => {
            let mut in_progress = condition(DRAIN_IN_PROGRESS, "True", progress);
            // What a merge does not name stays as it is.
            if !is_new && let Some(fields) = in_progress.as_object_mut() {
                fields.remove("lastTransitionTime");
            }
            vec![in_progress]
        }
        DrainStage::Drained { progress } => {
            vec![condition(DRAIN_IN_PROGRESS, "False", progress), condition(DRAINED, "True", progress)]
        }
        DrainStage::Incomplete { progress } => {
            vec![condition(DRAIN_IN_PROGRESS, "False", progress), condition(DRAINED, "False", progress)]
        }
        DrainStage::GivenBack => vec![json!({"type": DRAIN_IN_PROGRESS, "$patch": "delete"})],
    };
    json!({"status": {"conditions": conditions}})
}

/// The patch that takes our conditions off a node that is given back. `None`: it has none.
pub fn removing(node: &Node) -> Option<Value> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref())?;
    let ours = conditions.iter().filter(|condition| condition.reason.as_deref() == Some(REASON));
    let ours: Vec<_> = ours.map(|condition| json!({"type": condition.type_, "$patch": "delete"})).collect();
    (!ours.is_empty()).then(|| json!({"status": {"conditions": ours}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-25T03:12:00Z";

    /// Type, status and message of each condition that a patch sets.
    fn set(stage: &DrainStage) -> Vec<[String; 3]> {
        let patch = setting(stage, NOW.parse().unwrap());
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
        conditions.iter().map(|one| ["type", "status", "message"].map(|field| text(one, field))).collect()
    }

    #[test]
    fn each_stage_sets_the_conditions_of_kubernetes_node_lifecycle() {
        let progress = || "2 of 3 pods have gone".to_owned();
        let expected = |conditions: &[[&str; 3]]| -> Vec<[String; 3]> {
            conditions.iter().map(|condition| condition.map(str::to_owned)).collect()
        };
        let begins = "2026-12-01T10:00:00Z".parse().unwrap();
        let planned = ["MaintenancePlanned", "True", "its drain begins at 2026-12-01T10:00:00Z"];
        assert_eq!(set(&DrainStage::Planned { begins }), expected(&[planned]));
        let in_progress = set(&DrainStage::InProgress { progress: progress(), is_new: true });
        assert_eq!(in_progress, expected(&[["DrainInProgress", "True", "2 of 3 pods have gone"]]));
        for (stage, drained) in [
            (DrainStage::Drained { progress: progress() }, "True"),
            (DrainStage::Incomplete { progress: progress() }, "False"),
        ] {
            let message = "2 of 3 pods have gone";
            let both = [["DrainInProgress", "False", message], ["Drained", drained, message]];
            assert_eq!(set(&stage), expected(&both));
        }
    }

    #[test]
    fn progress_does_not_change_since_when_a_node_is_drained() {
        let transition = |is_new| {
            let patch = setting(&DrainStage::InProgress { progress: String::new(), is_new }, NOW.parse().unwrap());
            patch["status"]["conditions"][0]["lastTransitionTime"].clone()
        };
        assert_eq!(transition(true), NOW);
        assert_eq!(transition(false), Value::Null);
    }

    #[test]
    fn of_a_node_that_is_given_back_our_conditions_go_and_others_stay() {
        let node = |conditions: Value| -> Node {
            serde_json::from_value(json!({"metadata": {}, "status": {"conditions": conditions}})).unwrap()
        };
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady"});
        let others = json!({"type": "DrainInProgress", "status": "True", "reason": "KubectlDrain"});
        let ours = json!({"type": "Drained", "status": "True", "reason": REASON});
        let removed = json!({"status": {"conditions": [{"type": "Drained", "$patch": "delete"}]}});
        assert_eq!(removing(&node(json!([ready, others, ours]))), Some(removed));
        assert_eq!(removing(&node(json!([ready, others]))), None);
        assert_eq!(removing(&Node::default()), None);
    }
}
