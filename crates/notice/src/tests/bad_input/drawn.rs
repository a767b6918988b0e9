//! Samples spoilt at random, several times over, in their values and in their text.
//!
//! `SPILLWAY_FUZZ_CASES` says how many (docs/development.md has how to run ten million).

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value};

use super::{SAMPLES, examine, fields};

/// What may stand where something else ought to.
fn anything() -> impl Strategy<Value = Value> {
    let words = [
        "",
        "i-",
        "i-1234567890abcdef0",
        "I-1234567890ABCDEF0",
        "i-1234567890abcdef0\u{0}",
        "mi-1234567890abcdef0",
        "arn:aws:ec2:us-east-2a:instance/i-1234567890abcdef0",
        "arn:aws:ec2:::volume/vol-1",
        "cr-1",
        "cr-*",
        "aws.ec2",
        "aws.health",
        "aws.autoscaling",
        "spillway",
        "EC2",
        "RDS",
        "scheduledChange",
        "issue",
        "open",
        "closed",
        "upcoming",
        "RESOLVED",
        "true",
        "false",
        "stopping",
        "TERMINATED",
        "WarmPool",
        "EC2",
        "ReplaceRootVolume",
        "us-east-1",
        "us-west-2",
        "123456789012",
        "2026-11-21T03:12:00Z",
        "Sat, 5 Dec 2026 05:01:10 GMT",
        "9999-12-31T23:59:59Z",
        "-009999-01-01T00:00:00Z",
        "Spillway Drain Continuation",
        "🦀é\u{202e}",
    ];
    let leaf = prop_oneof![
        6 => select(words.to_vec()).prop_map(Value::from),
        2 => ".{0,24}".prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        let keys =
            select(vec!["instance-id", "EC2InstanceId", "entityValue", "detail", "notice", "instance", "status", "x"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
            }),
        ]
    })
}

/// A way to spoil an event.
#[derive(Debug, Clone)]
enum Spoil {
    /// A field is gone.
    Drop(Index),
    /// Something else stands there.
    Put(Index, Value),
    /// What stands elsewhere, in this sample or another, stands there.
    Graft(Index, Index, Index),
    /// A field has another name.
    Rename(Index, String),
    /// Some of its text is gone, and something else in its place.
    Text(Index, usize, Vec<u8>),
}

fn spoil() -> impl Strategy<Value = Spoil> {
    let index = any::<Index>;
    prop_oneof![
        2 => index().prop_map(Spoil::Drop),
        4 => (index(), anything()).prop_map(|(at, value)| Spoil::Put(at, value)),
        3 => (index(), index(), index()).prop_map(|(at, of, from)| Spoil::Graft(at, of, from)),
        1 => (index(), ".{0,12}").prop_map(|(at, name)| Spoil::Rename(at, name)),
        1 => (index(), 0..8_usize, prop::collection::vec(any::<u8>(), 0..4)).prop_map(|(at, n, by)| Spoil::Text(at, n, by)),
    ]
}

impl Spoil {
    fn apply(self, event: &mut Value) {
        let all = fields(event);
        match self {
            Self::Text(at, gone, by) => {
                let mut text = event.to_string().into_bytes();
                let at = at.index(text.len());
                text.splice(at..(at + gone).min(text.len()), by);
                // What is no JSON does not come as far as this.
                if let Ok(spoilt) = serde_json::from_slice(&text) {
                    *event = spoilt;
                }
            }
            _ if all.is_empty() => {}
            Self::Drop(at) => drop(take(event, at.get(&all))),
            Self::Put(at, value) => put(event, at.get(&all), value),
            Self::Graft(at, of, from) => {
                let donors: Vec<_> = SAMPLES.values().collect();
                let donor = *of.get(&donors);
                let (parent, key) = from.get(&fields(donor)).clone();
                let value = donor.pointer(&format!("{parent}/{key}")).cloned().unwrap_or_default();
                put(event, at.get(&all), value);
            }
            Self::Rename(at, name) => {
                let (parent, _) = at.get(&all);
                if let Some(value) = take(event, at.get(&all)) {
                    put(event, &(parent.clone(), name), value);
                }
            }
        }
    }
}

fn take(event: &mut Value, (parent, key): &(String, String)) -> Option<Value> {
    match event.pointer_mut(parent)? {
        Value::Object(fields) => fields.remove(key),
        Value::Array(items) => Some(items.remove(key.parse().ok()?)),
        _ => None,
    }
}

fn put(event: &mut Value, (parent, key): &(String, String), value: Value) {
    match event.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.insert(key.clone(), value)),
        Some(Value::Array(items)) => items.push(value),
        _ => {}
    }
}

fn cases() -> u32 {
    std::env::var("SPILLWAY_FUZZ_CASES").map_or(2_000, |cases| cases.parse().expect("SPILLWAY_FUZZ_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]
    #[test]
    fn no_event_is_too_odd(sample in any::<Index>(), spoils in prop::collection::vec(spoil(), 1..5)) {
        let mut event = (*sample.get(&SAMPLES.values().collect::<Vec<_>>())).clone();
        for spoil in spoils {
            spoil.apply(&mut event);
        }
        let _ = examine(&event);
    }
}
