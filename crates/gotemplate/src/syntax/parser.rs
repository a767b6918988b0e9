//! State of the parser, such as the position and the variables in scope.

use std::collections::BTreeMap;

use super::token::{Kind, Token};
use super::tree::Node;
use super::{lexer, literal};
use crate::bounds;
use crate::fault::Fault;

pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    /// The variables in scope, outermost first.
    pub(super) variables: Vec<&'a str>,
    /// Number of `{{ range }}` blocks around the current token.
    pub(super) ranges: usize,
    depth: usize,
    pub(super) named: BTreeMap<String, Vec<Node>>,
    /// Offset and name of each `{{ template }}` call.
    pub(super) called: Vec<(usize, String)>,
}

/// Block whose `{{ end }}` has not been read yet.
#[derive(Clone, Copy)]
pub(super) struct Opened<'a> {
    pub(super) keyword: &'a str,
    pub(super) at: usize,
}

/// Token that ends a list of nodes, with the token's byte offset.
pub(super) enum Stop {
    EndOfText,
    End(usize),
    Else(usize),
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            tokens: lexer::tokens(source),
            next: 0,
            variables: vec!["$"],
            ranges: 0,
            depth: 0,
            named: BTreeMap::new(),
            called: Vec::new(),
        }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.tokens[self.next]
    }

    /// Returns the next token and advances, but never past the last token.
    pub(super) fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    pub(super) fn back_to(&mut self, token: usize) {
        self.next = token;
    }

    pub(super) fn position(&self) -> usize {
        self.next
    }

    pub(super) fn deeper(&mut self, at: usize) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > bounds::DEPTH {
            return Err(Fault::new(
                at,
                format!("more than {} blocks and parentheses within each other", bounds::DEPTH),
            ));
        }
        Ok(())
    }

    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn close(&mut self, context: &str) -> Result<(), Fault> {
        let token = self.take();
        match token.kind {
            Kind::Close => Ok(()),
            _ => Err(unexpected(token, context)),
        }
    }
}

/// Returns the text of a quoted or raw string.
pub(super) fn string(token: Token<'_>) -> Result<String, Fault> {
    match token.kind {
        Kind::Raw => Ok(literal::raw(token.text)),
        _ => literal::quoted(token.text).map_err(|message| Fault::new(token.at, message)),
    }
}

/// Returns the error for a token that is not allowed in this context.
pub(super) fn unexpected(token: Token<'_>, context: &str) -> Fault {
    let message = match token.kind {
        Kind::Bad(why) if token.text.is_empty() => why.to_owned(),
        Kind::Bad(why) => format!("{why} {}", token.text),
        Kind::Close => format!("unexpected end of the action in {context}"),
        _ => format!("unexpected \"{}\" in {context}", token.text),
    };
    Fault::new(token.at, message)
}
