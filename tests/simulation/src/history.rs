//! What happened, line by line: written only when it is to be read, since most seeds are well.

use crate::clock::Clock;

/// The history of one seed.
#[derive(Debug)]
pub(crate) struct History {
    clock: Clock,
    /// `None`: nobody is going to read it.
    lines: Option<Vec<String>>,
}

impl History {
    pub(crate) fn new(clock: Clock, is_recorded: bool) -> Self {
        Self { clock, lines: is_recorded.then(Vec::new) }
    }

    /// Notes what happens now.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>10.3}  {}", self.clock.elapsed().as_secs_f64(), line()));
        }
    }

    /// The lines so far.
    pub(crate) fn text(&self) -> String {
        self.lines.iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}
