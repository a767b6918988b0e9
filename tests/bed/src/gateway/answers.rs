//! Refusals, in the words of the API server and of AWS.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::{Value, json};

/// An answer in place of the server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    status: u16,
    retry_after_s: Option<u32>,
    content_type: &'static str,
    body: String,
}

impl Answer {
    /// A refusal of the API server. Panics at a code that the API server does not use.
    pub fn kubernetes(code: u16) -> Self {
        let (reason, message) = match code {
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "this is forbidden: User \"spillway\" cannot do it"),
            404 => ("NotFound", "the server could not find the requested resource"),
            409 => (
                "Conflict",
                "Operation cannot be fulfilled: the object has been modified; please apply your changes to the \
                 latest version and try again",
            ),
            410 => ("Expired", "too old resource version: 1 (2)"),
            // A failed test of a JSON patch names no causes.
            422 => ("Invalid", "the server rejected our request due to an error in our request"),
            500 => ("InternalError", "Internal error occurred: etcdserver: request timed out"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "Timeout: request did not complete within the allotted timeout"),
            other => panic!("the API server does not answer {other} in this test bed"),
        };
        Self::status(code, reason, message, &Value::Null)
    }

    /// 429 of priority and fairness: plain text, and the pause in a header (`tooManyRequests` in the apiserver's
    /// `priority-and-fairness.go`).
    pub fn throttled(retry_after_s: Option<u32>) -> Self {
        Self {
            status: 429,
            retry_after_s,
            content_type: "text/plain; charset=utf-8",
            body: "Too many requests, please try again later.\n".to_owned(),
        }
    }

    /// 429 of a `PodDisruptionBudget`, without `Retry-After`, as the API server sends it.
    pub fn held_by(budget: &str) -> Self {
        let message = format!("The disruption budget {budget} needs 1 healthy pods and has 1 currently");
        let details = json!({"causes": [{"reason": "DisruptionBudget", "message": message}]});
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self::status(429, "TooManyRequests", text, &details)
    }

    fn status(code: u16, reason: &str, message: &str, details: &Value) -> Self {
        let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code});
        if !details.is_null() {
            status["details"] = details.clone();
        }
        Self { status: code, retry_after_s: None, content_type: "application/json", body: status.to_string() }
    }

    /// An error in the shape of the AWS service's protocol.
    pub fn aws(service: &str, status: u16, code: &str) -> Self {
        let message = "made by the test bed";
        let (content_type, body) = match service {
            "ec2" => (
                "text/xml",
                format!(
                    "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>\
                     <RequestID>made-by-the-test-bed</RequestID></Response>"
                ),
            ),
            "autoscaling" => (
                "text/xml",
                format!(
                    "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>\
                     <RequestId>made-by-the-test-bed</RequestId></ErrorResponse>"
                ),
            ),
            _ => ("application/json", json!({"__type": code, "message": message}).to_string()),
        };
        Self { status, retry_after_s: None, content_type, body }
    }

    /// A success with a page of HTML, as a captive portal or a load balancer gives.
    pub(super) fn page() -> Self {
        let body = "<!DOCTYPE html><title>Welcome</title><p>This is not the server you are looking for.".to_owned();
        Self { status: 200, retry_after_s: None, content_type: "text/html", body }
    }

    pub(super) fn into_response(self) -> Response<String> {
        let mut response = Response::new(self.body);
        *response.status_mut() = StatusCode::from_u16(self.status).expect("three digits");
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
