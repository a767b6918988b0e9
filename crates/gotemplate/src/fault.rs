//! Errors in a template, with the position in the template's text.

/// Error from parsing a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Line of the error in the template, counted from 1.
    pub line: usize,
    /// Column of the error in characters, counted from 1.
    pub column: usize,
    /// Description of the error: lower case, no full stop.
    pub message: String,
}

/// Error from rendering a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct RenderError {
    /// Line of the error in the template, counted from 1.
    pub line: usize,
    /// Column of the error in characters, counted from 1.
    pub column: usize,
    /// Description of the error: lower case, no full stop.
    pub message: String,
}

/// Error at a byte offset in the template's text.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// Returns a function that turns a message into a fault at this byte offset.
    pub(crate) fn at(at: usize) -> impl FnOnce(String) -> Self {
        move |message| Self::new(at, message)
    }

    pub(crate) fn in_parse(self, source: &str) -> ParseError {
        let (line, column) = place(source, self.at);
        ParseError { line, column, message: self.message }
    }

    pub(crate) fn in_render(self, source: &str) -> RenderError {
        let (line, column) = place(source, self.at);
        RenderError { line, column, message: self.message }
    }
}

/// Returns the line and column of a byte offset, both counted from 1.
fn place(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let start_of_line = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start_of_line..].chars().count() + 1)
}
