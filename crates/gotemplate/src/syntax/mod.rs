//! Parses a template's text to a tree.

mod blocks;
mod lexer;
mod literal;
mod named;
mod parser;
mod pipeline;
mod token;
pub(crate) mod tree;

pub(crate) use blocks::parse;
