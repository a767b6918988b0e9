//! Answers of the API server, in its own words.

use std::fmt;

use serde_json::{Value, json};

use super::watch::Watch;

#[derive(Debug)]
pub(crate) enum ApiAnswer {
    /// Status and body.
    Says(u16, String),
    Watches(Watch),
}

impl fmt::Display for ApiAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Says(code @ 200..300, _) => write!(f, "{code}"),
            Self::Says(code, body) => write!(f, "{code} {}", body.chars().take(300).collect::<String>()),
            Self::Watches(_) => f.write_str("a watch"),
        }
    }
}

/// Status object of a failure. Some have no reason.
fn status(code: u16, reason: &str, message: &str, details: Option<Value>) -> String {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "code": code});
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    if let Some(details) = details {
        status["details"] = details;
    }
    status.to_string()
}

pub(super) fn not_found(plural: &str, name: &str) -> ApiAnswer {
    let message = format!("{plural} \"{name}\" not found");
    ApiAnswer::Says(404, status(404, "NotFound", &message, Some(json!({"name": name, "kind": plural}))))
}

/// Answer for an unknown resource.
pub(super) fn not_found_path() -> ApiAnswer {
    ApiAnswer::Says(404, "404 page not found\n".to_owned())
}

pub(super) fn not_allowed() -> ApiAnswer {
    let message = "the server does not allow this method on the requested resource";
    ApiAnswer::Says(405, status(405, "MethodNotAllowed", message, None))
}

/// Failed UID precondition.
pub(super) fn other_uid(name: &str, wanted: &str, found: &str) -> ApiAnswer {
    let message = format!(
        "Operation cannot be fulfilled on pods \"{name}\": the UID in the precondition ({wanted}) does not match the UID \
         in record ({found}). The object might have been deleted and then recreated"
    );
    ApiAnswer::Says(409, status(409, "Conflict", &message, Some(json!({"name": name, "kind": "pods"}))))
}

/// Patch with another UID.
pub(super) fn uid_is_immutable(name: &str) -> ApiAnswer {
    let message = format!("Pod \"{name}\" is invalid: metadata.uid: Invalid value: field is immutable");
    let cause = json!({"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"});
    let details = json!({"name": name, "kind": "Pod", "causes": [cause]});
    ApiAnswer::Says(422, status(422, "Invalid", &message, Some(details)))
}

pub(super) fn blocked_by_budget(name: &str, cause: &str) -> ApiAnswer {
    let details = json!({"name": name, "causes": [{"reason": "DisruptionBudget", "message": cause}]});
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    ApiAnswer::Says(429, status(429, "TooManyRequests", message, Some(details)))
}

pub(super) fn several_budgets() -> ApiAnswer {
    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    ApiAnswer::Says(500, status(500, "", message, None))
}

/// Patch with a failed test.
pub(super) fn invalid(name: &str, why: &str) -> ApiAnswer {
    let message = "the server rejected our request due to an error in our request";
    let details = json!({"name": name, "kind": "nodes", "causes": [{"message": why}]});
    ApiAnswer::Says(422, status(422, "Invalid", message, Some(details)))
}

pub(super) fn success(code: u16) -> ApiAnswer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code});
    ApiAnswer::Says(code, status.to_string())
}

pub(super) fn expired(version: u64) -> String {
    status(410, "Expired", &format!("too old resource version: {version}"), None)
}

pub(crate) fn unauthorized() -> ApiAnswer {
    ApiAnswer::Says(401, status(401, "Unauthorized", "Unauthorized", None))
}

pub(crate) fn webhook_down() -> ApiAnswer {
    let why = "Internal error occurred: failed calling webhook \"nodes.example.com\": context deadline exceeded";
    ApiAnswer::Says(500, status(500, "InternalError", why, None))
}

pub(crate) fn forbidden() -> ApiAnswer {
    ApiAnswer::Says(403, status(403, "Forbidden", "User \"spillway\" cannot do that", None))
}

/// Refusal by an overloaded API server, a proxy, or an API server without etcd.
pub(crate) fn refusal(variant: usize) -> ApiAnswer {
    match variant {
        0 => ApiAnswer::Says(429, "Too many requests, please try again later.\n".to_owned()),
        1 => ApiAnswer::Says(503, "<html>503 Service Unavailable</html>".to_owned()),
        _ => ApiAnswer::Says(500, status(500, "InternalError", "etcdserver: leader changed", None)),
    }
}
