//! Which volumes are waited for when the last pod has gone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PersistentVolume;

use super::plan::PodUid;
use super::pod::{PodState, Tracked};

/// Of these a volume may be attached to several nodes at once: nobody waits until this one lets go of it.
const MULTI_ATTACH: [&str; 2] = ["ReadWriteMany", "ReadOnlyMany"];

/// The namespace and the name of a persistent volume claim.
pub type ClaimName = (String, String);

/// The claims of the pods that left, but for those that a pod uses which is there still.
pub fn claims_that_left(pods: &BTreeMap<PodUid, Tracked>) -> BTreeSet<ClaimName> {
    let claims = |gone: bool| {
        let pods = pods.values().filter(|pod| matches!(pod.state, PodState::Gone { .. }) == gone);
        let claims = pods.flat_map(|pod| pod.claims.iter().map(|claim| (pod.name.namespace.clone(), claim.clone())));
        claims.collect::<BTreeSet<ClaimName>>()
    };
    &claims(true) - &claims(false)
}

/// Whether a volume is waited for: one of these claims is bound to it, and it can be attached to one node at a time.
pub fn is_awaited(volume: &PersistentVolume, claims: &BTreeSet<ClaimName>) -> bool {
    let Some(spec) = &volume.spec else { return false };
    let claim = spec.claim_ref.as_ref().and_then(|claim| Some((claim.namespace.clone()?, claim.name.clone()?)));
    let mut modes = spec.access_modes.iter().flatten();
    claim.is_some_and(|claim| claims.contains(&claim)) && !modes.any(|mode| MULTI_ATTACH.contains(&mode.as_str()))
}
