//! Log lines: JSON on stdout with the timestamp and level that Lambda filters by.

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// An error and all its causes in one line, each said once: as a log line or a receipt tells it.
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

/// Lambda's name for the level chosen in `LoggingConfig`.
const LEVEL: &str = "AWS_LAMBDA_LOG_LEVEL";

/// Starts logging at the level that Lambda was given; our own crates, which are named, at that level, other people's
/// from `WARN` up.
pub fn start(our_own: &[&str]) {
    let level = level(std::env::var(LEVEL).ok().as_deref());
    let targets = Targets::new()
        .with_targets(our_own.iter().map(|name| (*name, level)))
        .with_default(level.min(LevelFilter::WARN));
    let lines =
        tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
}

/// `FATAL` is a level of Lambda's alone; errors are what comes nearest.
fn level(name: Option<&str>) -> LevelFilter {
    match name {
        Some("FATAL") => LevelFilter::ERROR,
        name => name.and_then(|name| name.parse().ok()).unwrap_or(LevelFilter::INFO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambdas_levels_are_understood() {
        assert_eq!(level(None), LevelFilter::INFO);
        assert_eq!(level(Some("DEBUG")), LevelFilter::DEBUG);
        assert_eq!(level(Some("WARN")), LevelFilter::WARN);
        assert_eq!(level(Some("FATAL")), LevelFilter::ERROR);
        assert_eq!(level(Some("LOUD")), LevelFilter::INFO);
    }
}
