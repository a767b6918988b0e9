//! CloudWatch metrics as log lines in the embedded metric format, which needs no API call.

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

/// CloudWatch namespace of all metrics.
const NAMESPACE: &str = "Spillway";

/// Dimension of every metric: the name of the CloudFormation stack.
const STACK: &str = "Stack";

/// Metrics that are also published with further dimensions.
#[derive(Debug, Default)]
pub struct Breakdown<'a> {
    pub dimensions: &'a [(&'static str, Value)],
    pub metrics: &'a [&'static str],
}

/// Returns the log line that publishes `metrics` with the dimension `Stack`. The metrics of `breakdown` are also published
/// with further dimensions.
#[must_use]
pub fn line(stack: &str, metrics: &[Metric<Value>], breakdown: &Breakdown<'_>, now: Timestamp) -> String {
    let directive = |dimensions: &[&str], includes: &dyn Fn(&str) -> bool| {
        let included = metrics.iter().filter(|(name, ..)| includes(name));
        let included: Vec<_> = included.map(|(name, unit, _)| json!({"Name": name, "Unit": unit.as_str()})).collect();
        json!({"Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": included})
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
