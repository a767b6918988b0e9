#![doc = include_str!("../README.md")]
//!
//! ## Alternatives
//!
//! `gtmpl` has had no release since 2021, and lacks `break`, `html` and `js`. `gotmpl` 0.6 accepts a block without
//! `{{ end }}`, and does not limit memory or time. Neither crate has sprig's functions.
//!
//! ## Layout
//!
//! `syntax` parses a template to a tree, and `run` renders the tree. `funcs` has the functions, `go` has Go's rules for values.
//! `bounds` has the limits, and `budget` enforces them for each rendering.

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

/// Returns the names of all functions that templates can call.
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
    /// Parses a template. Fails for syntax errors, and for unknown functions, variables and templates.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        let tree = syntax::parse(source).map_err(|fault| fault.in_parse(source))?;
        Ok(Self { source: source.to_owned(), tree })
    }

    /// Renders the template with `data` as `.` and `$`.
    pub fn render(&self, data: &Value) -> Result<String, RenderError> {
        run::render(&self.tree, data).map_err(|fault| fault.in_render(&self.source))
    }
}
