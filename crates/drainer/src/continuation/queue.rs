//! When there are invocations for drains that can wait: a message in their queue.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_notice::continued::{self, History};
use spillway_notice::queued::Queued;
use tokio::time::Instant;

use crate::aws::queue::{Queue, SEND};
use crate::aws::{self, CallError};

/// How long the queue is tried. Without it an invocation is there at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// Puts a history into the queue, which hands it over after a delay.
pub(crate) async fn put(
    queue: &Queue,
    history: &History,
    delay: Duration,
    now: Timestamp,
    end: Instant,
) -> Result<(), CallError> {
    let history = serde_json::to_value(history).unwrap_or(Value::Null);
    let due = now.saturating_add(delay).unwrap_or(Timestamp::MAX);
    let body = Queued::body(json!({continued::KEY: history}), due);
    let end = end.min(Instant::now() + PATIENCE);
    aws::until(SEND, end, || queue.send(&body, delay)).await
}
