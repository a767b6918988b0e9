//! A text that is being written.

use crate::bounds;

/// A text that is refused as soon as it is larger than a value may be.
#[derive(Debug, Default)]
pub(crate) struct Output(String);

impl Output {
    /// Appends a text.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), String> {
        bounds::room(self.0.len().saturating_add(text.len()))?;
        self.0.push_str(text);
        Ok(())
    }

    /// Appends one character so many times.
    pub(crate) fn push_times(&mut self, character: char, count: usize) -> Result<(), String> {
        bounds::room(self.0.len().saturating_add(count.saturating_mul(character.len_utf8())))?;
        self.0.extend(std::iter::repeat_n(character, count));
        Ok(())
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The whole text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}
