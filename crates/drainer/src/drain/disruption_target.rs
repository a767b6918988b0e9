//! Sets the condition `DisruptionTarget` on pods before their deletion, for Jobs with a `podFailurePolicy`. Kubernetes'
//! `pkg/controller/tainteviction` does the same. For evictions, the API server sets the condition.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use kube::api::Patch;
use kube::core::Status;
use serde_json::{Value, json};
use spillway_core::clock::Clock;
use spillway_core::drain::plan::PodUid;
use spillway_core::drain::request::LeaveRequest;
use spillway_core::kube::status::{describe, is_missing, is_of_another_uid, is_of_rbac};
use spillway_startup::logs::chain;
use tokio::time::timeout;

use super::evict::{PodRequest, exchange};
use crate::kube::ApiError;

/// Timeout of the status patch: half of core's `MARGIN`. The deletion of the pod waits for the patch.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sets the condition `DisruptionTarget` on the pods of one drain. Gives up after the first failed patch.
pub(crate) struct DisruptionTarget {
    clock: Clock,
    /// Pods that have the condition `DisruptionTarget`. A repeated deletion does not set the condition again.
    set: RefCell<BTreeSet<PodUid>>,
    /// `true` after a failed patch. From then on, pods are deleted without the condition `DisruptionTarget`.
    is_given_up: Cell<bool>,
}

impl DisruptionTarget {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, set: RefCell::default(), is_given_up: Cell::new(false) }
    }

    /// Sets the condition `DisruptionTarget` on one pod. A failure is only logged.
    pub(crate) async fn set(&self, client: &Client, pod: &LeaveRequest) {
        if self.is_given_up.get() || self.set.borrow().contains(&pod.uid) {
            return;
        }
        let request = PodRequest::Status(Patch::Strategic(self.condition(&pod.uid)));
        let error = match timeout(PATIENCE, exchange(client, &pod.name, &request)).await {
            Ok(Ok(response)) if response.is_success() => {
                self.set.borrow_mut().insert(pod.uid.clone());
                return;
            }
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
                "cannot set the condition DisruptionTarget on pod {name}; deleting this and other pods of the drain without it: their \
                 Jobs count them as failed"
            );
        }
    }

    /// Returns the status patch. It contains the pod's UID, so the API server refuses it for a new pod with the same name.
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

/// Returns the cause of a refused patch. `None` if the pod is gone, or if a new pod has its name.
fn refusal(status: &Status) -> Option<String> {
    if is_missing(status, "pods") || is_of_another_uid(status) {
        return None;
    }
    let to_do = if is_of_rbac(status) { " (apply deploy/optional/disruption-target.yaml)" } else { "" };
    Some(format!("the API server answered {}{to_do}", describe(status)))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use spillway_core::drain::deadline::Grace;
    use spillway_core::drain::plan::PodName;
    use spillway_core::drain::request::Method;
    use tokio::time::Instant;

    use super::*;
    use crate::test_support::api_server::{pod, status};
    use crate::test_support::context::{TestContext, client};
    use crate::test_support::script::{Expected, call};

    /// Sets the conditions of two pods.
    async fn set_twice(api: impl IntoIterator<Item = Expected>) {
        set_of(["a", "b"], api).await;
    }

    async fn set_of(pods: impl IntoIterator<Item = &'static str>, api: impl IntoIterator<Item = Expected>) {
        let context = TestContext::new(&[], api, []);
        let client = client(&context).await;
        let disruption_target = DisruptionTarget::new(Clock::starting_at(Timestamp::UNIX_EPOCH));
        for name in pods {
            let (uid, method) = (PodUid(format!("uid-{name}")), Method::Delete);
            let name = PodName { namespace: "shop".to_owned(), name: name.to_owned() };
            let pod = LeaveRequest { uid, name, method, grace: Grace::Own, timeout: None };
            disruption_target.set(&client, &pod).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_deletion_sets_the_condition_once() {
        let set = |name: &str| call(format!("PATCH /api/v1/namespaces/shop/pods/{name}/status")).says(200, pod(name));
        set_of(["a", "a", "b", "a"], [set("a"), set("b")]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn denied_or_unanswered_condition_is_not_repeated() {
        let set = |name: &str| call(format!("PATCH /api/v1/namespaces/shop/pods/{name}/status"));
        set_twice([set("a").says(403, status(403, "Forbidden", "pods"))]).await;
        let began = Instant::now();
        set_twice([set("a")]).await;
        assert_eq!(began.elapsed().as_secs(), 1, "the deletion waits as long");
        let causes = json!([{"reason": "FieldValueInvalid", "message": "immutable", "field": "metadata.uid"}]);
        let replaced = json!({"kind": "Status", "code": 422, "details": {"kind": "Pod", "causes": causes}});
        for (code, answer) in
            [(200, pod("a").to_string()), (404, status(404, "NotFound", "pods")), (422, replaced.to_string())]
        {
            set_twice([set("a").says(code, answer), set("b").says(200, pod("b"))]).await;
        }
    }
}
