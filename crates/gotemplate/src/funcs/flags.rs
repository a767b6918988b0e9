//! Flags, width and precision of a `printf` directive, such as `-8.2` in `%-8.2f`.

use crate::output::Output;

#[expect(clippy::struct_excessive_bools, reason = "Go's five flags, each of which is there or not")]
#[derive(Debug, Default, Clone)]
pub(super) struct Flags {
    pub(super) plus: bool,
    pub(super) left: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// Flag `#` in `%#v`, which writes the value in Go syntax.
    pub(super) go_syntax: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

impl Flags {
    pub(super) fn set(&mut self, flag: u8) {
        match flag {
            b'+' => self.plus = true,
            b'-' => self.left = true,
            b'#' => self.sharp = true,
            b' ' => self.space = true,
            _ => self.zero = true,
        }
    }

    /// Sets the width. A negative width aligns the text to the left.
    pub(super) fn set_width(&mut self, width: i64) {
        self.left |= width < 0;
        self.width = usize::try_from(width.unsigned_abs()).ok();
    }

    /// Adapts the flags to the verb. For `v`, removes `+` and replaces `#` with `go_syntax`.
    pub(super) fn for_verb(mut self, verb: char) -> Self {
        if verb == 'v' {
            self.go_syntax = std::mem::take(&mut self.sharp);
            self.plus = false;
        }
        self
    }

    pub(super) fn without_zeros(&self) -> Self {
        Self { zero: false, ..self.clone() }
    }

    /// Returns `true` if the value is padded with zeros on the left.
    pub(super) fn pads_with_zeros(&self) -> bool {
        self.zero && !self.left
    }

    pub(super) fn sign(&self, negative: bool) -> &'static str {
        match self {
            _ if negative => "-",
            Self { plus: true, .. } => "+",
            Self { space: true, .. } => " ",
            _ => "",
        }
    }

    /// Truncates the text to `precision` characters.
    pub(super) fn cut<'a>(&self, text: &'a str) -> &'a str {
        let end = self.precision.and_then(|characters| text.char_indices().nth(characters));
        end.map_or(text, |(end, _)| &text[..end])
    }

    /// Appends the text to `out`, padded to `width` characters.
    pub(super) fn pad(&self, out: &mut Output, text: &str) -> Result<(), String> {
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        let padding = if self.pads_with_zeros() { '0' } else { ' ' };
        if self.left {
            out.push(text)?;
            out.push_times(padding, missing)
        } else {
            out.push_times(padding, missing)?;
            out.push(text)
        }
    }
}
