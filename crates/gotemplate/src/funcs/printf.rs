//! Implements Go's `fmt.Sprintf` for the template function `printf`.

use serde_json::Value;

use super::arguments::Arguments;
use super::flags::Flags;
use super::verb::{self, described, error_text};
use crate::bounds;
use crate::output::Output;

/// Maximum width or precision of a directive, as in Go.
const LARGEST: u64 = 1_000_000;
/// Cost of formatting one directive such as `%d`, in bytes of [`bounds::WORK`].
const DIRECTIVE: usize = 8 * bounds::STEP;

/// Formats the arguments. As in Go, a wrong argument becomes text such as `%!d(string=web-0)`.
pub(super) fn format(arguments: &Arguments<'_>) -> Result<String, String> {
    let values: Vec<&Value> = arguments.from(1).collect();
    let mut directives = Directives {
        rest: arguments.text(0)?,
        budget: arguments,
        arguments: &values,
        next: 0,
        reordered: false,
        bad_index: false,
        out: Output::default(),
    };
    while let Some(start) = directives.rest.find('%') {
        directives.out.push(&directives.rest[..start])?;
        directives.rest = &directives.rest[start + 1..];
        directives.directive()?;
    }
    let Directives { rest, next, reordered, mut out, .. } = directives;
    out.push(rest)?;
    if !reordered && next < values.len() {
        for (index, value) in values[next..].iter().enumerate() {
            out.push(if index == 0 { "%!(EXTRA " } else { ", " })?;
            out.push(&described(value))?;
        }
        out.push(")")?;
    }
    Ok(out.into_text())
}

struct Directives<'a> {
    rest: &'a str,
    budget: &'a Arguments<'a>,
    arguments: &'a [&'a Value],
    /// Index of the next argument to format.
    next: usize,
    /// The format contains an argument index such as `[2]`, so unused arguments are not reported.
    reordered: bool,
    /// The current directive has an invalid or misplaced argument index.
    bad_index: bool,
    out: Output,
}

impl<'a> Directives<'a> {
    /// Reads one directive after its `%`, and appends the formatted argument to `out`.
    fn directive(&mut self) -> Result<(), String> {
        self.budget.charge(DIRECTIVE)?;
        self.bad_index = false;
        let flags = self.flags()?;
        let Some(verb) = self.rest.chars().next() else {
            return self.out.push("%!(NOVERB)");
        };
        self.rest = &self.rest[verb.len_utf8()..];
        if verb == '%' {
            self.out.push("%")
        } else if self.bad_index {
            self.out.push(&error_text(verb, "BADINDEX"))
        } else if let Some(value) = self.take() {
            // The type of a list or map depends on all of its items.
            self.budget.charge(match value {
                Value::Array(items) => items.len(),
                Value::Object(entries) => entries.len(),
                _ => 0,
            })?;
            verb::write(&mut self.out, value, verb, &flags.for_verb(verb))
        } else {
            self.out.push(&error_text(verb, "MISSING"))
        }
    }

    fn flags(&mut self) -> Result<Flags, String> {
        let mut flags = Flags::default();
        while let Some(flag) = self.rest.bytes().next().filter(|byte| b"+-# 0".contains(byte)) {
            flags.set(flag);
            self.rest = &self.rest[1..];
        }
        let mut numbered = self.index()?;
        if self.star() {
            numbered = false;
            match self.number_argument() {
                Some(width) => flags.set_width(width),
                None => self.out.push("%!(BADWIDTH)")?,
            }
        } else {
            flags.width = self.number();
            self.bad_index |= numbered && flags.width.is_some();
        }
        if self.rest.len() > 1 && self.rest.starts_with('.') {
            self.bad_index |= numbered;
            self.rest = &self.rest[1..];
            numbered = self.index()?;
            if self.star() {
                numbered = false;
                flags.precision = self.number_argument().and_then(|precision| usize::try_from(precision).ok());
                if flags.precision.is_none() {
                    self.out.push("%!(BADPREC)")?;
                }
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !numbered {
            self.index()?;
        }
        Ok(flags)
    }

    fn take(&mut self) -> Option<&'a Value> {
        let value = self.arguments.get(self.next).copied();
        self.next += usize::from(value.is_some());
        value
    }

    /// Reads an argument index such as `[2]`, if present. Returns `true` if an index was read.
    fn index(&mut self) -> Result<bool, String> {
        if !self.rest.starts_with('[') {
            return Ok(false);
        }
        self.reordered = true;
        // Each directive may search to the end of the format.
        self.budget.charge(self.rest.find(']').unwrap_or(self.rest.len()))?;
        let Some((number, rest)) = self.rest[1..].split_once(']') else {
            self.rest = &self.rest[1..];
            self.bad_index = true;
            return Ok(false);
        };
        self.rest = rest;
        match number.parse::<usize>() {
            Ok(number) if (1..=self.arguments.len()).contains(&number) => self.next = number - 1,
            _ => self.bad_index = true,
        }
        Ok(true)
    }

    /// Reads a `*`, if present. Returns `true` if a `*` was read.
    fn star(&mut self) -> bool {
        let rest = self.rest.strip_prefix('*');
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn number_argument(&mut self) -> Option<i64> {
        self.take().and_then(Value::as_i64).filter(|number| number.unsigned_abs() <= LARGEST)
    }

    fn number(&mut self) -> Option<usize> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(length);
        self.rest = rest;
        number.parse().ok().filter(|number| *number as u64 <= LARGEST)
    }
}
