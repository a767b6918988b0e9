//! CloudWatch metrics in the embedded metric format: a line of the log, no call.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A metric by its name and unit, and its value.
pub type Metric<V> = (&'static str, Unit, V);

/// What a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    Milliseconds,
}

impl Unit {
    /// CloudWatch's name of it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
        }
    }
}

/// The namespace of all metrics: alarms, dashboard and queries count on it. Two stacks of an account are told apart by
/// their clusters.
const NAMESPACE: &str = "Spillway";

/// The line. Each metric is told without any dimension, and once more by all of these if there are any.
#[must_use]
pub fn line(dimensions: &[(&str, Value)], metrics: &[Metric<Value>], now: Timestamp) -> String {
    let names: Vec<_> = dimensions.iter().map(|(name, _)| *name).collect();
    let sets = if names.is_empty() { vec![names] } else { vec![Vec::new(), names] };
    let definitions: Vec<_> =
        metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit.as_str()})).collect();
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), json!(now));
    line.insert("level".to_owned(), json!("INFO"));
    line.insert(
        "_aws".to_owned(),
        json!({
            "Timestamp": now.as_millisecond(),
            "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": sets, "Metrics": definitions}],
        }),
    );
    let values = metrics.iter().map(|(name, _, value)| (*name, value));
    for (name, value) in dimensions.iter().map(|(name, value)| (*name, value)).chain(values) {
        line.insert(name.to_owned(), value.clone());
    }
    Value::Object(line).to_string()
}
