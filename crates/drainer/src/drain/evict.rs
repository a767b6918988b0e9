//! Sends evictions, deletions and status patches of pods to the API server.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use http_body_util::BodyExt as _;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::Request;
use kube::{Client, Resource as _};
use serde_json::Value;
use spillway_core::drain::answer::{Answer, ApiResponse, READ, interpret};
use spillway_core::drain::deadline::Grace;
use spillway_core::drain::plan::{PodName, PodUid};
use spillway_core::drain::request::{LeaveRequest, Method};
use spillway_core::kube::pod::Pod;
use spillway_startup::logs::chain;
use tokio::time::timeout;

use crate::kube::ApiError;

/// Timeout of a request, longer than the API server's timeout of 34 s (apiserver, `endpoints/handlers/rest.go`,
/// `requestTimeoutUpperBound`). A shorter timeout would cancel evictions that wait for a slow admission webhook.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(35);

/// Evicts or deletes one pod, with the pod's UID as a precondition.
///
/// kube's `Api::evict` is not used: kube-core 5.0 sends the delete options under a name that the API server ignores
/// (`subresource.rs`). `Api::evict` also hides the header `retry-after`.
pub(crate) async fn send(client: Client, request: LeaveRequest) -> Answer {
    let LeaveRequest { uid, name, method, grace, timeout: limit } = request;
    let request = match method {
        Method::Evict => PodRequest::Eviction(Box::new(eviction(&name, &uid, grace)), PostParams::default()),
        Method::Delete => PodRequest::Deletion(deletion(&uid, grace)),
    };
    let answer = answer(&client, &name, &request);
    match limit {
        Some(limit) => {
            let given_up = |_| Answer::GivenUp { message: ApiError::Timeout(limit).to_string() };
            timeout(limit, answer).await.unwrap_or_else(given_up)
        }
        None => answer.await,
    }
}

/// Sends an eviction with `dryRun`. Query and body both contain `dryRun`, in case a proxy drops the query.
pub(crate) async fn dry_run(client: &Client, name: &PodName, uid: &PodUid) -> Answer {
    let mut eviction = eviction(name, uid, Grace::Own);
    if let Some(options) = &mut eviction.delete_options {
        options.dry_run = Some(vec!["All".to_owned()]);
    }
    let params = PostParams { dry_run: true, ..PostParams::default() };
    answer(client, name, &PodRequest::Eviction(Box::new(eviction), params)).await
}

#[derive(Debug)]
pub(super) enum PodRequest {
    Eviction(Box<Eviction>, PostParams),
    Deletion(DeleteParams),
    Status(Patch<Value>),
}

/// Sends a request and interprets the answer. If no answer comes, returns [`Answer::Unanswered`].
async fn answer(client: &Client, name: &PodName, request: &PodRequest) -> Answer {
    match timeout(ANSWER_TIMEOUT, exchange(client, name, request)).await {
        Ok(Ok(response)) => interpret(&response),
        Ok(Err(error)) => Answer::Unanswered { message: chain(&ApiError::from(error)) },
        Err(_) => Answer::Unanswered { message: ApiError::Timeout(ANSWER_TIMEOUT).to_string() },
    }
}

/// Sends a request and reads the answer, but stops once [`READ`] bytes have come.
pub(super) async fn exchange(client: &Client, name: &PodName, request: &PodRequest) -> kube::Result<ApiResponse> {
    let pods = Request::new(Pod::url_path(&(), Some(&name.namespace)));
    let request = match request {
        PodRequest::Eviction(eviction, params) => {
            let body = serde_json::to_vec(eviction.as_ref()).map_err(kube::Error::SerdeError)?;
            pods.create_subresource("eviction", &name.name, params, body)
        }
        PodRequest::Deletion(params) => pods.delete(&name.name, params),
        PodRequest::Status(patch) => pods.patch_subresource("status", &name.name, &PatchParams::default(), patch),
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

/// Returns the grace period for a request, in seconds. `None` requests the pod's own grace period.
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

#[cfg(test)]
mod tests;
