//! Parses literals of strings, characters and numbers by Go's rules.

use serde_json::Value;

/// Returns the text of a `"text"` literal, with escape sequences resolved.
pub(super) fn quoted(literal: &str) -> Result<String, String> {
    unescape(inner(literal), '"')
}

/// Returns the text of a `` `text` `` literal. As in Go, carriage returns are dropped.
pub(super) fn raw(literal: &str) -> String {
    inner(literal).replace('\r', "")
}

/// Returns the code point of the character in an `'x'` literal.
pub(super) fn character(literal: &str) -> Result<Value, String> {
    let text = unescape(inner(literal), '\'')?;
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Ok(Value::from(u32::from(character))),
        _ => Err(format!("{literal} is not one character")),
    }
}

/// Parses a number literal such as `-1`, `1_000`, `0x1f`, `017`, `0b1`, `1.5` or `1e3`.
pub(super) fn number(literal: &str) -> Result<Value, String> {
    let no_number = || format!("this is no number: {literal}");
    let (negative, digits) = match literal.as_bytes().first() {
        Some(b'-') => (true, &literal[1..]),
        Some(b'+') => (false, &literal[1..]),
        _ => (false, literal),
    };
    let plain = digits.replace('_', "");
    let lower = plain.to_ascii_lowercase();
    let (radix, integer) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] if lower.bytes().all(|byte| byte.is_ascii_digit()) => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    // An underscore must follow a digit or a prefix.
    let not_at: &[&str] = if radix == 10 { &["__", "_.", "._", "_e", "_E", "e_", "E_"] } else { &["__"] };
    let misplaced = digits.starts_with('_') || digits.ends_with('_') || not_at.iter().any(|pair| digits.contains(pair));
    if misplaced || integer.starts_with(['+', '-']) {
        return Err(no_number());
    }
    if let Ok(value) = i128::from_str_radix(integer, radix) {
        let value = if negative { -value } else { value };
        return i64::try_from(value).map(Value::from).map_err(|_| format!("{literal} is too large a number"));
    }
    match plain.parse::<f64>() {
        Ok(value) if value.is_finite() && lower.contains(['.', 'e']) => {
            Ok(Value::from(if negative { -value } else { value }))
        }
        _ => Err(no_number()),
    }
}

fn inner(literal: &str) -> &str {
    literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default()
}

fn unescape(text: &str, quote: char) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        let escape = rest.next();
        let unescaped = match escape {
            Some('a') => Some('\u{7}'),
            Some('b') => Some('\u{8}'),
            Some('f') => Some('\u{c}'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('v') => Some('\u{b}'),
            Some('\\') => Some('\\'),
            Some(other) if other == quote => Some(other),
            Some('x') => code(&mut rest, 2, 16, String::new()),
            Some('u') => code(&mut rest, 4, 16, String::new()),
            Some('U') => code(&mut rest, 8, 16, String::new()),
            Some(digit @ '0'..='7') => code(&mut rest, 2, 8, digit.to_string()),
            _ => None,
        };
        match unescaped {
            Some(character) => out.push(character),
            None => return Err(format!("unknown escape \\{} in a string", escape.map_or(String::new(), String::from))),
        }
    }
    Ok(out)
}

/// Reads the digits of an escape sequence such as `\u00e9`, and returns the character.
fn code(rest: &mut std::str::Chars<'_>, digits: usize, radix: u32, start: String) -> Option<char> {
    // In Go, `\xff` and `\377` are a byte; here, the character U+00FF.
    let length = start.len() + digits;
    let text = rest.by_ref().take(digits).fold(start, |mut text, digit| {
        text.push(digit);
        text
    });
    let is_number = text.len() == length && text.chars().all(|digit| digit.is_digit(radix));
    let number = u32::from_str_radix(&text, radix).ok().filter(|number| is_number && (radix == 16 || *number <= 0o377));
    number.and_then(char::from_u32)
}
