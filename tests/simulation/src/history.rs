//! What happened, line by line: written only when it is to be read, since most seeds are well.

use std::time::Duration;

/// The history of one seed.
#[derive(Debug)]
pub(crate) struct History {
    is_recorded: bool,
    lines: Vec<String>,
}

impl History {
    pub(crate) fn new(is_recorded: bool) -> Self {
        Self { is_recorded, lines: Vec::new() }
    }

    /// Notes what happened so long after the world began.
    pub(crate) fn note(&mut self, at: Duration, line: impl FnOnce() -> String) {
        if self.is_recorded {
            self.lines.push(format!("{:>10.3}  {}", at.as_secs_f64(), line()));
        }
    }

    /// The lines so far.
    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }
}
