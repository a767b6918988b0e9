//! What the function tells itself: the data of a continuation and of an undo check, which an older version may have written.

use serde_json::{Value, json};
use spillway_notice::{continued, undo_check};

use super::notices;
use crate::{Form, Target, seeds};

const KEYS: [&str; 2] = [continued::KEY, undo_check::KEY];

pub(super) const TARGET: Target = Target {
    name: "continuations",
    form: Form::Json,
    seeds: || {
        let events = seeds::events_as_values();
        let own = events.iter().filter_map(|event| KEYS.iter().find_map(|key| event.get(key)));
        let mut own: Vec<Value> = own.cloned().collect();
        // The samples have none that came back.
        let owners = json!({"owner-1": {"left": 2, "once": ["pod-1"], "again": ["pod-2"]}});
        let mut put_back = own[0].clone();
        put_back["put_back"] = json!({"since": "2026-11-21T03:12:00Z", "owners": owners});
        own.push(put_back);
        own.iter().map(Value::to_string).collect()
    },
    examine: |input| {
        if let Ok(data) = serde_json::from_slice::<Value>(input) {
            for key in KEYS {
                notices::examine(&json!({key: data}));
            }
        }
    },
};
