#![doc = include_str!("../README.md")]
//!
//! ## Why another one
//!
//! Of the libraries for Rust, `gtmpl` has stood still since 2021, without `break`, `html` and `js`; `gotmpl` 0.6 takes a block
//! without its `{{ end }}` and drops what stands behind a stray one, finds unknown functions only while it renders, without a
//! place, and does not bound what a template makes. Neither has sprig's functions.
//!
//! ## Layout
//!
//! `syntax` makes a tree of the text, `run` a message of the tree, with `funcs` and, for what Go does with values, `go`.
//! `bounds` says how much each may take, and `budget` counts it.

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

/// The names of all functions that a template may call.
pub fn functions() -> impl Iterator<Item = &'static str> {
    funcs::all().map(|function| function.name)
}

/// A template that was read, ready to be rendered.
#[derive(Debug)]
pub struct Template {
    source: String,
    tree: syntax::tree::Tree,
}

impl Template {
    /// Reads a template. Names of functions, variables and templates that nobody knows are errors here.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        let tree = syntax::parse(source).map_err(|fault| fault.in_parse(source))?;
        Ok(Self { source: source.to_owned(), tree })
    }

    /// Renders the template over the data, whose fields are those of `.` and `$`.
    pub fn render(&self, data: &Value) -> Result<String, RenderError> {
        run::render(&self.tree, data).map_err(|fault| fault.in_render(&self.source))
    }
}
