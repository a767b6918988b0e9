//! Answers of the API server to an eviction or a deletion.

use std::time::Duration;

use kube_core::{Status, TypeMeta};
use spillway_receipt::{BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS};

use super::request::Method;
use crate::kube::status::{
    NO_STATUS, describe, is_missing, is_of_another_uid, is_of_rbac, is_of_webhook, is_terminating,
};
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The pod leaves.
    Leaving,
    /// The pod is gone.
    Gone,
    /// Another pod now has the name, so the requested pod is gone.
    Replaced,
    /// A PodDisruptionBudget allows no disruption now.
    BlockedBy { budget: String },
    /// Several PDBs cover the pod, which the eviction API cannot handle.
    BlockedBySeveral,
    /// The namespace is being deleted with its pods.
    NamespaceTerminating,
    /// The API server is busy.
    Throttled { retry_after: Option<Duration> },
    /// The API server does not accept the token, for example because it is too old.
    Unauthorized { message: String },
    /// A right is missing.
    Forbidden { message: String },
    /// A conflict, an admission webhook's denial, or an invalid request.
    Refused { message: String },
    /// The API server or one of its dependencies failed.
    ServerError { message: String, retry_after: Option<Duration> },
    /// No answer came, or the answer was unreadable.
    Unanswered { message: String },
    /// No answer came before the pod's forced deletion was due.
    GivenUp { message: String },
}

impl Answer {
    /// Name of the answer in the receipt.
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
    /// Returns `true` if the API server received the request and forbade, refused or failed it. A lost, throttled or blocked
    /// request does not count.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Forbidden { .. } | Self::Refused { .. } | Self::ServerError { .. })
    }
}

/// Maximum number of bytes of a response that are read. The API server answers a deletion with the whole pod, which may be 1.5
/// MB, and a hundred answers may come at once.
pub const READ: usize = 64 << 10;

/// Part of the API server's response that is read.
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

    /// Status of a failed request. If the answer is plain text, as from a busy API server or a proxy, the text becomes the
    /// message.
    pub fn status(&self) -> Status {
        let status = serde_json::from_slice::<Status>(&self.body)
            .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(&self.body), NO_STATUS));
        status.with_code(self.code)
    }
}

/// Interprets the answers of the API server's eviction handler (kubernetes, `pkg/registry/core/pod/storage/eviction.go`).
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

/// Name of the budget that blocks an eviction, in an answer with code 429 or 403. Usually a cause names the budget ("The
/// disruption budget web needs 3 healthy pods and has 3 currently"). If the budget's status counts negative disruptions or too
/// many unconfirmed evictions, the error has no cause; its `details` are of kind `poddisruptionbudgets` and hold the name.
fn blocking_budget(status: &Status) -> Option<String> {
    let details = status.details.as_ref().filter(|_| matches!(status.code, 403 | 429))?;
    let cause = details.causes.iter().find(|cause| cause.reason.starts_with("DisruptionBudget"));
    let named = cause.and_then(|cause| cause.message.strip_prefix("The disruption budget ")?.split(' ').next());
    let is_refused = details.kind.starts_with("poddisruptionbudget") && !is_of_rbac(status);
    let refused = is_refused.then_some(details.name.as_str());
    named.or(refused).or(cause.map(|cause| cause.message.as_str())).map(str::to_owned)
}

/// Reads `Retry-After`: from the header if the API server was too busy to process the request, else from the body.
fn retry_after(response: &ApiResponse, status: &Status) -> Option<Duration> {
    let header = response.retry_after.as_ref().and_then(|text| text.parse::<u32>().ok());
    let seconds = header.or(status.details.as_ref().map(|details| details.retry_after_seconds));
    seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests;
