//! Syntax tree of a template. Each field `at` is a byte offset in the template's text.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::funcs::Function;

/// Body of a template, and the named templates.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) body: Vec<Node>,
    pub(crate) named: BTreeMap<String, Vec<Node>>,
}

#[derive(Debug)]
pub(crate) enum Node {
    Text(String),
    /// Action `{{ pipeline }}`. If the pipeline sets no variables, the action prints its value.
    Action(Pipeline),
    Branch(Branch),
    /// Call of a template by `{{ template }}` or `{{ block }}`.
    Call {
        at: usize,
        name: String,
        argument: Option<Pipeline>,
    },
    Break,
    Continue,
}

/// An `{{ if }}`, `{{ with }}` or `{{ range }}` block.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) keyword: Keyword,
    pub(crate) pipeline: Pipeline,
    pub(crate) body: Vec<Node>,
    pub(crate) otherwise: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    If,
    With,
    Range,
}

/// Pipeline such as `$name := command | command`.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) at: usize,
    pub(crate) names: Vec<String>,
    pub(crate) binding: Binding,
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    /// `:=`
    Declare,
    /// `=`
    Assign,
}

/// Function or method with its arguments, or a value.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) operand: Operand,
    pub(crate) arguments: Vec<Operand>,
}

/// Value and its fields, such as `$x.Field`. The base of `.Field` is `.`.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) at: usize,
    pub(crate) base: Base,
    pub(crate) fields: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Base {
    Dot,
    Variable(String),
    Function(&'static Function),
    /// A string, number, boolean or `nil`.
    Literal(Value),
    Pipeline(Pipeline),
}
