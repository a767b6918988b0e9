//! The webhook on the wire: a real server of ours, as well-behaved or as ill as it likes.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde_json::Value;
use spillway_retry::Transient;
use tokio::net::TcpListener;

use super::*;
use crate::samples::{self, begun};
use crate::wire::{document, server, webhook};

/// One attempt at the secret path of a server, with a secret header.
async fn attempt(server: &str, proxy: Option<&str>) -> Result<(), PostError> {
    let url = format!("{server}/T1/secret-of-the-channel");
    let headers = r#"{"Content-Type": "application/json", "Authorization": "Bearer secret-of-ours"}"#;
    let target = Target::new(document(&url, headers, proxy)).expect("a client");
    let answer = target.post("{}").await;
    if let Err(error) = &answer {
        let told = format!("{error} {error:?} {target:?}");
        assert!(!told.contains("secret"), "{told}");
    }
    answer
}

/// A body that never ends.
fn endless() -> Body {
    Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 8 * 1024]))))
}

#[tokio::test]
async fn a_message_is_posted_with_the_headers_and_no_others() {
    let (address, asked) = server(|| StatusCode::OK.into_response()).await;
    let url = format!("{address}/T1?token=secret");
    let headers = r#"{"Content-type": "application/json", "X-Team": "shop"}"#;
    webhook(&url, headers, None)
        .send(&samples::message(&[&begun(1)]), Instant::now() + Duration::from_secs(60))
        .await
        .expect("taken");
    let asked = asked.lock().expect("unpoisoned");
    let [(request, headers, body)] = asked.as_slice() else { panic!("asked {} times", asked.len()) };
    assert_eq!(request, "POST /T1?token=secret");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["x-team"], "shop");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["text"], "Draining ip-10-0-0-1.eu-west-1.compute.internal of prod");
}

#[tokio::test]
async fn what_the_webhook_answers_decides_what_follows() {
    let told = [
        (200, None),
        (204, None),
        (400, Some("the webhook refused the message: it answered 400 Bad Request: invalid_blocks")),
        (403, Some("the webhook does not accept the URL or the headers: it answered 403 Forbidden: invalid_blocks")),
        (429, Some("the webhook is busy or broken: it answered 429 Too Many Requests: invalid_blocks")),
        (503, Some("the webhook is busy or broken: it answered 503 Service Unavailable: invalid_blocks")),
    ];
    for (status, expected) in told {
        let status = StatusCode::from_u16(status).expect("a status");
        let (address, _) = server(move || (status, "invalid_blocks\n").into_response()).await;
        let error = attempt(&address, None).await.err();
        let is_transient = error.as_ref().is_some_and(Transient::is_transient);
        assert_eq!(error.map(|error| error.to_string()).as_deref(), expected);
        assert_eq!(is_transient, status == 429 || status == 503, "{status}");
    }
}

#[tokio::test]
async fn a_busy_webhook_gets_the_pause_that_it_asks_for_if_that_is_short() {
    for (header, expected) in [
        ("10", Some(Duration::from_secs(10))),
        ("30", Some(Duration::from_secs(30))),
        ("Sat, 21 Nov 2026 03:12:00 GMT", None),
    ] {
        let (address, _) =
            server(move || (StatusCode::TOO_MANY_REQUESTS, [("retry-after", header)]).into_response()).await;
        let error = attempt(&address, None).await.expect_err("busy");
        assert_eq!(error.retry_after(), expected, "{header}");
        assert_eq!(error.is_transient(), header != "30", "{header}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (elsewhere, asked) = server(|| StatusCode::OK.into_response()).await;
    for status in [301, 302, 303, 307, 308] {
        let status = StatusCode::from_u16(status).expect("a status");
        let location = format!("{elsewhere}/secret");
        let (address, _) = server(move || (status, [("location", location.clone())]).into_response()).await;
        assert_eq!(attempt(&address, None).await, Err(PostError::Moved(status)));
    }
    assert!(asked.lock().expect("unpoisoned").is_empty(), "a redirect was followed");
}

#[tokio::test]
async fn of_an_answer_without_end_only_the_beginning_is_read() {
    let (address, _) = server(|| Response::new(endless())).await;
    assert_eq!(attempt(&address, None).await, Ok(()));
    let (address, _) = server(|| (StatusCode::BAD_REQUEST, endless()).into_response()).await;
    let Err(PostError::Refused { said, .. }) = attempt(&address, None).await else { panic!("not refused") };
    assert_eq!(said.0, "x".repeat(1024));
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let silent = listener.accept().await.expect("a connection");
        // From here on nothing moves but the clock.
        tokio::time::pause();
        std::future::pending::<()>().await;
        drop(silent);
    });
    let error = attempt(&address, None).await.expect_err("no answer");
    assert_eq!(error.to_string(), "the webhook gave no answer: nothing within 5 s");
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_webhook_that_is_not_there_is_told_without_its_url() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let error = attempt(&format!("http://{gone}"), None).await.expect_err("nobody listens");
    assert!(error.to_string().contains("onnection refused"), "{error}");
}

#[tokio::test]
async fn an_answer_that_repeats_the_secrets_is_told_without_them() {
    for (echo, told) in [
        (
            "no application/json at /T1/secret-of-the-channel for Bearer secret-of-ours",
            "no application/json at /… for …",
        ),
        ("channel secret-of-the-channel is not for token secret-of-ours", "channel … is not for token …"),
    ] {
        let (address, _) = server(move || (StatusCode::NOT_FOUND, echo).into_response()).await;
        let error = attempt(&address, None).await.expect_err("not found");
        assert!(error.to_string().ends_with(&format!(": {told}")), "{error}");
    }
}

#[tokio::test]
async fn a_secret_that_lies_across_the_end_of_what_is_read_is_not_told() {
    let echo = "x".repeat(1015) + "secret-of-the-channel" + &"y".repeat(1000);
    let (address, _) = server(move || (StatusCode::NOT_FOUND, echo.clone()).into_response()).await;
    let error = attempt(&address, None).await.expect_err("not found");
    assert!(error.to_string().contains(&"x".repeat(900)), "{error}");
}

#[tokio::test]
async fn a_proxy_is_asked_with_its_password_and_the_webhook_is_not() {
    let (proxy, asked) = server(|| StatusCode::OK.into_response()).await;
    let proxy = proxy.replace("http://", "http://us:secret-of-the-proxy@");
    attempt("http://hooks.example", Some(&proxy)).await.expect("taken by the proxy");
    let asked = asked.lock().expect("unpoisoned");
    let [(request, headers, _)] = asked.as_slice() else { panic!("asked {} times", asked.len()) };
    assert_eq!(request, "POST http://hooks.example/T1/secret-of-the-channel");
    // us:secret-of-the-proxy
    assert_eq!(headers["proxy-authorization"], "Basic dXM6c2VjcmV0LW9mLXRoZS1wcm94eQ==");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_without_its_password() {
    let (proxy, _) = server(|| StatusCode::PROXY_AUTHENTICATION_REQUIRED.into_response()).await;
    let proxy = proxy.replace("http://", "http://us:secret-of-the-proxy@");
    let error = attempt("http://hooks.example", Some(&proxy)).await.expect_err("refused");
    assert!(matches!(error, PostError::NotAccepted { .. }), "{error}");
    let error = attempt("https://hooks.example", Some(&proxy)).await.expect_err("no tunnel");
    assert!(matches!(error, PostError::NoAnswer(_)), "{error}");
}
