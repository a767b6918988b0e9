//! The condition `DisruptionTarget`, which tells a pod's Job that the pod has not failed: an eviction sets it by itself, a deletion
//! does not (kubernetes, `pkg/controller/tainteviction`, sets it before it deletes).

use std::cell::Cell;
use std::time::Duration;

use kube::Client;
use kube::api::Patch;
use kube::core::Status;
use serde_json::{Value, json};
use spillway_core::clock::Clock;
use spillway_core::drain::plan::PodUid;
use spillway_core::drain::request::LeaveRequest;
use spillway_core::kube::status::{is_missing, is_of_another_uid, is_of_rbac, said};
use spillway_startup::logs::chain;
use tokio::time::timeout;

use super::evict::{PodRequest, exchange};
use crate::kube::ApiError;

/// How long its answer is waited for, because the pod's deletion waits as long: half of what is kept before the instance goes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sets the condition, as long as that works.
pub(crate) struct DisruptionTarget {
    clock: Clock,
    /// One did not get through: no deletion waits for another.
    is_given_up: Cell<bool>,
}

impl DisruptionTarget {
    /// For the pods of one drain.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, is_given_up: Cell::new(false) }
    }

    /// Sets it on a pod that is about to be deleted. The pod is deleted all the same if that fails, which is told once.
    pub(crate) async fn set(&self, client: &Client, pod: &LeaveRequest) {
        if self.is_given_up.get() {
            return;
        }
        let request = PodRequest::Status(Patch::Strategic(self.condition(&pod.uid)));
        let error = match timeout(PATIENCE, exchange(client, &pod.name, &request)).await {
            Ok(Ok(response)) if response.is_success() => return,
            Ok(Ok(response)) => match refusal(&response.status()) {
                Some(refusal) => refusal,
                None => return,
            },
            Ok(Err(error)) => chain(&ApiError::from(error)),
            Err(_) => ApiError::Timeout(PATIENCE).to_string(),
        };
        if !self.is_given_up.replace(true) {
            let name = &pod.name;
            tracing::warn!(
                pod.name = %name,
                error,
                "cannot set the condition DisruptionTarget on pod {name}; deleting it, and others of this drain, without: their Jobs \
                 take them for failed"
            );
        }
    }

    /// The UID is tested, so that a pod which took the name is not hit.
    fn condition(&self, uid: &PodUid) -> Value {
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionBySpillway",
            "message": "Spillway: deleting, because the instance of the pod's node goes",
            "lastTransitionTime": self.clock.now(),
        });
        json!({"metadata": {"uid": uid.0}, "status": {"conditions": [condition]}})
    }
}

/// Why it was not set. `None`: the pod has gone, or another one has its name, as its deletion will find out.
fn refusal(status: &Status) -> Option<String> {
    if is_missing(status, "pods") || is_of_another_uid(status) {
        return None;
    }
    let to_do = if is_of_rbac(status) { " (apply deploy/optional/disruption-target.yaml)" } else { "" };
    Some(format!("the API server answered {}{to_do}", said(status)))
}
