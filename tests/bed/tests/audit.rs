//! The audit log's reader counts whole lines once.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use spillway_bed::audit::AuditLog;

const USER: &str = "arn:aws:sts::123456789012:assumed-role/spillway-drain/one";

/// A line as a kube-apiserver writes it, received at this microsecond.
fn line(id: &str, micros: u32) -> String {
    let event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": id,
        "stage": "ResponseComplete", "verb": "create",
        "requestURI": "/api/v1/namespaces/shop/pods/cart-0/eviction?",
        "user": {"username": USER, "groups": ["spillway", "system:authenticated"]},
        "sourceIPs": ["127.0.0.1"], "userAgent": "spillway/0.1",
        "objectRef": {
            "resource": "pods", "namespace": "shop", "name": "cart-0", "apiVersion": "v1",
            "subresource": "eviction",
        },
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": format!("2026-11-21T10:00:00.{micros:06}Z"),
        "stageTimestamp": format!("2026-11-21T10:00:00.{:06}Z", micros + 3_500),
        "annotations": {"authorization.k8s.io/decision": "allow"},
    });
    format!("{event}\n")
}

fn append(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn later_requests_include_a_line_that_was_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let half = line("b", 2);
    let (begun, rest) = half.split_at(200);
    append(&path, &format!("{}{begun}", line("a", 1)));
    let mut audit = AuditLog::of_user_from_now(&path, "assumed-role/spillway-drain/one").unwrap();
    assert!(audit.requests().unwrap().is_empty());
    append(&path, &format!("{rest}{}", line("c", 3)));
    for _ in 0..2 {
        let micros: Vec<_> = audit.requests().unwrap().iter().map(|one| one.received.subsec_microsecond()).collect();
        assert_eq!(micros, [2, 3]);
    }
}
