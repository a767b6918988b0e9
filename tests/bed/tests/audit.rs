//! The audit log's reader, on lines as a kube-apiserver writes them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use spillway_bed::BedError;
use spillway_bed::audit::AuditLog;

const USER: &str = "arn:aws:sts::123456789012:assumed-role/spillway-drain/one";

/// A complete request, received at this microsecond.
fn request(id: &str, user: &str, micros: u32) -> Value {
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": id,
        "stage": "ResponseComplete", "verb": "create",
        "requestURI": "/api/v1/namespaces/shop/pods/cart-0/eviction?",
        "user": {"username": user, "groups": ["spillway", "system:authenticated"]},
        "sourceIPs": ["127.0.0.1"], "userAgent": "spillway/0.1",
        "objectRef": {
            "resource": "pods", "namespace": "shop", "name": "cart-0", "apiVersion": "v1",
            "subresource": "eviction",
        },
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": format!("2026-11-21T10:00:00.{micros:06}Z"),
        "stageTimestamp": format!("2026-11-21T10:00:00.{:06}Z", micros + 3_500),
        "annotations": {"authorization.k8s.io/decision": "allow"},
    })
}

fn append(path: &Path, text: &str) {
    let mut file: File = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn log(path: &Path, event: &Value) {
    append(path, &format!("{event}\n"));
}

#[test]
fn from_now_on_nothing_is_read_that_was_written_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    log(&path, &request("a", USER, 1));
    let half = request("b", USER, 2).to_string();
    let (begun, rest) = half.split_at(200);
    append(&path, begun);
    let mut audit = AuditLog::of_user_from_now(&path, "assumed-role/spillway-drain/one").unwrap();
    append(&path, &format!("{rest}\n"));
    log(&path, &request("c", USER, 3));

    let micros: Vec<_> = audit.requests().unwrap().iter().map(|one| one.received.subsec_microsecond()).collect();
    assert_eq!(micros, [2, 3], "the line that was being written is whole now");
}

#[test]
fn one_users_requests_are_in_the_order_of_their_arrival() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let mut audit = AuditLog::of_user(&path, "assumed-role/spillway-drain/one");
    assert!(audit.requests().unwrap().is_empty(), "nothing is logged yet");

    log(&path, &request("a", USER, 200));
    log(&path, &request("x", "system:admin", 100));
    log(&path, &request("z", &format!("{USER}-more"), 120));
    let mut other = request("y", "system:admin", 150);
    other["userAgent"] = json!("a tool that names assumed-role/spillway-drain/one");
    log(&path, &other);
    log(&path, &request("b", USER, 1));

    let requests = audit.requests().unwrap();
    let micros: Vec<_> = requests.iter().map(|request| request.received.subsec_microsecond()).collect();
    assert_eq!(micros, [1, 200]);
    let request = &requests[0];
    assert_eq!(request.summary(), "create pods/eviction shop/cart-0 → 201");
    assert_eq!(request.uri, "/api/v1/namespaces/shop/pods/cart-0/eviction?");
    assert_eq!((request.code, request.took()), (Some(201), Some(Duration::from_micros(3_500))));
    assert_eq!((request.user.as_str(), request.user_agent.as_str()), (USER, "spillway/0.1"));

    let mut by_agent = AuditLog::of_user_agent(&path, "a tool");
    assert_eq!(by_agent.requests().unwrap().len(), 1);
}

#[test]
fn a_request_has_the_grace_that_its_pod_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let mut eviction = request("e", USER, 1);
    eviction["requestObject"] = json!({"kind": "Eviction", "deleteOptions": {"gracePeriodSeconds": 28}});
    log(&path, &eviction);
    let mut deletion = request("d", USER, 2);
    deletion["requestObject"] = json!({"kind": "DeleteOptions", "gracePeriodSeconds": 1});
    log(&path, &deletion);
    log(&path, &request("own", USER, 3));

    let requests = AuditLog::of_user(&path, USER).requests().unwrap();
    let graces: Vec<_> = requests.iter().map(|request| request.grace_s).collect();
    assert_eq!(graces, [Some(28), Some(1), None]);
}

