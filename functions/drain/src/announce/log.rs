//! The receipt as one wide line of the log.

use jiff::Timestamp;
use serde::Serialize;

use crate::receipt::{Ending, Receipt};

#[derive(Serialize)]
struct Line<'a> {
    timestamp: Timestamp,
    level: &'static str,
    message: String,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

/// The line. It has the timestamp and the level that Lambda needs to filter by level.
pub(super) fn line(receipt: &Receipt, now: Timestamp) -> String {
    let (level, ending) = match receipt.ending {
        Some(Ending::Drained) => ("INFO", "drained"),
        Some(Ending::Joined) => ("INFO", "joined"),
        Some(Ending::Ignored) => ("INFO", "ignored"),
        Some(Ending::Continued) => ("INFO", "continued"),
        Some(Ending::Done) => ("INFO", "done"),
        Some(Ending::Failed) => ("ERROR", "failed"),
        None => ("ERROR", "without an ending"),
    };
    let message = format!("{ending}: {}", receipt.reason);
    let line = Line { timestamp: now, level, message, receipt };
    serde_json::to_string(&line).expect("a receipt is plain data with string keys")
}
