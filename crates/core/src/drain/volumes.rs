//! Decides which volumes have to be detached from the empty node before the drain completes the lifecycle action. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolume;

use super::plan::PodUid;
use super::pod::{PodState, Tracked};

/// Maximum wait until volumes are detached. Most CSI drivers take seconds, slow ones less than a minute.
pub const VOLUME_WAIT: Duration = Duration::from_secs(60);

/// Access modes that allow several nodes to attach a volume. Volumes with these modes need not be detached.
const MULTI_ATTACH: [&str; 2] = ["ReadWriteMany", "ReadOnlyMany"];

/// Namespace and name of a persistent volume claim.
pub type ClaimName = (String, String);

/// Returns the persistent volume claims of the pods that are still on the node.
pub fn claims_in_use(pods: &BTreeMap<PodUid, Tracked>) -> BTreeSet<ClaimName> {
    let there = pods.values().filter(|pod| !matches!(pod.state, PodState::Gone { .. }));
    there.flat_map(|pod| pod.claims.iter().map(|claim| (pod.name.namespace.clone(), claim.clone()))).collect()
}

/// Returns `true` if the volume has to be detached: only one node may attach the volume, no pod on the node uses it, and it is
/// not being deleted.
pub fn is_awaited(volume: &PersistentVolume, in_use: &BTreeSet<ClaimName>) -> bool {
    let Some(spec) = &volume.spec else { return false };
    let claim = spec.claim_ref.as_ref().and_then(|claim| Some((claim.namespace.clone()?, claim.name.clone()?)));
    let mut modes = spec.access_modes.iter().flatten();
    volume.metadata.deletion_timestamp.is_none()
        && claim.is_none_or(|claim| !in_use.contains(&claim))
        && !modes.any(|mode| MULTI_ATTACH.contains(&mode.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::drain::plan::PodName;
    use crate::drain::tier::Tier;

    fn pod(state: PodState, claims: &[&str]) -> BTreeMap<PodUid, Tracked> {
        let name = PodName { namespace: "shop".to_owned(), name: "db-0".to_owned() };
        let pod = Tracked::new(name, Tier::Ordinary, Duration::ZERO, Instant::now());
        let claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
        [(PodUid("u-1".to_owned()), Tracked { claims, state, ..pod })].into()
    }

    #[test]
    fn claim_is_in_use_until_its_pod_has_gone() {
        let at = Instant::now();
        for (state, has_gone) in [(PodState::Leaving { by: at }, false), (PodState::Gone { at }, true)] {
            let pods = pod(state, &["data"]);
            let claim = ("shop".to_owned(), "data".to_owned());
            assert_eq!(claims_in_use(&pods).contains(&claim), !has_gone);
        }
    }

    fn is_awaited_of(claim: &str, modes: &[&str]) -> bool {
        let claim = json!({"namespace": "shop", "name": claim});
        let mut volume = json!({"metadata": {"name": "pv"}, "spec": {"accessModes": modes, "claimRef": claim}});
        if claim["name"] == "deleted" {
            volume["metadata"]["deletionTimestamp"] = json!("2026-11-21T03:12:00Z");
        }
        let in_use = BTreeSet::from([("shop".to_owned(), "agent".to_owned())]);
        is_awaited(&serde_json::from_value(volume).unwrap(), &in_use)
    }

    #[test]
    fn volume_is_awaited_if_unused_and_attached_to_one_node() {
        assert!(is_awaited_of("db-0", &["ReadWriteOnce"]));
        assert!(is_awaited_of("db-0", &["ReadWriteOncePod"]));
        assert!(!is_awaited_of("agent", &["ReadWriteOnce"]));
        assert!(!is_awaited_of("deleted", &["ReadWriteOnce"]), "no pod has its claim any more");
        assert!(!is_awaited_of("db-0", &["ReadWriteMany"]));
        assert!(!is_awaited_of("db-0", &["ReadWriteOnce", "ReadOnlyMany"]));
    }
}
