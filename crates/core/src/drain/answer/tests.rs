//! Tests: the interpret of each answer.

use serde_json::{Value, json};

use super::*;

fn answered(status: &Value) -> Answer {
    let code = u16::try_from(status["code"].as_u64().unwrap()).unwrap();
    interpret(&ApiResponse { code, retry_after: None, body: serde_json::to_vec(status).unwrap() })
}

fn message(text: &str) -> String {
    format!("the API server answered {text}")
}

#[test]
fn budget_without_disruptions_blocks_the_pod() {
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
fn busy_api_server_is_not_taken_for_a_budget() {
    let throttled = |seconds: Option<u64>| Answer::Throttled { retry_after: seconds.map(Duration::from_secs) };
    let after =
        |seconds: u64| json!({"code": 429, "message": "too many requests", "details": {"retryAfterSeconds": seconds}});
    assert_eq!(answered(&after(3)), throttled(Some(3)));
    assert_eq!(answered(&after(0)), throttled(None), "our own pause, instead of none");
    assert_eq!(answered(&json!({"code": 429})), throttled(None));
    let body = b"Too many requests, please try again later.\n".to_vec();
    let response = ApiResponse { code: 429, retry_after: Some("7".to_owned()), body };
    assert_eq!(interpret(&response), throttled(Some(7)), "by the header");
    let by_date = ApiResponse { retry_after: Some("Sat, 21 Nov 2026 03:12:00 GMT".to_owned()), ..response };
    assert_eq!(interpret(&by_date), throttled(None));
}

#[test]
fn answer_without_json_is_judged_by_its_code() {
    let answer = |code, body: &str| interpret(&ApiResponse { code, retry_after: None, body: body.into() });
    let bad_gateway = message("502: bad gateway");
    assert_eq!(answer(502, "bad gateway"), Answer::ServerError { message: bad_gateway, retry_after: None });
    assert_eq!(answer(422, "{"), Answer::Refused { message: message("422: {") });
}

#[test]
fn success_without_an_object_is_no_eviction() {
    let answer = |body: &str| interpret(&ApiResponse { code: 201, retry_after: None, body: body.into() });
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201});
    assert_eq!(answer(&status.to_string()), Answer::Leaving);
    assert!(matches!(answer("<html>"), Answer::Unanswered { .. }));
}

#[test]
fn pod_too_long_to_be_read_is_leaving() {
    let answer = |body: String| interpret(&ApiResponse { code: 200, retry_after: None, body: body.into() });
    let begins = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"long":""#;
    let read = |bytes: usize| format!("{begins}{}", "x".repeat(bytes - begins.len()));
    assert_eq!(answer(read(65_536)), Answer::Leaving);
    assert!(matches!(answer(read(65_535)), Answer::Unanswered { .. }), "it broke off");
}

#[test]
fn unauthorized_differs_from_a_missing_right() {
    let unauthorized = answered(&json!({"code": 401, "reason": "Unauthorized", "message": "Unauthorized"}));
    assert_eq!(unauthorized, Answer::Unauthorized { message: message("401 Unauthorized: Unauthorized") });
}

#[test]
fn conflicting_budget_update_has_a_retry_time() {
    let status =
        json!({"code": 504, "reason": "Timeout", "message": "conflicts", "details": {"retryAfterSeconds": 10}});
    let message = message("504 Timeout: conflicts");
    assert_eq!(answered(&status), Answer::ServerError { message, retry_after: Some(Duration::from_secs(10)) });
}

#[test]
fn deletion_has_its_own_name() {
    assert_eq!((Answer::Leaving.name(Method::Evict), Answer::Leaving.name(Method::Delete)), ("evicted", "deleted"));
}

#[test]
fn two_budgets_differ_from_a_server_error() {
    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!(answered(&json!({"code": 500, "message": message})), Answer::BlockedBySeveral);
    assert!(matches!(answered(&json!({"code": 500, "message": "boom"})), Answer::ServerError { .. }));
}

#[test]
fn missing_or_replaced_pod_is_gone() {
    let not_found = json!({"code": 404, "details": {"name": "web-0", "kind": "pods"}});
    assert_eq!(answered(&not_found), Answer::Gone);
    let message = "the UID in the precondition (u-1) does not match the UID in record (u-2)";
    assert_eq!(answered(&json!({"code": 409, "message": message})), Answer::Replaced);
    assert!(matches!(answered(&json!({"code": 409, "message": "object was modified"})), Answer::Refused { .. }));
}

#[test]
fn unknown_path_is_not_a_missing_pod() {
    let status = json!({"code": 404, "message": "the server could not find the requested resource"});
    assert!(matches!(answered(&status), Answer::Refused { .. }));
    let page = ApiResponse { code: 404, retry_after: None, body: b"404 page not found".to_vec() };
    assert!(matches!(interpret(&page), Answer::Refused { .. }));
}

#[test]
fn terminating_namespace_differs_from_a_missing_right() {
    let status = json!({"code": 403, "details": {"causes": [{"reason": "NamespaceTerminating"}]}});
    assert_eq!(answered(&status), Answer::NamespaceTerminating);
}

#[test]
fn denial_with_403_differs_from_a_missing_right() {
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
fn webhooks_429_is_a_refusal() {
    let no = "admission webhook \"virt.example.com\" denied the request: the machine is being moved";
    let status = json!({"code": 429, "reason": "TooManyRequests", "message": no});
    assert_eq!(answered(&status), Answer::Refused { message: message(&format!("429 TooManyRequests: {no}")) });
    let busy =
        json!({"code": 429, "reason": "TooManyRequests", "message": "Too many requests, please try again later."});
    assert!(matches!(answered(&busy), Answer::Throttled { .. }));
}
