//! The audit log's reader, on lines as a kube-apiserver writes them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};
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
