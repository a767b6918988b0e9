//! Requesting one pod to leave: by eviction or deletion, and what each answer means.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use http_body_util::BodyExt as _;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use kube::core::{Request, Status, TypeMeta};
use kube::{Client, Resource as _};
use spillway_receipt::{BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS};
use spillway_startup::logs::chain;
use tokio::time::timeout;

use super::deadline::Grace;
use super::plan::{PodName, PodUid};
use crate::kube::pod::Pod;
use crate::kube::{
    ApiError, CALL_TIMEOUT, NO_STATUS, is_missing, is_of_another_uid, is_of_rbac, is_of_webhook, is_terminating,
};

/// How many evictions are under way at once. An API server allows 100 streams on an HTTP/2 connection (kubernetes,
/// `secure_serving.go`); what else a drain takes of them at once, `drain/mod.rs` adds up. The other pods wait for the first
/// answers: of 110 that left a node at once those came after 80 to 240 ms.
pub(crate) const EVICTIONS_AT_ONCE: usize = 72;
/// How many deletions are under way at once, beside the evictions: one at its pod's last safe moment never waits for them.
pub(crate) const DELETIONS_AT_ONCE: usize = 10;

/// How a pod is requested to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// By the eviction API, which respects PodDisruptionBudgets.
    Evict,
    /// By deleting it, past its budget.
    Delete,
}

/// A pod to be requested to leave, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaveRequest {
    pub(crate) uid: PodUid,
    pub(crate) name: PodName,
    pub(crate) method: Method,
    pub(crate) grace: Grace,
    /// How long its answer is waited for, if that is less than for any call.
    pub(crate) patience: Option<Duration>,
}

/// What the API server said to an eviction or a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
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
    pub(crate) fn name(&self, method: Method) -> &'static str {
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

/// Requests one pod to leave. It is named by its UID, so that one that took its name is not hit.
///
/// The requests are made by hand. kube's `Api::evict` writes the options under a name that the API
/// server does not read, and grace and UID would be lost without a word (kube-core 5.0,
/// `subresource.rs`); and of no answer does it hand out the headers, where a busy API server says
/// how long to wait.
pub(crate) async fn send(client: Client, request: LeaveRequest) -> Answer {
    let LeaveRequest { uid, name, method, grace, patience } = request;
    let request = match method {
        Method::Evict => PodRequest::Eviction(Box::new(eviction(&name, &uid, grace)), PostParams::default()),
        Method::Delete => PodRequest::Deletion(deletion(&uid, grace)),
    };
    match patience {
        Some(patience) if patience < CALL_TIMEOUT => {
            let given_up = |_| Answer::GivenUp { message: ApiError::Timeout(patience).to_string() };
            timeout(patience, answer(&client, &name, &request)).await.unwrap_or_else(given_up)
        }
        _ => answer(&client, &name, &request).await,
    }
}

/// Requests an eviction as a dry run: whether the pod could leave now. That it is one is said twice: in the
/// address, where admission webhooks see it, and in the body, should something on the way lose the former.
pub(crate) async fn dry_run(client: &Client, name: &PodName, uid: &PodUid) -> Answer {
    let mut eviction = eviction(name, uid, Grace::Own);
    if let Some(options) = &mut eviction.delete_options {
        options.dry_run = Some(vec!["All".to_owned()]);
    }
    let params = PostParams { dry_run: true, ..PostParams::default() };
    answer(client, name, &PodRequest::Eviction(Box::new(eviction), params)).await
}

/// What is sent to the API server.
#[derive(Debug)]
enum PodRequest {
    Eviction(Box<Eviction>, PostParams),
    Deletion(DeleteParams),
}

/// Sends it; that no answer comes is an answer too.
async fn answer(client: &Client, name: &PodName, request: &PodRequest) -> Answer {
    match timeout(CALL_TIMEOUT, exchange(client, name, request)).await {
        Ok(Ok(response)) => meaning(&response),
        Ok(Err(error)) => Answer::Unanswered { message: chain(&ApiError::from(error)) },
        Err(_) => Answer::Unanswered { message: ApiError::Timeout(CALL_TIMEOUT).to_string() },
    }
}

