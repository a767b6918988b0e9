//! Telling one pod to leave: the two requests, and what each answer means.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{DeleteParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};

use super::deadline::Grace;
use super::plan::{PodName, PodUid};
use crate::kubernetes::{ApiError, call};

/// How a pod is told to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the eviction API, which respects PodDisruptionBudgets.
    Evict,
    /// By deleting it, past its budget.
    Delete,
}

/// What the API server said to an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The pod is on its way out.
    Leaving,
    /// There is no such pod any more: gone, or another one by its name.
    Gone,
    /// A PodDisruptionBudget has no room for it now.
    HeldBy { budget: String },
    /// Two budgets cover the pod, which the eviction API cannot handle.
    HeldBySeveral,
    /// The namespace is being deleted, and its pods with it.
    NamespaceTerminating,
    /// The API server is busy; not the pod's fault.
    Throttled { retry_after: Option<Duration> },
    /// We may not evict.
    Forbidden { message: String },
    /// Something failed that may not fail again.
    Failed { message: String },
}

/// Tells one pod to leave. It is named by its UID, so that one that took its name is not hit.
pub(crate) async fn tell(client: Client, way: Way, name: PodName, uid: PodUid, grace: Grace) -> Answer {
    let pods: Api<Pod> = Api::namespaced(client, &name.namespace);
    let answer = match way {
        Way::Evict => evict(&pods, &name, &uid, grace).await,
        Way::Delete => delete(&pods, &name, &uid, grace).await,
    };
    answer.map_or_else(refusal, |()| Answer::Leaving)
}

/// The typed object is sent, and not kube's `Api::evict`, which writes the options under a name
/// that the API server does not read: grace and UID would be lost without a word (kube-core 5.0,
/// `subresource.rs`).
async fn evict(pods: &Api<Pod>, name: &PodName, uid: &PodUid, grace: Grace) -> Result<(), ApiError> {
    let eviction = eviction(name, uid, grace);
    call(pods.create_subresource::<_, Status>("eviction", &name.name, &PostParams::default(), &eviction))
        .await
        .map(drop)
}

async fn delete(pods: &Api<Pod>, name: &PodName, uid: &PodUid, grace: Grace) -> Result<(), ApiError> {
    call(pods.delete(&name.name, &deletion(uid, grace))).await.map(drop)
}

fn deletion(uid: &PodUid, grace: Grace) -> DeleteParams {
    DeleteParams {
        grace_period_seconds: seconds(grace).map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX)),
        preconditions: Some(kube::api::Preconditions { uid: Some(uid.0.clone()), resource_version: None }),
        ..DeleteParams::default()
    }
}

/// `None` leaves the pod its own.
fn seconds(grace: Grace) -> Option<i64> {
    match grace {
        Grace::Own => None,
        Grace::Clamped(given) => Some(i64::try_from(given.as_secs()).unwrap_or(i64::MAX)),
    }
}

fn eviction(name: &PodName, uid: &PodUid, grace: Grace) -> Eviction {
    Eviction {
        metadata: ObjectMeta {
            name: Some(name.name.clone()),
            namespace: Some(name.namespace.clone()),
            ..Default::default()
        },
        delete_options: Some(DeleteOptions {
            grace_period_seconds: seconds(grace),
            preconditions: Some(Preconditions { uid: Some(uid.0.clone()), resource_version: None }),
            ..Default::default()
        }),
    }
}

/// The answers as the API server's eviction handler gives them
/// (kubernetes, `pkg/registry/core/pod/storage/eviction.go`).
fn refusal(error: ApiError) -> Answer {
    let ApiError::Refused(status) = error else { return Answer::Failed { message: error.to_string() } };
    let cause =
        |reason: &str| status.details.iter().flat_map(|details| &details.causes).find(|cause| cause.reason == reason);
    match status.code {
        404 => Answer::Gone,
        // Another pod has the name by now, so the one we mean has gone. Other conflicts pass.
        409 if status.message.contains("UID in the precondition") => Answer::Gone,
        403 if cause("NamespaceTerminating").is_some() => Answer::NamespaceTerminating,
        403 => Answer::Forbidden { message: status.message },
        429 => match cause("DisruptionBudget") {
            Some(cause) => Answer::HeldBy { budget: budget_name(&cause.message) },
            None => Answer::Throttled { retry_after: retry_after(&status) },
        },
        500 if status.message.contains("more than one PodDisruptionBudget") => Answer::HeldBySeveral,
        _ => Answer::Failed { message: ApiError::Refused(status).to_string() },
    }
}

