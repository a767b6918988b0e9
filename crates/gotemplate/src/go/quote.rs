//! Quotes strings and characters as Go's `%q` does.

/// Returns a string in double quotes, as `%q` does.
pub(crate) fn string(text: &str) -> String {
    between(text, '"', is_print)
}

/// Returns a string in double quotes. Escapes non-ASCII characters, as `%+q` does.
pub(crate) fn ascii(text: &str) -> String {
    between(text, '"', |character| character.is_ascii() && is_print(character))
}

/// Returns a character in single quotes, as `%q` does.
pub(crate) fn character(character: char) -> String {
    between(character.encode_utf8(&mut [0; 4]), '\'', is_print)
}

/// Returns a character in single quotes. Escapes a non-ASCII character, as `%+q` does.
pub(crate) fn ascii_character(character: char) -> String {
    between(character.encode_utf8(&mut [0; 4]), '\'', |character| character.is_ascii() && is_print(character))
}

/// Returns `true` if the character is printable, as Go's `unicode.IsPrint` does.
pub(crate) fn is_print(character: char) -> bool {
    if character.is_ascii() {
        return character == ' ' || character.is_ascii_graphic();
    }
    // `escape_debug` escapes the same classes. The `a` is needed because a combining mark is kept only after a character.
    format!("a{character}").escape_debug().count() == 2
}

fn between(text: &str, quote: char, keeps: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            _ if character == quote => out.extend(['\\', quote]),
            _ if keeps(character) => out.push(character),
            _ => out.push_str(&escape(character)),
        }
    }
    out.push(quote);
    out
}

fn escape(character: char) -> String {
    match u32::from(character) {
        code @ 0..0x80 => format!("\\x{code:02x}"),
        code @ 0x80..0x1_0000 => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}
