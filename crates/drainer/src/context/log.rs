//! Writes receipts and metrics to the log.

use std::fmt;
use std::io::Write as _;

/// Destination of log lines with receipts and metrics.
pub struct Log(Box<dyn Fn(&str) + Send + Sync>);

impl Log {
    pub(crate) fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Box::new(write))
    }

    pub(crate) fn stdout() -> Self {
        Self::new(|line| {
            // Best effort: there is no place for an error.
            let _ = writeln!(std::io::stdout().lock(), "{line}");
        })
    }

    pub fn write(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}
