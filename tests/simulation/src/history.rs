//! History of a world, recorded only on request.

use crate::clock::Clock;

#[derive(Debug)]
pub(crate) struct History {
    clock: Clock,
    lines: Option<Vec<String>>,
}

impl History {
    pub(crate) fn new(clock: Clock, is_recorded: bool) -> Self {
        Self { clock, lines: is_recorded.then(Vec::new) }
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>10.3}  {}", self.clock.elapsed().as_secs_f64(), line()));
        }
    }

    pub(crate) fn text(&self) -> String {
        self.lines.iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}
