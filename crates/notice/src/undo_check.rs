//! Payload of the undo check: the function checks whether a drained node can be uncordoned.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Notice;

pub const KEY: &str = "spillway-undo-check";

/// Data of an undo check: the notice for which the node was drained, the instance, and the check's number, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoCheck {
    pub notice: Value,
    pub instance: String,
    pub number: u32,
}

impl UndoCheck {
    #[must_use]
    pub fn first(event: &Value, notice: &Notice) -> Self {
        Self { notice: event.clone(), instance: notice.instance.to_string(), number: 0 }
    }

    #[must_use]
    pub fn next(&self) -> Self {
        Self { number: self.number.saturating_add(1), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{home, notice, sample};
    use super::super::{Incoming, read};
    use super::KEY;

    #[test]
    fn check_holds_its_notice_and_counts() {
        let mut event = sample("undo-check");
        let Incoming::UndoCheck { notice: of, check } = read(event.clone(), &home()).unwrap() else {
            panic!("not read")
        };
        assert_eq!(of, notice(sample("rebalance-recommendation")));
        assert_eq!((check.number, check.next().number), (0, 1));
        event[KEY]["number"] = json!(u32::MAX);
        let Incoming::UndoCheck { check, .. } = read(event, &home()).unwrap() else { panic!("not read") };
        assert_eq!(check.next().number, u32::MAX);
    }

    #[test]
    fn unreadable_check_is_refused_with_its_path() {
        let refused = |field: &str, value: serde_json::Value| {
            let mut event = sample("undo-check");
            event[KEY][field] = value;
            read(event, &home()).unwrap_err().to_string()
        };
        assert_eq!(refused("instance", json!("i-1")), "cannot read the notice: at instance: \"i-1\" is no instance id");
        assert_eq!(
            refused("number", json!(-1)),
            "cannot read the notice: at spillway-undo-check.number: invalid value: integer `-1`, expected u32"
        );
        let mut foreign = sample("undo-check");
        foreign[KEY]["notice"]["account"] = json!("999999999999");
        assert!(read(foreign, &home()).is_err(), "of another account");
        let mut nested = sample("undo-check");
        nested[KEY]["notice"] = sample("undo-check");
        assert!(read(nested, &home()).is_err(), "no notice");
    }
}
