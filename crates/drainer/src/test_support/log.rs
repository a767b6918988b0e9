//! Captured log lines.

use std::io::{Read as _, Seek as _};
use std::sync::Once;

use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt as _;

/// Runs a function and returns level and message of each logged line.
///
/// A global subscriber keeps log lines enabled in all threads. Without it, a line that a test without subscriber reaches first is
/// disabled in tests that capture it (tokio-rs/tracing#2874).
pub(crate) fn logged(doing: impl FnOnce()) -> Vec<String> {
    static ENABLED: Once = Once::new();
    ENABLED.call_once(|| tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap());
    let mut file = tempfile::tempfile().unwrap();
    let log = tracing_subscriber::registry().with(spillway_startup::logs::lines(file.try_clone().unwrap()));
    tracing::subscriber::with_default(log, doing);
    let mut written = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut written).unwrap();
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let lines = written.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.map(|line| format!("{}: {}", text(&line, "level"), text(&line, "message"))).collect()
}

/// As [`logged`], in virtual time.
pub(crate) fn logged_in_time(doing: impl Future<Output = ()>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    logged(|| runtime.block_on(doing))
}
