//! Syntax tree of a template. Each `at` is a byte offset in the template's text, for errors.

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
    /// `{{ pipeline }}`: printed, unless it sets variables.
    Action(Pipeline),
    Branch(Branch),
    /// `{{ template "name" pipeline }}` or a `{{ block }}`.
    Call {
        at: usize,
        name: String,
        argument: Option<Pipeline>,
    },
    Break,
    Continue,
}

/// Condition, body and `{{ else }}` of a block.
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

/// `$names := command | command`.
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

/// Function or value, with its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) operand: Operand,
    pub(crate) arguments: Vec<Operand>,
}

/// Value with its fields: `base.Field.Field`. For `.Field`, the base is `.`.
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
