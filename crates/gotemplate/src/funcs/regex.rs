//! Template functions for regular expressions.

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, exactly};
use crate::bounds;
use crate::go;
use crate::output::Output;

pub(super) static FUNCTIONS: [Function; 4] = [
    exactly("regexMatch", 2, |arguments| {
        let Search { expression, text, .. } = Search::first(arguments)?;
        Ok(Value::from(expression.is_match(text)))
    }),
    exactly("regexFind", 2, |arguments| {
        let Search { expression, text, .. } = Search::first(arguments)?;
        Ok(Value::from(expression.find(text).map_or("", |found| found.as_str())))
    }),
    exactly("regexReplaceAll", 3, |arguments| replaced(arguments, Replacement::WithGroups)),
    exactly("regexReplaceAllLiteral", 3, |arguments| replaced(arguments, Replacement::Literal)),
];

/// Meaning of `$1` in a replacement text.
#[derive(Clone, Copy)]
enum Replacement {
    /// `$1` is the text of the first group.
    WithGroups,
    /// `$1` stays unchanged.
    Literal,
}

/// A compiled regular expression and the text to search.
struct Search<'a> {
    arguments: &'a Arguments<'a>,
    expression: Regex,
    /// Approximate size of the compiled expression, in bytes.
    size: usize,
    text: &'a str,
}

impl<'a> Search<'a> {
    fn of(arguments: &'a Arguments<'_>) -> Result<Self, String> {
        let text = arguments.text(1)?;
        if text.len() > bounds::SEARCH {
            return Err(format!("the text has more than the {} bytes that an expression may search", bounds::SEARCH));
        }
        let (expression, size) = compiled(arguments)?;
        Ok(Self { arguments, expression, size, text })
    }

    /// Prepares a search. Reduces the budget by the cost of finding the first match.
    fn first(arguments: &'a Arguments<'_>) -> Result<Self, String> {
        let search = Self::of(arguments)?;
        search.charge(0)?;
        Ok(search)
    }

    /// Reduces the budget by the cost of searching `text[start..]`.
    fn charge(&self, start: usize) -> Result<(), String> {
        let steps = self.size.saturating_mul(self.text.len() - start + 1);
        self.arguments
            .charge(bounds::STEP + steps.saturating_mul(self.expression.captures_len()) / bounds::STEPS_PER_BYTE)
    }
}

/// Compiles the first argument as a regular expression. Also returns the approximate compiled size in bytes.
fn compiled(arguments: &Arguments<'_>) -> Result<(Regex, usize), String> {
    let text = arguments.text(0)?;
    if text.len() > bounds::EXPRESSION {
        return Err(format!("there are more than the {} bytes of a regular expression", bounds::EXPRESSION));
    }
    // `regex_lite` does not report the size: the limit is doubled until the expression compiles.
    let mut size = 256;
    loop {
        arguments.charge(bounds::STEP * text.len() + size)?;
        match RegexBuilder::new(text).size_limit(size).build() {
            Ok(expression) => return Ok((expression, size)),
            Err(problem) if size >= bounds::SEARCH => {
                return Err(format!("{} is no regular expression: {problem}", go::shown(text)));
            }
            Err(_) => size *= 2,
        }
    }
}

fn replaced(arguments: &Arguments<'_>, replacement: Replacement) -> Result<Value, String> {
    let search = Search::of(arguments)?;
    let (text, with) = (search.text, arguments.text(2)?);
    let mut out = Output::default();
    let mut end = 0;
    let mut matches = search.expression.captures_iter(text);
    loop {
        search.charge(end)?;
        let Some(groups) = matches.next() else { break };
        let Some(found) = groups.get(0) else { continue };
        out.push(&text[end..found.start()])?;
        end = found.end();
        match replacement {
            Replacement::Literal => out.push(with)?,
            Replacement::WithGroups => {
                // A group is at most as long as the match.
                bounds::check_size(with.len().saturating_add(with.matches('$').count().saturating_mul(found.len())))?;
                let mut expanded = String::new();
                groups.expand(with, &mut expanded);
                out.push(&expanded)?;
            }
        }
    }
    out.push(&text[end..])?;
    Ok(Value::from(out.into_text()))
}
