//! The webhook against a real server.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde_json::Value;
use spillway_retry::Transient;
use tokio::net::TcpListener;

use super::*;
use crate::samples::begun;
use crate::test_support::{document, message, server, webhook};

/// Posts once to a secret path with a secret header, and checks that the error has neither.
async fn attempt(server: &str, proxy: Option<&str>) -> Result<(), PostError> {
    let url = format!("{server}/T1/secret-of-the-channel");
    let headers = r#"{"Content-Type": "application/json", "Authorization": "Bearer secret-of-ours"}"#;
    let target = Target::new(document(&url, headers, proxy)).expect("a client");
    let answer = target.post("{}").await;
    if let Err(error) = &answer {
        let text = format!("{error} {error:?} {target:?}");
        assert!(!text.contains("secret"), "{text}");
    }
    answer
}

fn endless() -> Body {
    Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 8 * 1024]))))
}

#[tokio::test]
async fn message_is_posted_with_the_headers_of_the_document() {
    let (address, requests) = server(|| StatusCode::OK.into_response()).await;
    let url = format!("{address}/T1?token=secret");
    let headers = r#"{"Content-type": "application/json", "X-Team": "shop"}"#;
    let end = Instant::now() + Duration::from_secs(60);
    webhook(&url, headers, None).send(&message(&[&begun(1)]), end).await.expect("accepted");
    let requests = requests.lock().expect("unpoisoned");
    let [(request, headers, body)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    assert_eq!(request, "POST /T1?token=secret");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["x-team"], "shop");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["text"], "Draining ip-10-0-0-1.eu-west-1.compute.internal of prod");
}

#[tokio::test]
async fn status_decides_error_and_retry() {
    let refused = "the webhook refused the message: 400 Bad Request: invalid_blocks";
    let not_accepted = "the webhook does not accept the URL or the headers: 403 Forbidden: invalid_blocks";
    for (status, error, is_transient) in [
        (200, None, false),
        (204, None, false),
        (400, Some(refused), false),
        (403, Some(not_accepted), false),
        (429, Some("the webhook is busy or broken: 429 Too Many Requests: invalid_blocks"), true),
        (503, Some("the webhook is busy or broken: 503 Service Unavailable: invalid_blocks"), true),
    ] {
        let status = StatusCode::from_u16(status).expect("a status");
        let (address, _) = server(move || (status, "invalid_blocks\n").into_response()).await;
        let answer = attempt(&address, None).await.err();
        assert_eq!(answer.as_ref().is_some_and(Transient::is_transient), is_transient, "{status}");
        assert_eq!(answer.map(|error| error.to_string()).as_deref(), error);
    }
}

#[tokio::test]
async fn short_retry_after_is_honoured() {
    let too_many = StatusCode::TOO_MANY_REQUESTS;
    for (header, pause, is_transient) in
        [("10", Some(10), true), ("30", Some(30), false), ("Sat, 21 Nov 2026 03:12:00 GMT", None, true)]
    {
        let (address, _) = server(move || (too_many, [("retry-after", header)]).into_response()).await;
        let error = attempt(&address, None).await.expect_err("busy");
        assert_eq!(
            (error.retry_after(), error.is_transient()),
            (pause.map(Duration::from_secs), is_transient),
            "{header}"
        );
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let (elsewhere, requests) = server(|| StatusCode::OK.into_response()).await;
    for status in [301, 302, 303, 307, 308] {
        let status = StatusCode::from_u16(status).expect("a status");
        let location = format!("{elsewhere}/secret");
        let (address, _) = server(move || (status, [("location", location.clone())]).into_response()).await;
        assert_eq!(attempt(&address, None).await, Err(PostError::Moved(status)));
    }
    assert!(requests.lock().expect("unpoisoned").is_empty());
}

#[tokio::test]
async fn only_the_beginning_of_an_endless_answer_is_read() {
    let (address, _) = server(|| Response::new(endless())).await;
    assert_eq!(attempt(&address, None).await, Ok(()));
    let (address, _) = server(|| (StatusCode::BAD_REQUEST, endless()).into_response()).await;
    let Err(PostError::Refused { text, .. }) = attempt(&address, None).await else { panic!("not refused") };
    assert_eq!(text.0, "x".repeat(1024));
}

#[tokio::test]
async fn silent_webhook_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let silent = listener.accept().await.expect("a connection");
        // From here on only the clock moves.
        tokio::time::pause();
        std::future::pending::<()>().await;
        drop(silent);
    });
    let error = attempt(&address, None).await.expect_err("no answer");
    assert_eq!(error.to_string(), "the webhook gave no answer: nothing within 5 s");
    assert!(error.is_transient());
}

#[tokio::test]
async fn closed_port_is_an_error_without_the_url() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let error = attempt(&format!("http://{gone}"), None).await.expect_err("no listener");
    assert!(error.to_string().contains("onnection refused"), "{error}");
}

/// The parts of secrets have their test in `echo`.
#[tokio::test]
async fn secrets_in_an_answer_are_redacted() {
    let across_the_end = "x".repeat(1015) + "secret-of-the-channel" + &"y".repeat(1000);
    for (echo, text) in [
        ("at /T1/secret-of-the-channel for Bearer secret-of-ours".to_owned(), ": at /… for …".to_owned()),
        (across_the_end, "x".repeat(900)),
    ] {
        let (address, _) = server(move || (StatusCode::NOT_FOUND, echo.clone()).into_response()).await;
        let error = attempt(&address, None).await.expect_err("not found");
        assert!(error.to_string().contains(&text), "{error}");
    }
}

#[tokio::test]
async fn proxy_gets_its_password_and_errors_do_not() {
    let with_password = |address: String| address.replace("http://", "http://us:secret-of-the-proxy@");
    let (proxy, requests) = server(|| StatusCode::OK.into_response()).await;
    attempt("http://hooks.example", Some(&with_password(proxy))).await.expect("accepted by the proxy");
    let requests = requests.lock().expect("unpoisoned").clone();
    let [(request, headers, _)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    assert_eq!(request, "POST http://hooks.example/T1/secret-of-the-channel");
    // us:secret-of-the-proxy
    assert_eq!(headers["proxy-authorization"], "Basic dXM6c2VjcmV0LW9mLXRoZS1wcm94eQ==");

    let (proxy, _) = server(|| StatusCode::PROXY_AUTHENTICATION_REQUIRED.into_response()).await;
    let proxy = with_password(proxy);
    let error = attempt("http://hooks.example", Some(&proxy)).await.expect_err("refused");
    assert!(matches!(error, PostError::NotAccepted { .. }), "{error}");
    let error = attempt("https://hooks.example", Some(&proxy)).await.expect_err("no tunnel");
    assert!(matches!(error, PostError::NoAnswer(_)), "{error}");
}
