//! Requesting one pod to leave: by eviction or deletion, and what each answer means.

use std::time::Duration;

use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use kube::core::{Request, Status, TypeMeta};
use kube::{Client, Resource as _};
use spillway_startup::logs::chain;
use tokio::time::timeout;

use super::deadline::Grace;
use super::plan::{PodName, PodUid};
use crate::kube::pod::Pod;
use crate::kube::{ApiError, CALL_TIMEOUT, NO_STATUS, is_missing, is_terminating};

/// How many evictions are under way at once: of the 100 streams that an API server allows on an
/// HTTP/2 connection (kubernetes, `secure_serving.go`) all but three, for the pods' watch, a
/// budget's watch and a look at the node. The others wait for the first answers: of 110 pods that
/// left a node at once those came after 80 to 240 ms.
pub(crate) const EVICTIONS_AT_ONCE: usize = 97;

/// How a pod is requested to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// By the eviction API, which respects PodDisruptionBudgets.
    Evict,
    /// By deleting it, past its budget.
    Delete,
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
}

/// What receipts call the two answers that a budget gives.
pub(crate) const BLOCKED_BY_BUDGET: &str = "blocked-by-budget";
pub(crate) const BLOCKED_BY_SEVERAL_BUDGETS: &str = "blocked-by-several-budgets";

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
            (Self::Unanswered { .. }, _) => "no-answer",
        }
    }
}

/// Requests one pod to leave. It is named by its UID, so that one that took its name is not hit.
///
/// The requests are made by hand. kube's `Api::evict` writes the options under a name that the API
/// server does not read, and grace and UID would be lost without a word (kube-core 5.0,
/// `subresource.rs`); and of no answer does it hand out the headers, where a busy API server says
/// how long to wait.
pub(crate) async fn send(client: Client, method: Method, name: PodName, uid: PodUid, grace: Grace) -> Answer {
    let request = match method {
        Method::Evict => PodRequest::Eviction(Box::new(eviction(&name, &uid, grace)), PostParams::default()),
        Method::Delete => PodRequest::Deletion(deletion(&uid, grace)),
    };
    answer(&client, &name, &request).await
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
    Ok(ApiResponse { code, retry_after, body: response.into_body().collect_bytes().await?.to_vec() })
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
        // Other conflicts pass.
        409 if status.message.contains("UID in the precondition") || status.message.contains("UID in precondition") => {
            Answer::Replaced
        }
        401 => Answer::Unauthorized { message: message() },
        403 if is_terminating(&status) => Answer::NamespaceTerminating,
        // A webhook's no and a budget's with an odd status have the same code.
        403 if is_of_rbac(&status) => Answer::Forbidden { message: status.message },
        429 => match cause("DisruptionBudget") {
            Some(cause) => Answer::BlockedBy { budget: budget_name(&cause.message) },
            None => Answer::Throttled { retry_after },
        },
        500 if status.message.contains("more than one PodDisruptionBudget") => Answer::BlockedBySeveral,
        500.. => Answer::ServerError { message: message(), retry_after },
        _ => Answer::Refused { message: message() },
    }
}

