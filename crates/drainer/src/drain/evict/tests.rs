use http::{Request as HttpRequest, Response};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::{BoxError, service_fn};

use super::*;

fn name() -> PodName {
    PodName { namespace: "shop".to_owned(), name: "web-0".to_owned() }
}

#[test]
fn requests_have_the_uid_and_a_clamped_grace() {
    let (uid, clamped) = (PodUid("u-1".to_owned()), Grace::Clamped(Duration::from_secs(7)));
    let own = json!({"preconditions": {"uid": "u-1"}});
    let with_grace = json!({"preconditions": {"uid": "u-1"}, "gracePeriodSeconds": 7});
    assert_eq!(json!(eviction(&name(), &uid, Grace::Own))["deleteOptions"], own);
    assert_eq!(json!(eviction(&name(), &uid, clamped))["deleteOptions"], with_grace);
    assert_eq!(json!(deletion(&uid, clamped)), with_grace);
}

/// API server whose webhooks delay each answer.
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

/// The default of 35 s is less than half of a spot notice.
#[tokio::test(start_paused = true)]
async fn silent_api_server_is_given_up_after_the_timeout() {
    for (timeout_s, after_s) in [(Some(5), 5), (Some(60), 35), (None, 35)] {
        let request = LeaveRequest { timeout: timeout_s.map(Duration::from_secs), ..request() };
        let began = Instant::now();
        let answer = send(held_up(Duration::from_hours(1)), request).await;
        assert_eq!(matches!(answer, Answer::GivenUp { .. }), after_s == 5, "{answer:?}");
        assert_eq!(began.elapsed().as_secs(), after_s);
    }
}
