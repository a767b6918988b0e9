//! What tests of several measurements make.

use std::ops::Range;

use jiff::{SignedDuration, Timestamp};
use spillway_bed::audit::Request;

use crate::measure::circumstances::Circumstances;

/// When what is measured begins.
pub(crate) const BEGIN: Timestamp = Timestamp::constant(1_790_000_000, 0);

/// A request for `resource` or `resource/subresource`, from when it was received to when it was answered, in milliseconds
/// from [`BEGIN`].
pub(crate) fn request(verb: &str, resource: &str, name: &str, code: u16, ms: Range<i64>) -> Request {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Request {
        user: String::new(),
        user_agent: String::new(),
        verb: verb.to_owned(),
        uri: String::new(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
        grace_s: None,
        code: Some(code),
        received: BEGIN + SignedDuration::from_millis(ms.start),
        done: Some(BEGIN + SignedDuration::from_millis(ms.end)),
    }
}

/// Of a machine and a commit that there are not.
pub(crate) fn circumstances(command: &str) -> Circumstances {
    let circumstances = serde_json::json!({
        "command": command,
        "commit": "commit 0123456789ab",
        "date": "2026-11-23",
        "build": "a release build",
        "machine": {"cores": 2, "processor": "Z80", "memory_gib": 8.0, "system": "linux x86_64"},
        "busy": [0.01, 0.02],
        "took_us": 61_000_000,
    });
    serde_json::from_value(circumstances).expect("circumstances")
}
