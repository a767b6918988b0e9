//! Template functions that change, combine or test strings.

use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, at_least, exactly};
use crate::bounds;
use crate::go::display;

pub(super) static FUNCTIONS: [Function; 13] = [
    exactly("upper", 1, |arguments| Ok(Value::from(arguments.text(0)?.chars().map(upper).collect::<String>()))),
    exactly("lower", 1, |arguments| Ok(Value::from(arguments.text(0)?.chars().map(lower).collect::<String>()))),
    exactly("title", 1, title),
    exactly("untitle", 1, untitle),
    exactly("repeat", 2, repeat),
    exactly("replace", 3, replace),
    exactly("contains", 2, |arguments| test(arguments, |text, part| text.contains(part))),
    exactly("hasPrefix", 2, |arguments| test(arguments, |text, part| text.starts_with(part))),
    exactly("hasSuffix", 2, |arguments| test(arguments, |text, part| text.ends_with(part))),
    at_least("cat", 0, |arguments| Ok(cat(arguments))),
    exactly("indent", 2, |arguments| Ok(Value::from(indented(arguments)?))),
    exactly("nindent", 2, |arguments| Ok(Value::from(format!("\n{}", indented(arguments)?)))),
    exactly("plural", 3, plural),
];

/// Converts a character to upper case. As in Go, `ß` stays unchanged.
fn upper(character: char) -> char {
    only(character.to_uppercase()).unwrap_or(character)
}

fn lower(character: char) -> char {
    only(character.to_lowercase()).unwrap_or(character)
}

fn only(mut characters: impl Iterator<Item = char>) -> Option<char> {
    characters.next().filter(|_| characters.next().is_none())
}

/// Converts the first letter of each word to upper case. As in Go, `world's` becomes `World'S`.
fn title(arguments: &Arguments<'_>) -> Result<Value, String> {
    Ok(Value::from(first_letters(arguments.text(0)?, parts_words, upper)))
}

fn untitle(arguments: &Arguments<'_>) -> Result<Value, String> {
    Ok(Value::from(first_letters(arguments.text(0)?, char::is_whitespace, lower)))
}

fn first_letters(text: &str, parts_words: fn(char) -> bool, change: fn(char) -> char) -> String {
    let before = std::iter::once(' ').chain(text.chars());
    let letters = before.zip(text.chars());
    letters.map(|(before, letter)| if parts_words(before) { change(letter) } else { letter }).collect()
}

fn parts_words(character: char) -> bool {
    match character {
        '_' => false,
        _ if character.is_ascii() => !character.is_ascii_alphanumeric(),
        _ => !character.is_alphanumeric() && character.is_whitespace(),
    }
}

fn repeat(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (count, text) = (arguments.count(0)?, arguments.text(1)?);
    bounds::check_size(count.saturating_mul(text.len()))?;
    Ok(Value::from(text.repeat(count)))
}

fn replace(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (old, new) = (arguments.text(0)?, arguments.text(1)?);
    let text = arguments.text(2)?;
    bounds::check_size(text.len().saturating_add(text.matches(old).count().saturating_mul(new.len())))?;
    Ok(Value::from(text.replace(old, new)))
}

fn test(arguments: &Arguments<'_>, holds: fn(&str, &str) -> bool) -> Result<Value, String> {
    let (part, text) = (arguments.text(0)?, arguments.text(1)?);
    Ok(Value::from(holds(text, part)))
}

fn cat(arguments: &Arguments<'_>) -> Value {
    let texts: Vec<String> = arguments.from(0).filter(|value| !value.is_null()).map(display::text).collect();
    Value::from(texts.join(" "))
}

fn indented(arguments: &Arguments<'_>) -> Result<String, String> {
    let (spaces, text) = (arguments.count(0)?, arguments.text(1)?);
    bounds::check_size(spaces.saturating_mul(text.matches('\n').count() + 1).saturating_add(text.len()))?;
    let pad = " ".repeat(spaces);
    Ok(format!("{pad}{}", text.replace('\n', &format!("\n{pad}"))))
}

fn plural(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (one, many) = (arguments.text(0)?, arguments.text(1)?);
    Ok(Value::from(if arguments.integer(2)? == 1 { one } else { many }))
}
