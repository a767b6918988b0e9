//! Fields of a pod that a drain reads. Parsing all fields took five times as long, which delayed the first eviction.

use k8s_openapi::api::core::v1::{self, PodCondition, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::metadata::{metadata, object_of_kind};

/// A pod with only the fields that Spillway reads.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Pod {
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Spec,
    #[serde(default)]
    pub status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    pub node_name: Option<String>,
    pub priority_class_name: Option<String>,
    pub termination_grace_period_seconds: Option<i64>,
    #[serde(default)]
    volumes: Vec<Volume>,
    #[serde(default, rename = "tolerations", deserialize_with = "tolerates_cordon")]
    pub tolerates_cordon: bool,
}

/// Returns `true` if a toleration matches the taint `node.kubernetes.io/unschedulable`.
fn tolerates_cordon<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let tolerations = Option::<Vec<Toleration>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(tolerations.iter().any(|toleration| {
        let of_cordon = matches!(toleration.key.as_deref(), None | Some("" | "node.kubernetes.io/unschedulable"));
        of_cordon && matches!(toleration.effect.as_deref(), None | Some("" | "NoSchedule"))
    }))
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    name: String,
    persistent_volume_claim: Option<ClaimSource>,
    ephemeral: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimSource {
    claim_name: String,
}

impl Pod {
    pub fn volume_claims(&self) -> Vec<String> {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let claim = |volume: &Volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.clone()),
            // Kubernetes creates an ephemeral volume's claim under this name (`ephemeral.VolumeClaimName`).
            (None, Some(_)) => Some(format!("{name}-{}", volume.name)),
            (None, None) => None,
        };
        self.spec.volumes.iter().filter_map(claim).collect()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub phase: Option<String>,
    pub start_time: Option<Time>,
    #[serde(default, deserialize_with = "conditions")]
    pub conditions: Conditions,
}

impl Status {
    /// Returns `true` if the pod runs and is not Ready.
    pub fn is_unready(&self) -> bool {
        self.phase.as_deref() == Some("Running") && self.conditions.is_not_ready
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions {
    /// The pod garbage collector deletes the pod, because the pod's node no longer exists.
    pub is_collected: bool,
    is_not_ready: bool,
}

/// Reads the conditions. The pod garbage collector sets `DisruptionTarget` (kubernetes, `gc_controller.go`).
fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Conditions, D::Error> {
    let conditions = Option::<Vec<PodCondition>>::deserialize(deserializer)?.unwrap_or_default();
    let has = |type_, says: fn(&PodCondition) -> bool| conditions.iter().any(|one| one.type_ == type_ && says(one));
    Ok(Conditions {
        is_collected: has("DisruptionTarget", |condition| condition.reason.as_deref() == Some("DeletionByPodGC")),
        is_not_ready: has("Ready", |condition| condition.status != "True"),
    })
}

object_of_kind!(Pod, v1::Pod);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_and_needless_fields_are_dropped() {
        let owner = |name: String, controls| json!({"kind": "Job", "apiVersion": "v1", "name": name, "uid": name, "controller": controls});
        let mut owners: Vec<_> = (0..9).map(|n| owner(n.to_string(), false)).collect();
        owners.push(owner("own".to_owned(), true));
        let annotations = json!({"kubernetes.io/config.mirror": "x".repeat(9000), "other": "y".repeat(9000)});
        let sent = json!({"metadata": {"annotations": annotations, "ownerReferences": owners}});
        let Pod { metadata, .. } = serde_json::from_value(sent).unwrap();
        assert_eq!(metadata.annotations, Some([("kubernetes.io/config.mirror".to_owned(), String::new())].into()));
        assert_eq!(metadata.owner_references.map(|owners| owners.len()), Some(1));
    }

    #[test]
    fn cordon_is_tolerated_by_its_key_or_without_a_key() {
        let tolerates = |tolerations: serde_json::Value| {
            let pod: Pod =
                serde_json::from_value(json!({"metadata": {}, "spec": {"tolerations": tolerations}})).unwrap();
            pod.spec.tolerates_cordon
        };
        assert!(tolerates(json!([{"operator": "Exists"}])));
        assert!(tolerates(
            json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}])
        ));
        // As every pod has it.
        let not_ready = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"});
        for none in [json!([not_ready]), json!([{"operator": "Exists", "effect": "NoExecute"}]), json!([]), json!(null)]
        {
            assert!(!tolerates(none));
        }
    }

    #[test]
    fn orphan_is_recognized_by_its_condition() {
        let is_collected = |conditions: serde_json::Value| {
            let pod = json!({"metadata": {}, "status": {"phase": "Failed", "conditions": conditions}});
            serde_json::from_value::<Pod>(pod).unwrap().status.conditions.is_collected
        };
        let ready = json!({"type": "Ready", "status": "False"});
        let disrupted =
            |reason| json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"});
        assert!(is_collected(json!([ready, disrupted("DeletionByPodGC")])));
        for none in [json!([ready, disrupted("EvictionByEvictionAPI")]), json!([]), json!(null)] {
            assert!(!is_collected(none));
        }
    }

    #[test]
    fn running_pod_without_ready_is_unready() {
        let is_unready = |phase: &str, ready: &str| {
            let status = json!({"phase": phase, "conditions": [{"type": "Ready", "status": ready}]});
            let pod: Pod = serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap();
            pod.status.is_unready()
        };
        assert!(is_unready("Running", "False") && is_unready("Running", "Unknown"));
        assert!(!is_unready("Running", "True"));
        assert!(!is_unready("Pending", "False"), "not protected by a budget");
    }

    #[test]
    fn named_and_ephemeral_volume_claims_are_listed() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "db-0"}, "spec": {"volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "inline", "csi": {"driver": "d"}},
            {"name": "tmp", "emptyDir": {}}]}}))
        .unwrap();
        assert_eq!(pod.volume_claims(), ["data-db-0", "db-0-scratch"]);
    }
}