/// Whether a right is missing (apiserver, `responsewriters/errors.go`).
fn is_of_rbac(status: &Status) -> bool {
    status.message.contains("is forbidden: User \"")
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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answered(status: &Value) -> Answer {
        let code = u16::try_from(status["code"].as_u64().unwrap()).unwrap();
        meaning(&ApiResponse { code, retry_after: None, body: serde_json::to_vec(status).unwrap() })
    }

    fn message(text: &str) -> String {
        format!("the API server answered {text}")
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
    fn a_budget_that_allows_no_disruption_is_named() {
        let status = json!({"code": 429, "reason": "TooManyRequests",
            "message": "Cannot evict pod as it would violate the pod's disruption budget.",
            "details": {"causes": [{"reason": "DisruptionBudget",
                "message": "The disruption budget web needs 3 healthy pods and has 3 currently"}]}});
        assert_eq!(answered(&status), Answer::BlockedBy { budget: "web".to_owned() });
    }

    #[test]
    fn a_busy_api_server_is_not_taken_for_a_budget() {
        let status = json!({"code": 429, "message": "too many requests", "details": {"retryAfterSeconds": 3}});
        assert_eq!(answered(&status), Answer::Throttled { retry_after: Some(Duration::from_secs(3)) });
        assert_eq!(answered(&json!({"code": 429})), Answer::Throttled { retry_after: None });
    }

    #[test]
    fn a_busy_api_server_says_in_a_header_how_long_to_wait() {
        let body = b"Too many requests, please try again later.\n".to_vec();
        let response = ApiResponse { code: 429, retry_after: Some("7".to_owned()), body };
        assert_eq!(meaning(&response), Answer::Throttled { retry_after: Some(Duration::from_secs(7)) });
        let by_date = ApiResponse { retry_after: Some("Sat, 21 Nov 2026 03:12:00 GMT".to_owned()), ..response };
        assert_eq!(meaning(&by_date), Answer::Throttled { retry_after: None });
    }

    #[test]
    fn an_answer_that_is_no_json_is_judged_by_its_code() {
        let answer = |code, body: &str| meaning(&ApiResponse { code, retry_after: None, body: body.into() });
        let bad_gateway = message("502: bad gateway");
        assert_eq!(answer(502, "bad gateway"), Answer::ServerError { message: bad_gateway, retry_after: None });
        assert_eq!(answer(422, "{"), Answer::Refused { message: message("422: {") });
    }

    #[test]
    fn a_success_that_is_no_object_evicts_nobody() {
        let answer = |body: &str| meaning(&ApiResponse { code: 201, retry_after: None, body: body.into() });
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201});
        assert_eq!(answer(&status.to_string()), Answer::Leaving);
        assert!(matches!(answer("<html>"), Answer::Unanswered { .. }));
    }

    #[test]
    fn a_token_that_is_not_accepted_is_told_from_a_missing_right() {
        let unauthorized = answered(&json!({"code": 401, "reason": "Unauthorized", "message": "Unauthorized"}));
        assert_eq!(unauthorized, Answer::Unauthorized { message: message("401 Unauthorized: Unauthorized") });
    }

    #[test]
    fn a_budget_that_others_change_at_the_same_time_says_when_to_ask_again() {
        let status =
            json!({"code": 504, "reason": "Timeout", "message": "conflicts", "details": {"retryAfterSeconds": 10}});
        let message = message("504 Timeout: conflicts");
        assert_eq!(answered(&status), Answer::ServerError { message, retry_after: Some(Duration::from_secs(10)) });
    }

    #[test]
    fn a_deletion_has_a_name_of_its_own() {
        assert_eq!((Answer::Leaving.name(Method::Evict), Answer::Leaving.name(Method::Delete)), ("evicted", "deleted"));
    }

    #[test]
    fn two_budgets_for_one_pod_are_told_from_a_server_error() {
        let message =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        assert_eq!(answered(&json!({"code": 500, "message": message})), Answer::BlockedBySeveral);
        assert!(matches!(answered(&json!({"code": 500, "message": "boom"})), Answer::ServerError { .. }));
    }

    #[test]
    fn a_pod_that_went_or_was_replaced_is_gone() {
        let not_found = json!({"code": 404, "details": {"name": "web-0", "kind": "pods"}});
        assert_eq!(answered(&not_found), Answer::Gone);
        let message = "the UID in the precondition (u-1) does not match the UID in record (u-2)";
        assert_eq!(answered(&json!({"code": 409, "message": message})), Answer::Replaced);
        assert!(matches!(answered(&json!({"code": 409, "message": "object was modified"})), Answer::Refused { .. }));
    }

    #[test]
    fn a_path_that_is_not_found_says_nothing_of_the_pod() {
        let status = json!({"code": 404, "message": "the server could not find the requested resource"});
        assert!(matches!(answered(&status), Answer::Refused { .. }));
        let page = ApiResponse { code: 404, retry_after: None, body: b"404 page not found".to_vec() };
        assert!(matches!(meaning(&page), Answer::Refused { .. }));
    }

    #[test]
    fn a_terminating_namespace_is_told_from_a_missing_right() {
        let status = json!({"code": 403, "details": {"causes": [{"reason": "NamespaceTerminating"}]}});
        assert_eq!(answered(&status), Answer::NamespaceTerminating);
    }

    #[test]
    fn who_says_no_with_403_is_told_from_a_missing_right() {
        let no_right = "pods \"web-0\" is forbidden: User \"spillway\" cannot create resource \"pods/eviction\" \
                        in API group \"\" in the namespace \"shop\"";
        let status = json!({"code": 403, "reason": "Forbidden", "message": no_right});
        assert_eq!(answered(&status), Answer::Forbidden { message: no_right.to_owned() });
        for no in [
            "admission webhook \"keep.example.com\" denied the request: not today",
            "poddisruptionbudgets.policy \"web\" is forbidden: pdb disruptions allowed is negative",
        ] {
            let status = json!({"code": 403, "reason": "Forbidden", "message": no});
            assert_eq!(answered(&status), Answer::Refused { message: message(&format!("403 Forbidden: {no}")) });
        }
    }
}
