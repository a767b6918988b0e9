//! Tokens of a template.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text outside of actions.
    Text,
    Open,
    Close,
    Dot,
    /// Field: `.Name`.
    Field,
    /// Variable: `$` or `$name`.
    Variable,
    /// A function's name.
    Word,
    Keyword,
    True,
    False,
    Nil,
    Number,
    /// Character literal: `'x'`.
    Character,
    /// String literal: `"text"`.
    Quoted,
    /// Raw string literal: `` `text` ``.
    Raw,
    Pipe,
    Declare,
    Assign,
    Comma,
    LeftParenthesis,
    RightParenthesis,
    /// A character without a meaning in Go's templates.
    Other,
    EndOfText,
    /// Unreadable text, with the reason. Always the last token.
    Bad(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) at: usize,
    pub(super) text: &'a str,
    /// White space precedes the token. `.A.B` is one argument, `.A .B` are two.
    pub(super) spaced: bool,
}
