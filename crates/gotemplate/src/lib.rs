#![doc = include_str!("../README.md")]
//!
//! ## Alternatives
//!
//! `gtmpl` has had no release since 2021, and lacks `break`, `html` and `js`. `gotmpl` 0.6 accepts a block without its
//! `{{ end }}`, drops the text after a stray one, finds unknown functions only while it renders, without a place, and has
//! no bounds. Neither has sprig's functions.
//!
//! ## Layout
//!
//! `syntax` parses the text to a tree, `run` renders the tree with the functions of `funcs` and Go's rules for values in `go`.
//! `bounds` has the limits, `budget` counts the work.

mod bounds;
mod budget;
mod fault;
mod funcs;
mod go;
mod output;
mod run;
mod syntax;

use serde_json::Value;

pub use fault::{ParseError, RenderError};

/// Names of all functions.
pub fn functions() -> impl Iterator<Item = &'static str> {
    funcs::all().map(|function| function.name)
}

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    source: String,
    tree: syntax::tree::Tree,
}

impl Template {
    /// Parses a template. Unknown functions, variables and templates are errors here.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        let tree = syntax::parse(source).map_err(|fault| fault.in_parse(source))?;
        Ok(Self { source: source.to_owned(), tree })
    }

    /// Renders the template. `.` and `$` are the data.
    pub fn render(&self, data: &Value) -> Result<String, RenderError> {
        run::render(&self.tree, data).map_err(|fault| fault.in_render(&self.source))
    }
}
