//! Builds text with a limit on its size.

use crate::bounds;

/// Text under construction. Appending fails if the text would exceed [`bounds::SIZE`].
#[derive(Debug, Default)]
pub(crate) struct Output(String);

impl Output {
    pub(crate) fn push(&mut self, text: &str) -> Result<(), String> {
        bounds::check_size(self.0.len().saturating_add(text.len()))?;
        self.0.push_str(text);
        Ok(())
    }

    pub(crate) fn push_times(&mut self, character: char, count: usize) -> Result<(), String> {
        bounds::check_size(self.0.len().saturating_add(count.saturating_mul(character.len_utf8())))?;
        self.0.extend(std::iter::repeat_n(character, count));
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}
