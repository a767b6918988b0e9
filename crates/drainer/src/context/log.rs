//! The function's log, as far as its wide lines go: the receipt and its metrics.

use std::fmt;
use std::io::Write as _;

/// Where wide lines are written.
pub struct Log(Box<dyn Fn(&str) + Send + Sync>);

impl Log {
    /// Hands each line to `write`.
    pub(crate) fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Box::new(write))
    }

    /// Lambda's log.
    pub(crate) fn stdout() -> Self {
        Self::new(|line| {
            // A log that cannot be written is not worth failing a drain for, and nobody could be told.
            let _ = writeln!(std::io::stdout().lock(), "{line}");
        })
    }

    /// Writes a line.
    pub fn write(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}
