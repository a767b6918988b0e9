//! Tokens of a template.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text outside of actions.
    Text,
    Open,
    Close,
    Dot,
    /// Field, such as `.Name`.
    Field,
    /// Variable, such as `$` or `$name`.
    Variable,
    /// Name of a function.
    Word,
    Keyword,
    True,
    False,
    Nil,
    Number,
    /// Character literal, such as `'x'`.
    Character,
    /// String literal, such as `"text"`.
    Quoted,
    /// Raw string literal, such as `` `text` ``.
    Raw,
    Pipe,
    Declare,
    Assign,
    Comma,
    LeftParenthesis,
    RightParenthesis,
    /// Printable ASCII character without a meaning in templates.
    Other,
    EndOfText,
    /// Invalid text, with an error message. Always the last token.
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
