//! Parses the text of a template to a syntax tree.

mod blocks;
mod lexer;
mod literal;
mod named;
mod parser;
mod pipeline;
mod token;
pub(crate) mod tree;

pub(crate) use blocks::parse;
