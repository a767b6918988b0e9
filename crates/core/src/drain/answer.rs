//! What the API server answered to an eviction or a deletion, and what that means for the pod.

use std::time::Duration;

use kube_core::{Status, TypeMeta};
use spillway_receipt::{BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS};

use super::request::Method;
use crate::kube::status::{NO_STATUS, is_missing, is_of_another_uid, is_of_rbac, is_of_webhook, is_terminating, said};

/// What the API server said to an eviction or a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The pod is on its way out.
    Leaving,
    /// There is no such pod any more.
    Gone,
    /// Another pod has its name by now, so the one that is meant has gone.
    Replaced,
    /// A PodDisruptionBudget allows no disruption now.
    BlockedBy { budget: String },
    /// Two budgets cover the pod, which the eviction API cannot handle.
    BlockedBySeveral,
    /// The namespace is being deleted, and its pods with it.
    NamespaceTerminating,
    /// The API server is busy; not the pod's fault.
    Throttled { retry_after: Option<Duration> },
    /// The token was too old, or the cluster does not know us.
    Unauthorized { message: String },
    /// We have no right to do that.
    Forbidden { message: String },
    /// The request as it is will not do: a conflict, what an admission webhook objects to, a budget whose status is odd.
    Refused { message: String },
    /// The API server failed, or something that it depends on.
    ServerError { message: String, retry_after: Option<Duration> },
    /// No answer came, or none that can be read.
    Unanswered { message: String },
    /// No answer had come when the pod could wait for it no longer.
    GivenUp { message: String },
}

impl Answer {
    /// What the receipt calls it.
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
    /// Returns `true` if the API server decided against the request. A request that was lost, or for which it had no time, is not
    /// refused.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Forbidden { .. } | Self::Refused { .. } | Self::ServerError { .. })
    }
}

/// How much of a response is read, which is all that says anything: a deletion is answered with the pod, which may be 1.5 MB, and
/// a hundred may be answered at once.
pub const READ: usize = 64 << 10;

/// As much of the API server's response as is read.
#[derive(Debug, Default)]
pub struct ApiResponse {
    pub code: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    pub body: Vec<u8>,
}

impl ApiResponse {
    /// Whether what was requested is done.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Why it is not. A busy API server and what stands before it answer in plain text.
    pub fn status(&self) -> Status {
        let status = serde_json::from_slice::<Status>(&self.body)
            .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(&self.body), NO_STATUS));
        status.with_code(self.code)
    }
}

/// The answers as the API server's eviction handler gives them
/// (kubernetes, `pkg/registry/core/pod/storage/eviction.go`).
pub fn meaning(response: &ApiResponse) -> Answer {
    if response.is_success() {
        // A success that is no object came from something else on the way.
        return match serde_json::from_slice::<TypeMeta>(&response.body) {
            Ok(_) => Answer::Leaving,
            Err(error) if error.is_eof() && response.body.len() >= READ => Answer::Leaving,
            Err(error) => Answer::Unanswered { message: format!("the API server's answer was lost: {error}") },
        };
    }
    let status = response.status();
    let retry_after = retry_after(response, &status);
    let message = || format!("the API server answered {}", said(&status));
    if let Some(budget) = blocking_budget(&status) {
        return Answer::BlockedBy { budget };
    }
    match status.code {
        // Whatever else cannot be found, a pod that may be there is not taken for gone.
        404 if is_missing(&status, "pods") => Answer::Gone,
        409 if is_of_another_uid(&status) => Answer::Replaced,
        401 => Answer::Unauthorized { message: message() },
        403 if is_terminating(&status) => Answer::NamespaceTerminating,
        403 if is_of_rbac(&status) => Answer::Forbidden { message: status.message },
        // What a busy API server answers is no webhook's.
        429 if is_of_webhook(&status) => Answer::Refused { message: message() },
        429 => Answer::Throttled { retry_after },
        500 if status.message.contains("more than one PodDisruptionBudget") => Answer::BlockedBySeveral,
        500.. => Answer::ServerError { message: message(), retry_after },
        _ => Answer::Refused { message: message() },
    }
}

/// Name of the budget that refuses an eviction: as a cause, with 429 or 403 ("The disruption budget web needs 3 healthy pods and
/// has 3 currently"), or as the refused object, with 403: its status is odd, or names too many evictions.
fn blocking_budget(status: &Status) -> Option<String> {
    let details = status.details.as_ref().filter(|_| matches!(status.code, 403 | 429))?;
    let cause = details.causes.iter().find(|cause| cause.reason.starts_with("DisruptionBudget"));
    let named = cause.and_then(|cause| cause.message.strip_prefix("The disruption budget ")?.split(' ').next());
    let is_refused = details.kind.starts_with("poddisruptionbudget") && !is_of_rbac(status);
    let refused = is_refused.then_some(details.name.as_str());
    named.or(refused).or(cause.map(|cause| cause.message.as_str())).map(str::to_owned)
}

/// The header has it when the API server is too busy to look at a request, the body when it did.
fn retry_after(response: &ApiResponse, status: &Status) -> Option<Duration> {
    let header = response.retry_after.as_ref().and_then(|text| text.parse::<u32>().ok());
    let seconds = header.or(status.details.as_ref().map(|details| details.retry_after_seconds));
    seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests;
