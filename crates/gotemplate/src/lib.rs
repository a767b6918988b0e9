//! Go's `text/template` with sprig's common functions, over JSON: the webhook templates of aws-node-termination-handler
//! (NTH) work here as they are. What each does is compared, in `tests/recorded`, with what the real ones made of it.
//!
//! ```
//! let template = gotemplate_json::Template::parse(r#"{"text":"{{ .Kind | lower }}: {{ .Pods | join ", " }}"}"#)?;
//! let data = serde_json::json!({"Kind": "SPOT_ITN", "Pods": ["cart-0", "cart-1"]});
//! assert_eq!(template.render(&data)?, r#"{"text":"spot_itn: cart-0, cart-1"}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is there
//!
//! * All of the syntax: `{{- trim -}}`, comments, pipelines, parentheses, variables, `if`, `else if`, `with`, `else with`,
//!   `range` over lists, maps (in the order of their keys) and numbers, `else`, `break`, `continue`, `define`, `template`,
//!   `block`; strings, raw strings, characters, numbers.
//! * Go's functions: `and` `or` `not` `len` `index` `slice` `print` `printf` `println` `html` `js` `urlquery` `eq` `ne` `lt`
//!   `le` `gt` `ge`; `printf` with all verbs and flags that apply to such values.
//! * sprig's for strings, lists, maps, numbers, defaults, JSON, base64, times and regular expressions: `docs/templates.md` has
//!   them all. A function that is not there is an error when the template is parsed.
//! * Times: JSON has none, so a string in RFC 3339, or as Go prints a time (`2026-11-21 03:12:44 +0000 UTC`), has a time's
//!   methods (`.StartTime.Format "15:04"`, `.Unix`, `.UTC`, …) and is taken by `date` and the like. It prints, also by
//!   `toJson`, as it is given.
//!
//! # Fields that are not there
//!
//! NTH renders a struct: a field that it does not have is an error. So it is here for the fields of the data itself, at `.`
//! and `$` and wherever a template hands them on: a misspelt name is found by the first rendering, and that can be done at
//! the start. Maps below, such as `.NodeLabels`, have what they have, and another key prints as `<no value>`, as in Go.
//!
//! # What differs from Go
//!
//! * `env`, `expandenv` and `getHostByName` are refused when the template is parsed. NTH has them; here they would put what
//!   the function's environment holds, secrets among it, into messages.
//! * Not there: `call`, complex and hexadecimal fractions, `printf`'s `%p` and `%#v` of lists, and of sprig random values,
//!   hashes, certificates, `set` and `unset`, semantic versions, paths, URLs.
//! * Stricter, when a template is parsed: unknown templates, arguments for what is no function, `nil` alone.
//! * Stricter, when it is rendered: a text that is no time or no duration, a regular expression that is none, an unknown time zone, numbers
//!   beyond 64 bits. Go would print the present time, `false`, UTC, and another number.
//! * Kinder: sprig's `slice` takes strings too, and the functions for maps take `.NodeLabels`.
//! * A cut that falls into a character (`trunc`, `substr`, `slice`, `abbrev` count bytes) leaves it out whole.
//! * There are bounds: see `bounds`. A message is no longer than 1 MiB, and a template that runs on and on is stopped.
//!
//! # Why our own
//!
//! Of the libraries, `gtmpl` has stood still since 2021, without `break`, `html` and `js`; `gotmpl` 0.6 takes a block without
//! its `{{ end }}` and drops what stands behind a stray one, finds unknown functions only while it renders, without a
//! place, and does not bound what a template makes. sprig would have been ours to write with either.
//!
//! # Layout
//!
//! `syntax` makes a tree of the text, `run` a message of the tree, with `funcs` and, for what Go does with values, `go`.

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

/// The names of all functions, for the page that lists them.
pub fn functions() -> impl Iterator<Item = &'static str> {
    funcs::all().map(|function| function.name)
}

/// A template that parsed.
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

    /// The message for these fields.
    pub fn render(&self, data: &Value) -> Result<String, RenderError> {
        run::render(&self.tree, data).map_err(|fault| fault.in_render(&self.source))
    }
}
