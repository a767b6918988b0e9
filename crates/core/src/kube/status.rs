//! Distinguishes error responses of the API server. The status code is not enough, so message and details are read.

use kube_core::Status;

/// Reason that the kube crate sets if an error response is not a `Status` (kube-client 5.0, `client/mod.rs`).
pub const NO_STATUS: &str = "Failed to parse error data";

pub fn describe(status: &Status) -> String {
    let Status { code, reason, message, .. } = status;
    let message = message.trim();
    if reason.is_empty() || reason == NO_STATUS {
        format!("{code}: {message}")
    } else {
        format!("{code} {reason}: {message}")
    }
}

/// Returns `true` if the requested object of `kind` does not exist. A 404 for an unknown path does not count.
pub fn is_missing(status: &Status, kind: &str) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.kind == kind)
}

/// Returns `true` if the request failed because the object of this name has another UID.
pub fn is_of_another_uid(status: &Status) -> bool {
    let has = |words| status.message.contains(words);
    let is_to_change =
        |field| status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.field == field);
    match status.code {
        409 => has("UID in the precondition") || has("UID in precondition"),
        // A patch that tests the UID fails as an attempt to change the UID.
        422 => is_to_change("metadata.uid"),
        _ => false,
    }
}

/// Returns `true` if the request failed because the namespace is being deleted.
pub fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Returns `true` if RBAC denied the request (apiserver, `responsewriters/errors.go`).
pub fn is_of_rbac(status: &Status) -> bool {
    status.message.contains("is forbidden: User \"")
}

/// Returns `true` if an admission webhook denied the request (apiserver, `webhook/errors/statuserror.go`).
pub fn is_of_webhook(status: &Status) -> bool {
    status.message.starts_with("admission webhook ") && status.message.contains(" denied the request")
}

/// Returns `true` if an admission webhook or policy denied the request (apiserver, `admission/errors.go`).
pub fn is_of_admission(status: &Status) -> bool {
    is_of_webhook(status) || status.message.contains(" is forbidden: ") && !is_of_rbac(status)
}

/// Returns `true` if a required admission webhook could not be called (apiserver, `webhook/errors/statuserror.go`).
pub fn is_of_unreachable_webhook(status: &Status) -> bool {
    status.code == 500 && status.message.contains("failed calling webhook ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changed_uid_in_a_patch_means_another_object() {
        for (field, is_another) in [("metadata.uid", true), ("status.podIPs", false)] {
            let causes = json!([{"reason": "FieldValueInvalid", "message": "immutable", "field": field}]);
            let status = json!({"code": 422, "details": {"name": "web-0", "kind": "Pod", "causes": causes}});
            assert_eq!(is_of_another_uid(&serde_json::from_value(status).unwrap()), is_another, "{field}");
        }
    }

    #[test]
    fn denials_of_admission_are_recognized_by_their_words() {
        let denied = "admission webhook \"nodes.example.com\" denied the request: no";
        for (message, is_admission, is_unreachable) in [
            (
                "nodes \"n\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                true,
                false,
            ),
            (denied, true, false),
            ("admission webhook \"nodes.example.com\" does not support dry run", false, false),
            ("nodes \"n\" is forbidden: User \"spillway\" cannot patch resource \"nodes\"", false, false),
            ("the server rejected our request due to an error in our request", false, false),
            (
                "Internal error occurred: failed calling webhook \"nodes.example.com\": failed to call webhook: Post",
                false,
                true,
            ),
            ("etcdserver: request timed out", false, false),
        ] {
            let status = Status::failure(message, "InternalError").with_code(500);
            assert_eq!(
                (is_of_admission(&status), is_of_unreachable_webhook(&status)),
                (is_admission, is_unreachable),
                "{message}"
            );
        }
    }
}
