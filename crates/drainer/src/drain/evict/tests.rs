//! What is sent, and how long its answer is waited for.

use http::{Request as HttpRequest, Response};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::{BoxError, service_fn};

use super::*;

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

/// An API server whose webhooks take so long to let a pod go.
fn held_up(takes: Duration) -> Client {
    let answer = move |_: HttpRequest<Body>| async move {
        sleep(takes).await;
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201});
        Ok::<_, BoxError>(Response::builder().status(201).body(Body::from(status.to_string().into_bytes()))?)
    };
    Client::new(service_fn(answer), "default")
}

fn request() -> LeaveRequest {
    let uid = PodUid("u-1".to_owned());
    LeaveRequest { uid, name: name(), method: Method::Evict, grace: Grace::Own, timeout: None }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_may_hold_an_eviction_for_half_a_minute() {
    let answer = send(held_up(Duration::from_secs(30)), request()).await;
    assert!(matches!(answer, Answer::Leaving), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_is_never_answered_is_given_up_before_half_a_spot_window_has_gone() {
    let began = Instant::now();
    let answer = send(held_up(Duration::from_hours(1)), request()).await;
    assert!(matches!(answer, Answer::Unanswered { .. }), "{answer:?}");
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_waited_for_no_longer_than_the_request_says() {
    for (patience_s, is_given_up) in [(5, true), (60, false)] {
        let request = LeaveRequest { timeout: Some(Duration::from_secs(patience_s)), ..request() };
        let began = Instant::now();
        let answer = send(held_up(Duration::from_hours(1)), request).await;
        assert_eq!(matches!(answer, Answer::GivenUp { .. }), is_given_up, "{answer:?}");
        assert_eq!(began.elapsed().as_secs(), patience_s.min(35));
    }
}
