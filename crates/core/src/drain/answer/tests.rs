//! Tests: the answer of each response.

use serde_json::{Value, json};

use super::*;

fn response(code: u16, body: impl Into<Vec<u8>>) -> ApiResponse {
    ApiResponse { code, retry_after: None, body: body.into() }
}

fn answered(status: &Value) -> Answer {
    let code = u16::try_from(status["code"].as_u64().unwrap()).unwrap();
    interpret(&response(code, status.to_string()))
}

fn refused(text: &str) -> Answer {
    Answer::Refused { message: format!("the API server answered {text}") }
}

fn server_error(text: &str, retry_after_s: Option<u64>) -> Answer {
    let retry_after = retry_after_s.map(Duration::from_secs);
    Answer::ServerError { message: format!("the API server answered {text}"), retry_after }
}

/// A budget with an odd status, or with 2,000 evictions, answers 403: as the refused object, and from kubernetes#138003 on as a
/// cause too.
#[test]
fn refusing_budget_is_named() {
    let web = Answer::BlockedBy { budget: "web".to_owned() };
    let causes = json!([{"reason": "DisruptionBudget",
        "message": "The disruption budget web needs 3 healthy pods and has 3 currently"}]);
    let odd = json!([{"reason": "DisruptionBudgetNegative", "message": "The disruption budget web is odd"}]);
    for (code, details) in [
        (429, json!({"causes": causes})),
        (403, json!({"name": "web", "group": "policy", "kind": "poddisruptionbudgets"})),
        (403, json!({"name": "web", "group": "policy", "kind": "poddisruptionbudget"})),
        (403, json!({"causes": odd})),
    ] {
        let message = "poddisruptionbudgets.policy \"web\" is forbidden: pdb disruptions allowed is negative";
        assert_eq!(answered(&json!({"code": code, "message": message, "details": details})), web);
    }
    let no_right = "poddisruptionbudgets.policy \"web\" is forbidden: User \"spillway\" cannot get resource";
    let details = json!({"name": "web", "kind": "poddisruptionbudgets"});
    let status = json!({"code": 403, "message": no_right, "details": details});
    assert_eq!(answered(&status), Answer::Forbidden { message: no_right.to_owned() });
}

#[test]
fn busy_api_server_is_not_taken_for_a_budget() {
    let throttled = |seconds: Option<u64>| Answer::Throttled { retry_after: seconds.map(Duration::from_secs) };
    let after = |seconds: u64| json!({"code": 429, "details": {"retryAfterSeconds": seconds}});
    assert_eq!(answered(&after(3)), throttled(Some(3)));
    assert_eq!(answered(&after(0)), throttled(None), "our own pause, instead of none");
    let busy = response(429, "Too many requests, please try again later.\n");
    let by_header = |text: &str| ApiResponse { retry_after: Some(text.to_owned()), body: busy.body.clone(), ..busy };
    assert_eq!(interpret(&by_header("7")), throttled(Some(7)));
    assert_eq!(interpret(&by_header("Sat, 21 Nov 2026 03:12:00 GMT")), throttled(None));
}

#[test]
fn each_status_has_its_answer() {
    let several = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    let no_right = "pods \"web-0\" is forbidden: User \"spillway\" cannot create resource \"pods/eviction\"";
    let webhook = "admission webhook \"virt.example.com\" denied the request: the machine is being moved";
    let policy = "pods \"web-0\" is forbidden: a policy says no";
    let unauthorized = "the API server answered 401 Unauthorized: Unauthorized".to_owned();
    let other_uid = "the UID in the precondition (u-1) does not match the UID in record (u-2)";
    for (status, answer) in [
        (json!({"code": 404, "details": {"name": "web-0", "kind": "pods"}}), Answer::Gone),
        (
            json!({"code": 404, "message": "the server could not find the requested resource"}),
            refused("404: the server could not find the requested resource"),
        ),
        (json!({"code": 409, "message": other_uid}), Answer::Replaced),
        (json!({"code": 409, "message": "object was modified"}), refused("409: object was modified")),
        (
            json!({"code": 401, "reason": "Unauthorized", "message": "Unauthorized"}),
            Answer::Unauthorized { message: unauthorized },
        ),
        (
            json!({"code": 403, "details": {"causes": [{"reason": "NamespaceTerminating"}]}}),
            Answer::NamespaceTerminating,
        ),
        (json!({"code": 403, "message": no_right}), Answer::Forbidden { message: no_right.to_owned() }),
        (json!({"code": 403, "message": webhook}), refused(&format!("403: {webhook}"))),
        (json!({"code": 403, "message": policy}), refused(&format!("403: {policy}"))),
        (json!({"code": 429, "message": webhook}), refused(&format!("429: {webhook}"))),
        (json!({"code": 500, "message": several}), Answer::BlockedBySeveral),
        (json!({"code": 500, "message": "boom"}), server_error("500: boom", None)),
        (
            json!({"code": 504, "reason": "Timeout", "message": "conflicts", "details": {"retryAfterSeconds": 10}}),
            server_error("504 Timeout: conflicts", Some(10)),
        ),
    ] {
        assert_eq!(answered(&status), answer, "{status}");
    }
}

#[test]
fn answer_without_json_is_judged_by_its_code() {
    assert_eq!(interpret(&response(502, "bad gateway")), server_error("502: bad gateway", None));
    assert_eq!(interpret(&response(422, "{")), refused("422: {"));
    assert_eq!(interpret(&response(404, "404 page not found")), refused("404: 404 page not found"));
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201});
    assert_eq!(interpret(&response(201, status.to_string())), Answer::Leaving);
    assert!(matches!(interpret(&response(201, "<html>")), Answer::Unanswered { .. }), "no object");
}

#[test]
fn pod_too_long_to_be_read_is_leaving() {
    let begins = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"long":""#;
    let read = |bytes: usize| interpret(&response(200, format!("{begins}{}", "x".repeat(bytes - begins.len()))));
    assert_eq!(read(65_536), Answer::Leaving);
    assert!(matches!(read(65_535), Answer::Unanswered { .. }), "incomplete");
}
