//! CloudWatch metrics in the embedded metric format: a line of the log, no call.

use std::iter;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub type Metric<V> = (&'static str, Unit, V);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    Milliseconds,
}

impl Unit {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
        }
    }
}

/// The namespace of all metrics: alarms, dashboard and queries count on it.
const NAMESPACE: &str = "Spillway";

/// The dimension that every metric has, so that the stacks of an account share no alarm.
const STACK: &str = "Stack";

/// Some of a line's metrics, told once more by further dimensions. Each combination is a metric of its own, and is paid for.
#[derive(Debug, Default)]
pub struct Breakdown<'a> {
    pub dimensions: &'a [(&'static str, Value)],
    pub metrics: &'a [&'static str],
}

/// The line. Each metric is told by its stack, and those of the breakdown once more by the stack and the breakdown's
/// dimensions.
#[must_use]
pub fn line(stack: &str, metrics: &[Metric<Value>], breakdown: &Breakdown<'_>, now: Timestamp) -> String {
    let directive = |dimensions: &[&str], is_told: &dyn Fn(&str) -> bool| {
        let told = metrics.iter().filter(|(name, ..)| is_told(name));
        let told: Vec<_> = told.map(|(name, unit, _)| json!({"Name": name, "Unit": unit.as_str()})).collect();
        json!({"Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": told})
    };
    let mut directives = vec![directive(&[STACK], &|_| true)];
    if !breakdown.metrics.is_empty() {
        let names: Vec<_> = iter::once(STACK).chain(breakdown.dimensions.iter().map(|(name, _)| *name)).collect();
        directives.push(directive(&names, &|name| breakdown.metrics.contains(&name)));
    }
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), json!(now));
    line.insert("level".to_owned(), json!("INFO"));
    line.insert("_aws".to_owned(), json!({"Timestamp": now.as_millisecond(), "CloudWatchMetrics": directives}));
    line.insert(STACK.to_owned(), json!(stack));
    let values = metrics.iter().map(|(name, _, value)| (*name, value));
    for (name, value) in breakdown.dimensions.iter().map(|(name, value)| (*name, value)).chain(values) {
        line.insert(name.to_owned(), value.clone());
    }
    Value::Object(line).to_string()
}
