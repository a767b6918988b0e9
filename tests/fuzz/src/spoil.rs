//! Random changes of valid input, which get further than random input.

use fastrand::Rng;
use serde_json::{Value, json};

/// Unusual texts, separated by `|`.
const ODD_TEXTS: &str = "| |i-|i-1234567890abcdef0|I-1234567890ABCDEF0|i-1234567890abcdef0\u{0}|mi-1234567890abcdef0|\
    arn:aws:ec2:us-east-2a:instance/i-1234567890abcdef0|arn:aws:ec2:::volume/vol-1|cr-1|cr-*|RESOLVED|left|remaining|\
    Sat, 5 Dec 2026 05:01:10 GMT|9999-12-31T23:59:59Z|-009999-01-01T00:00:00Z|https://hooks.example|{{ .Pods }}|🦀é\u{202e}";

/// Makes up to four changes of JSON, with values of donors; `None` for other input, or without donors.
pub fn structure(input: &[u8], donors: &[Value], random: &mut Rng) -> Option<Vec<u8>> {
    if donors.is_empty() {
        return None;
    }
    let mut value: Value = serde_json::from_slice(input).ok()?;
    for _ in 0..random.usize(1..=4) {
        let other = other(donors, random);
        let place = nth(&mut value, random).expect("a counted value");
        spoil(place, other, random);
    }
    serde_json::to_vec(&value).ok()
}

/// Replaces a value or an entry, or removes or adds an entry.
fn spoil(place: &mut Value, other: Value, random: &mut Rng) {
    match place {
        Value::Object(fields) if !fields.is_empty() && random.bool() => {
            let key = random.choice(fields.keys()).expect("a field").clone();
            let value = fields.remove(&key).expect("a known field");
            match random.u8(0..4) {
                0 => {}
                1 => drop(fields.insert(key, other)),
                2 => drop(fields.insert(odd_text(random), value)),
                _ => drop(fields.insert(format!("{key}{}", odd_text(random)), value)),
            }
        }
        Value::Array(items) if random.bool() => {
            let at = random.usize(0..=items.len());
            if at < items.len() && random.bool() {
                items.remove(at);
            } else {
                items.insert(at, other);
            }
        }
        _ => *place = other,
    }
}

/// A value of a donor, or an unusual value.
fn other(donors: &[Value], random: &mut Rng) -> Value {
    match random.u8(0..12) {
        0 => Value::Null,
        1 => json!(random.bool()),
        2 => json!(random.choice([0, -1, i64::MIN, i64::MAX]).expect("a number")),
        3 => json!(u64::MAX),
        4 => json!(1e300),
        5 => json!("x".repeat(3_000)),
        6 => json!([]),
        7 => json!({}),
        8 | 9 => json!(odd_text(random)),
        _ => random
            .choice(donors)
            .map(|donor| nth(&mut donor.clone(), random).cloned().unwrap_or_default())
            .unwrap_or_default(),
    }
}

fn odd_text(random: &mut Rng) -> String {
    random.choice(ODD_TEXTS.split('|').collect::<Vec<_>>()).expect("a text").to_owned()
}

/// Any value within this one, or this one.
fn nth<'a>(value: &'a mut Value, random: &mut Rng) -> Option<&'a mut Value> {
    fn skip<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
        if *left == 0 {
            return Some(value);
        }
        *left -= 1;
        match value {
            Value::Array(items) => items.iter_mut().find_map(|item| skip(item, left)),
            Value::Object(fields) => fields.values_mut().find_map(|field| skip(field, left)),
            _ => None,
        }
    }
    let mut left = random.usize(0..count(value));
    skip(value, &mut left)
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes up to eight ranges of bytes. libFuzzer has its own changes.
#[cfg(test)]
pub(crate) fn bytes(input: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.usize(1..=8) {
        let at = random.usize(0..=bytes.len());
        let to = bytes.len().min(at + random.usize(0..8));
        let other = if random.bool() { vec![random.u8(..)] } else { bytes[at..to].repeat(2) };
        bytes.splice(at..to, other);
    }
    bytes
}
