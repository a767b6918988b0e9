//! Interprets the API server's answer to the eviction or deletion of a pod.

use std::time::Duration;

use kube_core::{Status, TypeMeta};
use spillway_receipt::{BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS};

use super::request::Method;
use crate::kube::status::{
    NO_STATUS, describe, is_missing, is_of_another_uid, is_of_rbac, is_of_webhook, is_terminating,
};
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The API server accepted the request, so the pod terminates.
    Leaving,
    /// The pod no longer exists.
    Gone,
    /// A new pod with another UID has the pod's name. The old pod no longer exists.
    Replaced,
    /// A PodDisruptionBudget allows no disruption now.
    BlockedBy { budget: String },
    /// Several PodDisruptionBudgets select the pod, which the eviction API does not support.
    BlockedBySeveral,
    /// The pod's namespace is being deleted.
    NamespaceTerminating,
    /// The API server is busy.
    Throttled { retry_after: Option<Duration> },
    /// The API server does not accept Spillway's token.
    Unauthorized { message: String },
    /// RBAC denied the request.
    Forbidden { message: String },
    /// A conflict, an admission webhook's denial, or an invalid request.
    Refused { message: String },
    /// The API server or one of its dependencies failed.
    ServerError { message: String, retry_after: Option<Duration> },
    /// No answer came, or the answer was unreadable.
    Unanswered { message: String },
    /// The eviction was given up without an answer, because the pod's forced deletion was due.
    GivenUp { message: String },
}

impl Answer {
    /// Returns the name that the receipt shows for the answer.
    pub fn name(&self, method: Method) -> &'static str {
        match (self, method) {
            (Self::Leaving, Method::Evict) => "evicted",
            (Self::Leaving, Method::Delete) => "deleted",
            (Self::Gone, _) => "gone",
            (Self::Replaced, _) => "replaced",
            (Self::BlockedBy { .. }, _) => BLOCKED_BY_BUDGET,
            (Self::BlockedBySeveral, _) => BLOCKED_BY_SEVERAL_BUDGETS,
            (Self::NamespaceTerminating, _) => "namespace-terminating",
            (Self::Throttled { .. }, _) => "throttled",
            (Self::Unauthorized { .. }, _) => "unauthorized",
            (Self::Forbidden { .. }, _) => "forbidden",
            (Self::Refused { .. }, _) => "refused",
            (Self::ServerError { .. }, _) => "server-error",
            (Self::Unanswered { .. } | Self::GivenUp { .. }, _) => "no-answer",
        }
    }
}

impl Answer {
    /// Returns `true` if the API server forbade, refused or could not process the request. Returns `false` for an eviction that a
    /// PDB blocks.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Forbidden { .. } | Self::Refused { .. } | Self::ServerError { .. })
    }
}

/// Maximum number of response bytes that are read. The response to a deletion contains the whole pod, up to 1.5 MB.
pub const READ: usize = 64 << 10;

/// Response of the API server. The body may be cut off after [`READ`] bytes.
#[derive(Debug, Default)]
pub struct ApiResponse {
    pub code: u16,
    pub retry_after: Option<String>,
    pub body: Vec<u8>,
}

impl ApiResponse {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Parses the body of a failed response. If a proxy sent plain text, the text becomes the status message.
    pub fn status(&self) -> Status {
        let status = serde_json::from_slice::<Status>(&self.body)
            .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(&self.body), NO_STATUS));
        status.with_code(self.code)
    }
}

/// Interprets a response by the rules of the API server's eviction handler (kubernetes,
/// `pkg/registry/core/pod/storage/eviction.go`).
pub fn interpret(response: &ApiResponse) -> Answer {
    if response.is_success() {
        // A success without a Kubernetes object came from a proxy. Such an answer does not show that the pod leaves.
        return match serde_json::from_slice::<TypeMeta>(&response.body) {
            Ok(_) => Answer::Leaving,
            Err(error) if error.is_eof() && response.body.len() >= READ => Answer::Leaving,
            Err(error) => Answer::Unanswered { message: format!("the API server's answer was lost: {error}") },
        };
    }
    let status = response.status();
    let retry_after = retry_after(response, &status);
    let message = || format!("the API server answered {}", describe(&status));
    if let Some(budget) = blocking_budget(&status) {
        return Answer::BlockedBy { budget };
    }
    match status.code {
        // Only a 404 about a pod shows that the pod is gone. Another 404 may be a proxy's.
        404 if is_missing(&status, "pods") => Answer::Gone,
        409 if is_of_another_uid(&status) => Answer::Replaced,
        401 => Answer::Unauthorized { message: message() },
        403 if is_terminating(&status) => Answer::NamespaceTerminating,
        403 if is_of_rbac(&status) => Answer::Forbidden { message: status.message },
        // A webhook's 429 is a denial, and does not mean that the API server is busy.
        429 if is_of_webhook(&status) => Answer::Refused { message: message() },
        429 => Answer::Throttled { retry_after },
        500 if status.message.contains("more than one PodDisruptionBudget") => Answer::BlockedBySeveral,
        500.. => Answer::ServerError { message: message(), retry_after },
        _ => Answer::Refused { message: message() },
    }
}

/// Returns the name of the PDB that blocks an eviction. The name is in a message in `details.causes` ("The disruption budget web
/// needs 3 healthy pods and has 3 currently"). Without such a message, the name is `details.name`.
fn blocking_budget(status: &Status) -> Option<String> {
    let details = status.details.as_ref().filter(|_| matches!(status.code, 403 | 429))?;
    let cause = details.causes.iter().find(|cause| cause.reason.starts_with("DisruptionBudget"));
    let named = cause.and_then(|cause| cause.message.strip_prefix("The disruption budget ")?.split(' ').next());
    let is_refused = details.kind.starts_with("poddisruptionbudget") && !is_of_rbac(status);
    let refused = is_refused.then_some(details.name.as_str());
    named.or(refused).or(cause.map(|cause| cause.message.as_str())).map(str::to_owned)
}

/// Reads the header `Retry-After`, or else `retryAfterSeconds` in the body.
fn retry_after(response: &ApiResponse, status: &Status) -> Option<Duration> {
    let header = response.retry_after.as_ref().and_then(|text| text.parse::<u32>().ok());
    let seconds = header.or(status.details.as_ref().map(|details| details.retry_after_seconds));
    seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests;
