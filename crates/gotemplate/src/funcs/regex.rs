//! Regular expressions, by the engine that the AWS SDK brings along: linear in time, like Go's, without Unicode classes.

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

use super::arguments::{self, Arguments};
use super::{Function, exactly};
use crate::bounds;
use crate::go;

pub(super) static FUNCTIONS: [Function; 4] = [
    exactly("regexMatch", 2, |arguments| Ok(Value::from(expression(arguments)?.is_match(text(arguments)?)))),
    exactly("regexFind", 2, |arguments| {
        let found = expression(arguments)?.find(text(arguments)?).map(|found| found.as_str().to_owned());
        Ok(Value::from(found.unwrap_or_default()))
    }),
    exactly("regexReplaceAll", 3, |arguments| replaced(arguments, Replacement::WithGroups)),
    exactly("regexReplaceAllLiteral", 3, |arguments| replaced(arguments, Replacement::Literal)),
];

#[derive(Clone, Copy)]
enum Replacement {
    /// `$1` is the first group.
    WithGroups,
    Literal,
}

fn expression(arguments: &Arguments<'_>) -> Result<Regex, String> {
    let expression = arguments::text(arguments, 0)?;
    let built = RegexBuilder::new(expression).size_limit(bounds::EXPRESSION).build();
    built.map_err(|problem| format!("{} is no regular expression: {problem}", go::shown(expression)))
}

/// What the expression is asked of.
fn text<'a>(arguments: &'a Arguments<'_>) -> Result<&'a str, String> {
    let text = arguments::text(arguments, 1)?;
    if text.len() > bounds::EXPRESSION {
        return Err(format!("the text has more than the {} bytes that an expression is asked of", bounds::EXPRESSION));
    }
    Ok(text)
}

fn replaced(arguments: &Arguments<'_>, replacement: Replacement) -> Result<Value, String> {
    let (text, with) = (text(arguments)?, arguments::text(arguments, 2)?);
    let mut out = String::new();
    let mut end = 0;
    for groups in expression(arguments)?.captures_iter(text) {
        let Some(found) = groups.get(0) else { continue };
        out.push_str(&text[end..found.start()]);
        end = found.end();
        match replacement {
            Replacement::Literal => out.push_str(with),
            Replacement::WithGroups => {
                // No group is longer than the match.
                bounds::room(with.len().saturating_add(with.matches('$').count().saturating_mul(found.len())))?;
                groups.expand(with, &mut out);
            }
        }
        bounds::room(out.len())?;
    }
    out.push_str(&text[end..]);
    Ok(Value::from(out))
}
