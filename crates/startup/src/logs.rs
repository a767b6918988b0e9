//! Writes log lines as JSON to stdout, with the fields `timestamp` and `level` that Lambda filters by.
//!
//! The field `span` has the name and the fields of the current span. Each Lambda function opens one span for each event. The
//! span has the level ERROR, because a span of a disabled level is missing from all log lines.
//!
//! ```json
//! {"timestamp": "…", "level": "INFO", "message": "…", "span": {"name": "notice", "instance.id": "i-0123456789abcdef0"}}
//! ```
//!
//! In Logs Insights, the span's fields are named `span.name` and `span.instance.id`.

use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Joins an error and its causes in one line, without repetition.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Environment variable with the log level of the function's `LoggingConfig`.
const LEVEL: &str = "AWS_LAMBDA_LOG_LEVEL";

const OUR_OWN: &str = "spillway";

pub fn start() {
    tracing_subscriber::registry().with(lines(std::io::stdout)).init();
}

/// Returns the layer that logs Spillway's crates at the configured level, and other crates at `WARN` and above.
pub fn lines<S>(writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let level = level(std::env::var(LEVEL).ok().as_deref());
    let targets = Targets::new().with_target(OUR_OWN, level).with_default(level.min(LevelFilter::WARN));
    let layer = tracing_subscriber::fmt::layer().json().with_writer(writer);
    layer.flatten_event(true).with_current_span(true).with_span_list(false).with_filter(targets)
}

/// Parses a log level of Lambda. `FATAL` becomes `ERROR`, and an unknown level becomes `INFO`.
fn level(name: Option<&str>) -> LevelFilter {
    match name {
        Some("FATAL") => LevelFilter::ERROR,
        name => name.and_then(|name| name.parse().ok()).unwrap_or(LevelFilter::INFO),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn line_has_the_fields_of_its_span() {
        let mut file = tempfile::tempfile().unwrap();
        let log = tracing_subscriber::registry().with(lines(file.try_clone().unwrap()));
        tracing::subscriber::with_default(log, || {
            let span = tracing::error_span!("notice", instance.id = "i-1", node.name = tracing::field::Empty).entered();
            span.record("node.name", "n-1");
            tracing::info!(cluster.name = "prod", "drained");
        });

        let mut written = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut written).unwrap();
        let mut line: Value = serde_json::from_str(&written).unwrap();
        line.as_object_mut().unwrap().remove("timestamp");
        let expected = json!({
            "level": "INFO", "message": "drained", "cluster.name": "prod", "target": "spillway_startup::logs::tests",
            "span": {"name": "notice", "instance.id": "i-1", "node.name": "n-1"},
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn levels_of_lambda_are_parsed() {
        assert_eq!(level(None), LevelFilter::INFO);
        assert_eq!(level(Some("DEBUG")), LevelFilter::DEBUG);
        assert_eq!(level(Some("WARN")), LevelFilter::WARN);
        assert_eq!(level(Some("FATAL")), LevelFilter::ERROR);
        assert_eq!(level(Some("LOUD")), LevelFilter::INFO);
    }
}
