//! Functions that templates can call: Go's built-in functions, and common functions of sprig.

mod arguments;
mod builtin;
mod compare;
mod convert;
mod dates;
mod defaults;
mod dicts;
mod escape;
mod flags;
mod lists;
mod numbers;
mod printf;
mod regex;
mod text;
mod trim;
mod verb;

pub(crate) use arguments::Arguments;
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    least: usize,
    most: Option<usize>,
    pub(crate) body: Body,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// Function `and`, which skips the arguments after the first empty one.
    And,
    Or,
    Plain(fn(&Arguments<'_>) -> Result<Value, String>),
}

impl Function {
    pub(crate) fn check_count(&self, count: usize) -> Result<(), String> {
        let Self { name, least, most, .. } = self;
        let wanted = match most {
            _ if count >= *least && most.is_none_or(|most| count <= most) => return Ok(()),
            Some(1) => "1 argument".to_owned(),
            Some(most) if least == most => format!("{least} arguments"),
            Some(most) => format!("{least} to {most} arguments"),
            None => format!("{least} or more arguments"),
        };
        Err(format!("{name} takes {wanted}, and has {count}"))
    }
}

/// Defines a function that takes exactly `count` arguments.
const fn exactly(name: &'static str, count: usize, make: fn(&Arguments<'_>) -> Result<Value, String>) -> Function {
    Function { name, least: count, most: Some(count), body: Body::Plain(make) }
}

/// Defines a function that takes at least `count` arguments.
const fn at_least(name: &'static str, count: usize, make: fn(&Arguments<'_>) -> Result<Value, String>) -> Function {
    Function { name, least: count, most: None, body: Body::Plain(make) }
}

static AND_OR: [Function; 2] = [
    Function { name: "and", least: 1, most: None, body: Body::And },
    Function { name: "or", least: 1, most: None, body: Body::Or },
];

/// Sprig functions that are not available to templates, with the reason.
const REFUSED: [(&str, &str); 3] = [
    ("env", "it would put the environment of the process, and its secrets, into messages"),
    ("expandenv", "it would put the environment of the process, and its secrets, into messages"),
    ("getHostByName", "it would ask the network while the message is written"),
];

pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    let tables: [&'static [Function]; 13] = [
        &AND_OR,
        &builtin::FUNCTIONS,
        &compare::FUNCTIONS,
        &convert::FUNCTIONS,
        &dates::FUNCTIONS,
        &defaults::FUNCTIONS,
        &dicts::FUNCTIONS,
        &escape::FUNCTIONS,
        &lists::FUNCTIONS,
        &numbers::FUNCTIONS,
        &regex::FUNCTIONS,
        &text::FUNCTIONS,
        &trim::FUNCTIONS,
    ];
    tables.into_iter().flatten()
}

pub(crate) fn find(name: &str) -> Result<&'static Function, String> {
    let known = all().find(|function| function.name == name);
    known.ok_or_else(|| match REFUSED.iter().find(|(refused, _)| *refused == name) {
        Some((_, why)) => format!("the function {name:?} is not available here: {why}"),
        None => format!("there is no function {name:?}"),
    })
}
