//! Parses label selectors in kubectl's format: `team=shop,tier in (web,api),!legacy`.

use kube_core::{Expression, Selector};

/// Parses a selector. `None` if malformed. An empty text selects everything.
pub(super) fn parse(text: &str) -> Option<Selector> {
    let mut selector = Selector::default();
    if text.trim().is_empty() {
        return Some(selector);
    }
    for requirement in requirements(text)? {
        selector.extend(expression(requirement.trim())?);
    }
    Some(selector)
}

/// Splits a selector at the commas outside of parentheses. `None` if a parenthesis is not closed.
fn requirements(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            ',' if !inside => {
                parts.push(text.get(from..at)?);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(from..)?);
    (!inside).then_some(parts)
}

fn expression(text: &str) -> Option<Expression> {
    if let Some(key) = text.strip_prefix('!') {
        return Some(Expression::DoesNotExist(label_key(key)?));
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Some(Expression::NotEqual(label_key(key)?, label_value(value)?));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(Expression::Equal(label_key(key)?, label_value(value)?));
    }
    let Some((head, set)) = text.split_once('(') else { return label_key(text).map(Expression::Exists) };
    let values = set.strip_suffix(')')?.split(',').map(label_value).collect::<Option<_>>()?;
    match head.trim().rsplit_once(char::is_whitespace)? {
        (key, "in") => Some(Expression::In(label_key(key)?, values)),
        (key, "notin") => Some(Expression::NotIn(label_key(key)?, values)),
        _ => None,
    }
}

/// Parses `[prefix/]name` with a prefix of up to 253 characters and a name of up to 63 characters.
fn label_key(text: &str) -> Option<String> {
    let text = text.trim();
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let prefix_fits = prefix.is_none_or(|prefix| !prefix.is_empty() && prefix.len() <= 253 && is_label_text(prefix));
    (prefix_fits && !name.is_empty() && name.len() <= 63 && is_label_text(name)).then(|| text.to_owned())
}

fn label_value(text: &str) -> Option<String> {
    let text = text.trim();
    (text.len() <= 63 && is_label_text(text)).then(|| text.to_owned())
}

/// Returns `true` if the text has only letters, digits and `-_.`, and begins and ends with a letter or digit. Accepts empty text.
fn is_label_text(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().last()];
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && ends.into_iter().flatten().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube_core::SelectorExt as _;

    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> Option<bool> {
        let labels: BTreeMap<_, _> = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        parse(selector).map(|selector| selector.matches(&labels))
    }

    #[test]
    fn each_form_of_kubectl_selects_the_same_nodes() {
        let web = [("tier", "web"), ("example.com/team", "shop")];
        for (selector, selected) in [
            ("", true),
            ("tier", true),
            ("!tier", false),
            ("tier=web", true),
            ("tier==web", true),
            ("tier!=web", false),
            ("other!=web", true),
            ("tier in (web, api)", true),
            ("tier notin (web,api)", false),
            ("example.com/team=shop,tier in (web),!legacy", true),
            ("example.com/team=shop,tier=api", false),
            ("tier in (api),example.com/team", false),
        ] {
            assert_eq!(selects(selector, &web), Some(selected), "{selector}");
        }
    }

    #[test]
    fn malformed_selector_is_refused() {
        let malformed = "=web|tier=we b|tier in (a(b,c))|tier in ((a)|tier in (a)),b|tier)|(|)|tier in web|tier in (web|tier on (web)|\
                         a,,b|-a|a/b/c|/a|(a)";
        for text in malformed.split('|') {
            assert_eq!(selects(text, &[]), None, "{text}");
        }
    }
}
