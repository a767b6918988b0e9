//! Go's `fmt.Sprintf`: the format's directives, and which argument each takes.

use serde_json::Value;

use super::verb::{self, Flags, complaint, described};
use crate::bounds;

/// Go takes no larger number for a width or a precision.
const LARGEST: u64 = 1_000_000;

/// What is wrong with a format or an argument is printed in place, as Go does: `%!d(string=web-0)`.
pub(super) fn format(format: &str, arguments: &[&Value]) -> Result<String, String> {
    let mut directives =
        Directives { rest: format, arguments, next: 0, reordered: false, bad_index: false, out: String::new() };
    while let Some(start) = directives.rest.find('%') {
        directives.out.push_str(&directives.rest[..start]);
        directives.rest = &directives.rest[start + 1..];
        directives.directive()?;
        bounds::room(directives.out.len())?;
    }
    let Directives { rest, next, reordered, mut out, .. } = directives;
    out.push_str(rest);
    if !reordered && next < arguments.len() {
        let extra: Vec<String> = arguments[next..].iter().map(|value| described(value)).collect();
        out = out + "%!(EXTRA " + &extra.join(", ") + ")";
    }
    Ok(out)
}

struct Directives<'a> {
    rest: &'a str,
    arguments: &'a [&'a Value],
    /// The argument that the next directive takes.
    next: usize,
    /// A directive named its argument by number, so there is no telling which are left over.
    reordered: bool,
    /// The number of an argument that is none, or stands where it does not belong.
    bad_index: bool,
    out: String,
}

impl<'a> Directives<'a> {
    /// What follows a `%`: flags, width, precision, each argument's number before what takes it, and the verb.
    fn directive(&mut self) -> Result<(), String> {
        self.bad_index = false;
        let flags = self.flags();
        bounds::room(flags.width.unwrap_or(0).max(flags.precision.unwrap_or(0)))?;
        let Some(verb) = self.rest.chars().next() else {
            self.out.push_str("%!(NOVERB)");
            return Ok(());
        };
        self.rest = &self.rest[verb.len_utf8()..];
        if verb == '%' {
            self.out.push('%');
        } else if self.bad_index {
            self.out.push_str(&complaint(verb, "BADINDEX"));
        } else if let Some(value) = self.take() {
            verb::write(&mut self.out, value, verb, &flags);
        } else {
            self.out.push_str(&complaint(verb, "MISSING"));
        }
        Ok(())
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Some(flag) = self.rest.bytes().next().filter(|byte| b"+-# 0".contains(byte)) {
            flags.set(flag);
            self.rest = &self.rest[1..];
        }
        let mut numbered = self.index();
        if self.star() {
            numbered = false;
            match self.number_argument() {
                Some(width) => flags.set_width(width),
                None => self.out.push_str("%!(BADWIDTH)"),
            }
        } else {
            flags.width = self.number();
            self.bad_index |= numbered && flags.width.is_some();
        }
        if self.rest.len() > 1 && self.rest.starts_with('.') {
            self.bad_index |= numbered;
            self.rest = &self.rest[1..];
            numbered = self.index();
            if self.star() {
                numbered = false;
                flags.precision = self.number_argument().and_then(|precision| usize::try_from(precision).ok());
                if flags.precision.is_none() {
                    self.out.push_str("%!(BADPREC)");
                }
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !numbered {
            self.index();
        }
        flags
    }

    fn take(&mut self) -> Option<&'a Value> {
        let value = self.arguments.get(self.next).copied();
        self.next += usize::from(value.is_some());
        value
    }

    /// `[2]`: the second argument is the next one. Whether there was such a number.
    fn index(&mut self) -> bool {
        if !self.rest.starts_with('[') {
            return false;
        }
        self.reordered = true;
        let Some((number, rest)) = self.rest[1..].split_once(']') else {
            self.rest = &self.rest[1..];
            self.bad_index = true;
            return false;
        };
        self.rest = rest;
        match number.parse::<usize>() {
            Ok(number) if (1..=self.arguments.len()).contains(&number) => self.next = number - 1,
            _ => self.bad_index = true,
        }
        true
    }

    /// `*`: the next argument is the number.
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