/// How much of a response is read, which is all that says anything: a deletion is answered with the pod, which may be 1.5 MB, and
/// a hundred may be answered at once.
const READ: usize = 64 << 10;

/// As much of the API server's response as is read.
#[derive(Debug, Default)]
struct ApiResponse {
    code: u16,
    retry_after: Option<String>,
    body: Vec<u8>,
}

async fn exchange(client: &Client, name: &PodName, request: &PodRequest) -> kube::Result<ApiResponse> {
    let pods = Request::new(Pod::url_path(&(), Some(&name.namespace)));
    let request = match request {
        PodRequest::Eviction(eviction, params) => {
            let body = serde_json::to_vec(eviction.as_ref()).map_err(kube::Error::SerdeError)?;
            pods.create_subresource("eviction", &name.name, params, body)
        }
        PodRequest::Deletion(params) => pods.delete(&name.name, params),
    };
    let response = client.send(request.map_err(kube::Error::BuildRequest)?.map(Body::from)).await?;
    let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let code = response.status().as_u16();
    let (mut frames, mut body) = (response.into_body().into_data_stream(), Vec::new());
    while body.len() < READ
        && let Some(frame) = frames.try_next().await?
    {
        body.extend_from_slice(&frame);
    }
    Ok(ApiResponse { code, retry_after, body })
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
fn meaning(response: &ApiResponse) -> Answer {
    if (200..300).contains(&response.code) {
        // A success that is no object came from something else on the way.
        return match serde_json::from_slice::<TypeMeta>(&response.body) {
            Ok(_) => Answer::Leaving,
            Err(error) if error.is_eof() && response.body.len() >= READ => Answer::Leaving,
            Err(error) => Answer::Unanswered { message: chain(&ApiError::NoAnswer(Box::new(error))) },
        };
    }
    // A busy API server and what stands before it answer in plain text.
    let status = serde_json::from_slice::<Status>(&response.body)
        .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(&response.body), NO_STATUS));
    let status = status.with_code(response.code);
    let cause =
        |reason: &str| status.details.iter().flat_map(|details| &details.causes).find(|cause| cause.reason == reason);
    let retry_after = retry_after(response, &status);
    let message = || ApiError::Refused(Box::new(status.clone())).to_string();
    match status.code {
        // Whatever else cannot be found, a pod that may be there is not taken for gone.
        404 if is_missing(&status, "pods") => Answer::Gone,
        409 if is_of_another_uid(&status) => Answer::Replaced,
        401 => Answer::Unauthorized { message: message() },
        403 if is_terminating(&status) => Answer::NamespaceTerminating,
        // A webhook's no and a budget's with an odd status have the same code.
        403 if is_of_rbac(&status) => Answer::Forbidden { message: status.message },
        429 => match cause("DisruptionBudget") {
            Some(cause) => Answer::BlockedBy { budget: budget_name(&cause.message) },
            // What a busy API server answers is no webhook's.
            None if is_of_webhook(&status) => Answer::Refused { message: message() },
            None => Answer::Throttled { retry_after },
        },
        500 if status.message.contains("more than one PodDisruptionBudget") => Answer::BlockedBySeveral,
        500.. => Answer::ServerError { message: message(), retry_after },
        _ => Answer::Refused { message: message() },
    }
}

/// "The disruption budget web needs 3 healthy pods and has 3 currently": its name is the fourth word.
fn budget_name(message: &str) -> String {
    let name = message.strip_prefix("The disruption budget ").and_then(|rest| rest.split(' ').next());
    name.unwrap_or(message).to_owned()
}

/// The header has it when the API server is too busy to look at a request, the body when it did.
fn retry_after(response: &ApiResponse, status: &Status) -> Option<Duration> {
    let header = response.retry_after.as_ref().and_then(|text| text.parse::<u32>().ok());
    let seconds = header.or(status.details.as_ref().map(|details| details.retry_after_seconds));
    seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests;
