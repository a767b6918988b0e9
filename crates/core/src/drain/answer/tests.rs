//! What each answer means.

use serde_json::{Value, json};

use super::*;

fn answered(status: &Value) -> Answer {
    let code = u16::try_from(status["code"].as_u64().unwrap()).unwrap();
    meaning(&ApiResponse { code, retry_after: None, body: serde_json::to_vec(status).unwrap() })
}

fn message(text: &str) -> String {
    format!("the API server answered {text}")
}

#[test]
fn a_budget_that_allows_no_disruption_is_named() {
    let status = json!({"code": 429, "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"causes": [{"reason": "DisruptionBudget",
            "message": "The disruption budget web needs 3 healthy pods and has 3 currently"}]}});
    assert_eq!(answered(&status), Answer::BlockedBy { budget: "web".to_owned() });
}

/// The budget's status is odd, or names 2,000 evictions: as the refused object, and from kubernetes#138003 on as a cause too.
#[test]
fn budget_that_answers_403_blocks_the_pod() {
    let message = "poddisruptionbudgets.policy \"web\" is forbidden: pdb disruptions allowed is negative";
    let cause = json!([{"reason": "DisruptionBudgetNegative", "message": "The disruption budget web is odd"}]);
    for details in [
        json!({"name": "web", "group": "policy", "kind": "poddisruptionbudgets"}),
        json!({"name": "web", "group": "policy", "kind": "poddisruptionbudget"}),
        json!({"causes": cause}),
    ] {
        let status = json!({"code": 403, "reason": "Forbidden", "message": message, "details": details});
        assert_eq!(answered(&status), Answer::BlockedBy { budget: "web".to_owned() });
    }
    let no_right = "poddisruptionbudgets.policy \"web\" is forbidden: User \"spillway\" cannot get resource";
    let details = json!({"name": "web", "kind": "poddisruptionbudgets"});
    let status = json!({"code": 403, "message": no_right, "details": details});
    assert_eq!(answered(&status), Answer::Forbidden { message: no_right.to_owned() });
}

#[test]
fn a_busy_api_server_is_not_taken_for_a_budget() {
    let status = json!({"code": 429, "message": "too many requests", "details": {"retryAfterSeconds": 3}});
    assert_eq!(answered(&status), Answer::Throttled { retry_after: Some(Duration::from_secs(3)) });
    assert_eq!(answered(&json!({"code": 429})), Answer::Throttled { retry_after: None });
    let no_time = json!({"code": 429, "details": {"retryAfterSeconds": 0}});
    assert_eq!(answered(&no_time), Answer::Throttled { retry_after: None }, "our own pause, instead of none");
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
fn a_pod_that_is_too_long_to_be_read_whole_is_leaving() {
    let answer = |body: String| meaning(&ApiResponse { code: 200, retry_after: None, body: body.into() });
    let begins = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"long":""#;
    let read = |bytes: usize| format!("{begins}{}", "x".repeat(bytes - begins.len()));
    assert_eq!(answer(read(65_536)), Answer::Leaving);
    assert!(matches!(answer(read(65_535)), Answer::Unanswered { .. }), "it broke off");
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
    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
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
        "pods \"web-0\" is forbidden: a policy says no",
    ] {
        let status = json!({"code": 403, "reason": "Forbidden", "message": no});
        assert_eq!(answered(&status), Answer::Refused { message: message(&format!("403 Forbidden: {no}")) });
    }
}

#[test]
fn a_webhooks_429_is_its_refusal_and_not_a_busy_api_server() {
    let no = "admission webhook \"virt.example.com\" denied the request: the machine is being moved";
    let status = json!({"code": 429, "reason": "TooManyRequests", "message": no});
    assert_eq!(answered(&status), Answer::Refused { message: message(&format!("429 TooManyRequests: {no}")) });
    let busy =
        json!({"code": 429, "reason": "TooManyRequests", "message": "Too many requests, please try again later."});
    assert!(matches!(answered(&busy), Answer::Throttled { .. }));
}
