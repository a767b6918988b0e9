//! Flags, width and precision of a `printf` directive, between `%` and the verb.

use crate::output::Output;

#[expect(clippy::struct_excessive_bools, reason = "Go's five flags, each of which is there or not")]
#[derive(Debug, Default, Clone)]
pub(super) struct Flags {
    pub(super) plus: bool,
    pub(super) left: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// Flag `#` of the verb `v`: the value is written in Go syntax.
    pub(super) spelled: bool,
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

    /// Sets the width. A negative width aligns to the left.
    pub(super) fn set_width(&mut self, width: i64) {
        self.left |= width < 0;
        self.width = usize::try_from(width.unsigned_abs()).ok();
    }

    /// Changes the meaning of flags for the verb `v`: `+` is no sign, and `#` means Go syntax instead of a prefix.
    pub(super) fn for_verb(mut self, verb: char) -> Self {
        if verb == 'v' {
            self.spelled = std::mem::take(&mut self.sharp);
            self.plus = false;
        }
        self
    }

    pub(super) fn without_zeros(&self) -> Self {
        Self { zero: false, ..self.clone() }
    }

    /// Returns `true` if zeros pad the value on the left. A value that is aligned to the left is padded with spaces.
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

    /// Cuts the text to the precision, in characters.
    pub(super) fn cut<'a>(&self, text: &'a str) -> &'a str {
        let end = self.precision.and_then(|characters| text.char_indices().nth(characters));
        end.map_or(text, |(end, _)| &text[..end])
    }

    /// Appends the text, padded to the width in characters.
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
