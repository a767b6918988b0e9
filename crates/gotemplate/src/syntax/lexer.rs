//! Splits a template into tokens by Go's rules.

use super::token::{Kind, Token};

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
const KEYWORDS: [&str; 10] = ["if", "else", "end", "range", "with", "define", "template", "block", "break", "continue"];

/// Returns the tokens of a template. The last token is `EndOfText` or `Bad`.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new() };
    let last = loop {
        match lexer.text_and_action() {
            Ok(true) => {}
            Ok(false) => break lexer.token(Kind::EndOfText, source.len(), source.len()),
            Err(bad) => break bad,
        }
    };
    lexer.tokens.push(last);
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token<'a>>,
}

/// Token of kind `Kind::Bad`, always the last token.
type Bad<'a> = Token<'a>;

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn token(&self, kind: Kind, start: usize, end: usize) -> Token<'a> {
        let spaced = self.source[..start].ends_with(SPACE);
        Token { kind, at: start, text: &self.source[start..end], spaced }
    }

    /// Adds the text up to `end` as a token, and moves to `end`.
    fn push(&mut self, kind: Kind, end: usize) {
        self.tokens.push(self.token(kind, self.at, end));
        self.at = end;
    }

    fn bad(&self, why: &'static str, start: usize, end: usize) -> Bad<'a> {
        self.token(Kind::Bad(why), start, end)
    }

    /// Reads the text up to the next `{{`, then the action that begins there. Returns `false` if there is no `{{`.
    fn text_and_action(&mut self) -> Result<bool, Bad<'a>> {
        let Some(length) = self.rest().find("{{") else {
            if !self.rest().is_empty() {
                self.push(Kind::Text, self.source.len());
            }
            return Ok(false);
        };
        let open = self.at + length;
        let inside = &self.source[open + 2..];
        let trims = inside.starts_with('-') && inside[1..].starts_with(SPACE);
        let text = &self.rest()[..length];
        let kept = if trims { text.trim_end_matches(SPACE) } else { text };
        if !kept.is_empty() {
            self.push(Kind::Text, self.at + kept.len());
        }
        self.at = open + if trims { 4 } else { 2 };
        if self.rest().starts_with("/*") {
            self.comment(open)?;
        } else {
            self.tokens.push(self.token(Kind::Open, open, open + 2));
            self.action(open)?;
        }
        Ok(true)
    }

    fn comment(&mut self, open: usize) -> Result<(), Bad<'a>> {
        let Some(length) = self.rest()[2..].find("*/") else {
            return Err(self.bad("this comment has no end, */}}", open, open));
        };
        self.at += length + 4;
        match self.closing() {
            Some(closing) => self.close(closing),
            None => return Err(self.bad("a comment is alone in its action, and ends with */}}", open, open)),
        }
        Ok(())
    }

    /// Returns the length of `}}` or ` -}}` at the current position, and `true` for ` -}}`.
    fn closing(&self) -> Option<(usize, bool)> {
        let rest = self.rest();
        if rest.starts_with("}}") {
            Some((2, false))
        } else if rest.starts_with(SPACE) && rest[1..].starts_with("-}}") {
            Some((4, true))
        } else {
            None
        }
    }

    fn close(&mut self, (length, trims): (usize, bool)) {
        self.at += length;
        if trims {
            self.at = self.source.len() - self.rest().trim_start_matches(SPACE).len();
        }
    }

    fn action(&mut self, open: usize) -> Result<(), Bad<'a>> {
        let mut parentheses = Vec::new();
        loop {
            if let Some(closing) = self.closing() {
                if let Some(parenthesis) = parentheses.pop() {
                    return Err(self.bad("this parenthesis is not closed", parenthesis, parenthesis));
                }
                self.tokens.push(self.token(Kind::Close, self.at, self.at + closing.0));
                self.close(closing);
                return Ok(());
            }
            let Some(next) = self.rest().chars().next() else {
                return Err(self.bad("this action has no end, }}", open, open));
            };
            let end = self.at + next.len_utf8();
            match next {
                ' ' | '\t' | '\r' | '\n' => self.at = end,
                '(' => {
                    parentheses.push(self.at);
                    self.push(Kind::LeftParenthesis, end);
                }
                ')' if parentheses.pop().is_none() => {
                    return Err(self.bad("this parenthesis closes none", self.at, self.at));
                }
                ')' => self.push(Kind::RightParenthesis, end),
                _ => self.word(next)?,
            }
        }
    }

    fn word(&mut self, first: char) -> Result<(), Bad<'a>> {
        let rest = self.rest();
        let end = self.at + first.len_utf8();
        let digit_follows = rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        match first {
            '=' => self.push(Kind::Assign, end),
            '|' => self.push(Kind::Pipe, end),
            ',' => self.push(Kind::Comma, end),
            ':' if rest.starts_with(":=") => self.push(Kind::Declare, self.at + 2),
            '"' => self.quoted(Kind::Quoted, "this string has no closing \" on its line")?,
            '\'' => self.quoted(Kind::Character, "this character has no closing '")?,
            '`' => match rest[1..].find('`') {
                Some(length) => self.push(Kind::Raw, end + length + 1),
                None => return Err(self.bad("this string has no closing `", self.at, self.at)),
            },
            '$' => self.name(Kind::Variable)?,
            '.' if !digit_follows => {
                let kind = if self.name_ends_at(end) { Kind::Dot } else { Kind::Field };
                self.name(kind)?;
            }
            '.' | '+' | '-' | '0'..='9' => self.number()?,
            _ if is_name(first) => self.name(Kind::Word)?,
            _ if first.is_ascii_graphic() => self.push(Kind::Other, end),
            _ => return Err(self.bad("unexpected character", self.at, end)),
        }
        Ok(())
    }

    /// Reads a string or character literal, which must end on the same line.
    fn quoted(&mut self, kind: Kind, why: &'static str) -> Result<(), Bad<'a>> {
        let quote = self.rest().chars().next();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            if Some(character) == quote {
                self.push(kind, self.at + offset + 1);
                return Ok(());
            }
            let escaped = if character == '\\' { characters.next().map(|(_, next)| next) } else { None };
            if character == '\n' || escaped == Some('\n') {
                break;
            }
        }
        Err(self.bad(why, self.at, self.at))
    }

    /// Reads a field (`.Name`), a variable (`$name`) or a word (`name`).
    fn name(&mut self, kind: Kind) -> Result<(), Bad<'a>> {
        let first = self.rest().chars().next().map_or(0, char::len_utf8);
        let length = self.rest()[first..].find(|c: char| !is_name(c)).unwrap_or(self.rest().len() - first);
        let end = self.at + first + length;
        if !self.name_ends_at(end) {
            let character = self.source[end..].chars().next().map_or(0, char::len_utf8);
            return Err(self.bad("unexpected character", end, end + character));
        }
        let kind = match (kind, &self.source[self.at..end]) {
            (Kind::Word, "true") => Kind::True,
            (Kind::Word, "false") => Kind::False,
            (Kind::Word, "nil") => Kind::Nil,
            (Kind::Word, word) if KEYWORDS.contains(&word) => Kind::Keyword,
            (kind, _) => kind,
        };
        self.push(kind, end);
        Ok(())
    }

    fn name_ends_at(&self, end: usize) -> bool {
        let rest = &self.source[end..];
        rest.is_empty()
            || rest.starts_with(SPACE)
            || rest.starts_with(['.', ',', '|', ':', '(', ')'])
            || rest.starts_with("}}")
    }

    /// Reads the characters of a number, which [`super::literal`] parses.
    fn number(&mut self) -> Result<(), Bad<'a>> {
        let bytes = self.rest().as_bytes();
        let mut length = 0;
        while let Some(byte) = bytes.get(length) {
            let sign = matches!(byte, b'+' | b'-');
            let sign_belongs = length == 0 || matches!(bytes[length - 1], b'e' | b'E' | b'p' | b'P');
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || sign && sign_belongs) {
                break;
            }
            length += 1;
        }
        let end = self.at + length;
        if self.source[end..].starts_with(is_name) {
            return Err(self.bad("this is no number:", self.at, end));
        }
        self.push(Kind::Number, end);
        Ok(())
    }
}

fn is_name(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}
