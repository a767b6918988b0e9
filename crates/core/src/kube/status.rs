//! What a refusal of the API server says: a missing right, a webhook's no, a budget's, another object's UID.
//!
//! Several of them share a code, and only the API server's words tell them apart.

use kube_core::Status;

/// What kube gives as the reason of an answer that is no Status, such as that of a busy API server or of something on
/// the way (kube-client 5.0, `client/mod.rs`). It says nothing that the rest does not.
pub const NO_STATUS: &str = "Failed to parse error data";

/// A refusal in words: its code, its reason and its message.
pub fn said(status: &Status) -> String {
    let Status { code, reason, message, .. } = status;
    let message = message.trim();
    if reason.is_empty() || reason == NO_STATUS {
        format!("{code}: {message}")
    } else {
        format!("{code} {reason}: {message}")
    }
}

/// Whether an object of this kind does not exist. Something on the way that does not know the path
/// says 404 too, and nothing of the object.
pub fn is_missing(status: &Status, kind: &str) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.kind == kind)
}

/// Whether the name is another object's by now. Other conflicts pass. A patch that names the UID would change it.
pub fn is_of_another_uid(status: &Status) -> bool {
    let said = |words| status.message.contains(words);
    let is_to_change =
        |field| status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.field == field);
    match status.code {
        409 => said("UID in the precondition") || said("UID in precondition"),
        422 => is_to_change("metadata.uid"),
        _ => false,
    }
}

/// Whether the namespace is being deleted, and what is in it, so that nothing more is created there.
pub fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Whether a right is missing (apiserver, `responsewriters/errors.go`).
pub fn is_of_rbac(status: &Status) -> bool {
    status.message.contains("is forbidden: User \"")
}

/// Whether an admission webhook said no, with whichever code (apiserver, `webhook/errors/statuserror.go`).
pub fn is_of_webhook(status: &Status) -> bool {
    status.message.starts_with("admission webhook ") && status.message.contains(" denied the request")
}

/// Whether something that admits requests said no, a webhook or a policy: the codes are their own, the words are the API
/// server's (apiserver, `admission/errors.go`).
pub fn is_of_admission(status: &Status) -> bool {
    is_of_webhook(status) || status.message.contains(" is forbidden: ") && !is_of_rbac(status)
}

/// Whether an admission webhook could not be asked, and has to be (apiserver, `webhook/errors/statuserror.go`).
pub fn is_of_unreachable_webhook(status: &Status) -> bool {
    status.code == 500 && status.message.contains("failed calling webhook ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_of_an_object_that_another_has_replaced_would_change_its_uid() {
        let of = |field: &str| {
            let causes = serde_json::json!([{"reason": "FieldValueInvalid", "message": "immutable", "field": field}]);
            let status =
                serde_json::json!({"code": 422, "details": {"name": "web-0", "kind": "Pod", "causes": causes}});
            is_of_another_uid(&serde_json::from_value(status).unwrap())
        };
        assert!(of("metadata.uid"));
        assert!(!of("status.podIPs"));
    }

    #[test]
    fn who_admits_requests_is_told_from_a_missing_right_by_the_words() {
        let says = |message: &str| is_of_admission(&Status::failure(message, "Forbidden"));
        assert!(says("nodes \"n\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"));
        assert!(says("admission webhook \"nodes.example.com\" denied the request: no"));
        assert!(!says("admission webhook \"nodes.example.com\" does not support dry run"), "nobody was asked");
        assert!(!says("nodes \"n\" is forbidden: User \"spillway\" cannot patch resource \"nodes\""));
        assert!(!says("the server rejected our request due to an error in our request"), "a test of the patch");
    }

    #[test]
    fn a_webhook_that_is_down_is_told_from_one_that_says_no_and_from_other_errors() {
        let says = |message: &str| is_of_unreachable_webhook(&Status::failure(message, "InternalError").with_code(500));
        let down =
            "Internal error occurred: failed calling webhook \"nodes.example.com\": failed to call webhook: Post";
        assert!(says(down));
        assert!(!says("admission webhook \"nodes.example.com\" denied the request: no"));
        assert!(!says("etcdserver: request timed out"));
    }
}