#[test]
fn a_watch_is_one_request_that_is_done_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let mut audit = AuditLog::of_user(&path, USER);

    let mut received = request("w", USER, 1);
    received["stage"] = json!("RequestReceived");
    received.as_object_mut().unwrap().remove("responseStatus");
    log(&path, &received);
    assert_eq!(audit.requests().unwrap()[0].code, None);

    let mut started = request("w", USER, 1);
    started["stage"] = json!("ResponseStarted");
    started["responseStatus"]["code"] = json!(200);
    log(&path, &started);
    let requests = audit.requests().unwrap();
    assert_eq!((requests[0].code, requests[0].done), (Some(200), None));

    let mut complete = request("w", USER, 1);
    complete["responseStatus"]["code"] = json!(200);
    log(&path, &complete);
    let requests = audit.requests().unwrap();
    assert_eq!((requests.len(), requests[0].code, requests[0].done.is_some()), (1, Some(200), true));
}

#[test]
fn a_request_for_no_object_is_named_by_its_uri() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let mut version = request("v", USER, 1);
    version["requestURI"] = json!("/version");
    version["verb"] = json!("get");
    version.as_object_mut().unwrap().remove("objectRef");
    log(&path, &version);
    let requests = AuditLog::of_user(&path, USER).requests().unwrap();
    assert_eq!(requests[0].summary(), "get /version → 201");
}

#[test]
fn a_line_counts_once_and_only_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let mut audit = AuditLog::of_user(&path, USER);
    let line = request("a", USER, 1).to_string();
    let (half, rest) = line.split_at(line.len() / 2);
    append(&path, half);
    assert!(audit.requests().unwrap().is_empty());
    append(&path, &format!("{rest}\n"));
    assert_eq!(audit.requests().unwrap().len(), 1);
    assert_eq!(audit.requests().unwrap().len(), 1);
}

#[test]
fn rotation_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let mut audit = AuditLog::of_user(&path, USER);
    log(&path, &request("a", USER, 1));
    assert_eq!(audit.requests().unwrap().len(), 1);

    // Written after the last look, then rotated away; and a whole file in between.
    log(&path, &request("b", USER, 2));
    fs::rename(&path, folder.path().join("audit-2026-11-21T10-00-00.000.log")).unwrap();
    log(&path, &request("c", USER, 3));
    fs::rename(&path, folder.path().join("audit-2026-11-21T10-00-01.000.log")).unwrap();
    log(&path, &request("d", USER, 4));
    // Another program's log in the same folder is not ours.
    log(&folder.path().join("auditor.log"), &request("e", USER, 5));

    let requests = audit.requests().unwrap();
    let micros: Vec<_> = requests.iter().map(|request| request.received.subsec_microsecond()).collect();
    assert_eq!(micros, [1, 2, 3, 4]);
}

#[tokio::test]
async fn waiting_ends_with_the_request_or_says_what_was_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let mut audit = AuditLog::of_user(&path, USER);
    let three = |requests: &[_]| requests.len() == 3;
    let writer = async {
        for n in 1..=3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            log(&path, &request(&n.to_string(), USER, n));
        }
    };
    let wait = audit.wait_until("three requests", Duration::from_secs(60), three);
    let (requests, ()) = tokio::join!(wait, writer);
    assert_eq!(requests.unwrap().len(), 3);

    let four = |requests: &[_]| requests.len() == 4;
    let error = audit.wait_until("a fourth", Duration::from_millis(50), four).await.unwrap_err();
    let BedError::Waited { what, last, .. } = &error else { panic!("{error}") };
    assert_eq!(what, "a fourth");
    assert!(last.starts_with("3 requests\n  create pods/eviction shop/cart-0 → 201"), "{last}");
}
