//! Tells people: each file here is a view of the receipt.

mod log;
mod metrics;

use std::io::Write as _;

use jiff::Timestamp;

use crate::receipt::Receipt;

/// Writes the receipt and its metrics to the log.
pub(crate) fn announce(receipt: &Receipt, namespace: &str, now: Timestamp) {
    let lines = [Some(log::line(receipt, now)), metrics::line(receipt, namespace, now)];
    let mut out = std::io::stdout().lock();
    for line in lines.into_iter().flatten() {
        // A log that cannot be written is not worth failing a drain for, and nobody could be told.
        let _ = writeln!(out, "{line}");
    }
}
