//! Faults of a template with their place: a byte offset inside the crate, line and column in public.

/// Error of a template that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// Description of the fault: lower case, no full stop.
    pub message: String,
}

/// Error of a rendering.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct RenderError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// Description of the fault: lower case, no full stop.
    pub message: String,
}

/// An error at a byte offset of the template's text.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// Returns a function that turns a message into a fault at this offset.
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

/// Line and column of a byte offset, both counted from 1.
fn place(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let start_of_line = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start_of_line..].chars().count() + 1)
}
