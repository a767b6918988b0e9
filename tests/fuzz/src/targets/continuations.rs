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
        own.map(Value::to_string).collect()
    },
    examine: |input| {
        if let Ok(data) = serde_json::from_slice::<Value>(input) {
            for key in KEYS {
                notices::examine(&json!({key: data}));
            }
        }
    },
};