/// "The disruption budget web needs 3 healthy pods and has 3 currently": its name is the fourth word.
fn budget_name(message: &str) -> String {
    let name = message.strip_prefix("The disruption budget ").and_then(|rest| rest.split(' ').next());
    name.unwrap_or(message).to_owned()
}

fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::{Value, json};

    use super::*;

    fn answered(status: Value) -> Answer {
        refusal(ApiError::Refused(serde_json::from_value(status).unwrap()))
    }

    fn name() -> PodName {
        PodName { namespace: "shop".to_owned(), name: "web-0".to_owned() }
    }

    #[test]
    fn an_eviction_names_the_pods_uid() {
        let body = serde_json::to_string_pretty(&eviction(&name(), &PodUid("u-1".to_owned()), Grace::Own)).unwrap();
        insta::assert_snapshot!(body);
    }

    #[test]
    fn an_eviction_carries_a_grace_only_when_it_is_clamped() {
        let clamped = Grace::Clamped(Duration::from_secs(7));
        let body = serde_json::to_string_pretty(&eviction(&name(), &PodUid("u-1".to_owned()), clamped)).unwrap();
        insta::assert_snapshot!(body);
    }

    #[test]
    fn a_deletion_names_the_pods_uid_and_the_grace_that_is_left() {
        let clamped = Grace::Clamped(Duration::from_secs(7));
        let body = serde_json::to_string_pretty(&deletion(&PodUid("u-1".to_owned()), clamped)).unwrap();
        insta::assert_snapshot!(body);
    }

    #[test]
    fn a_budget_without_room_is_named() {
        let status = json!({"code": 429, "reason": "TooManyRequests",
            "message": "Cannot evict pod as it would violate the pod's disruption budget.",
            "details": {"causes": [{"reason": "DisruptionBudget",
                "message": "The disruption budget web needs 3 healthy pods and has 3 currently"}]}});
        assert_eq!(answered(status), Answer::HeldBy { budget: "web".to_owned() });
    }

    #[test]
    fn a_busy_api_server_is_not_taken_for_a_budget() {
        let status = json!({"code": 429, "message": "too many requests", "details": {"retryAfterSeconds": 3}});
        assert_eq!(answered(status), Answer::Throttled { retry_after: Some(Duration::from_secs(3)) });
        assert_eq!(answered(json!({"code": 429})), Answer::Throttled { retry_after: None });
    }

    #[test]
    fn two_budgets_for_one_pod_are_told_from_a_server_error() {
        let message =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        assert_eq!(answered(json!({"code": 500, "message": message})), Answer::HeldBySeveral);
        assert!(matches!(answered(json!({"code": 500, "message": "boom"})), Answer::Failed { .. }));
    }

    #[test]
    fn a_pod_that_went_or_was_replaced_is_gone() {
        assert_eq!(answered(json!({"code": 404})), Answer::Gone);
        let message = "the UID in the precondition (u-1) does not match the UID in record (u-2)";
        assert_eq!(answered(json!({"code": 409, "message": message})), Answer::Gone);
        assert!(matches!(answered(json!({"code": 409, "message": "object was modified"})), Answer::Failed { .. }));
    }

    #[test]
    fn a_terminating_namespace_is_told_from_a_missing_right() {
        let status = json!({"code": 403, "details": {"causes": [{"reason": "NamespaceTerminating"}]}});
        assert_eq!(answered(status), Answer::NamespaceTerminating);
        let status = json!({"code": 403, "message": "pods is forbidden"});
        assert_eq!(answered(status), Answer::Forbidden { message: "pods is forbidden".to_owned() });
    }
}
