//! A turn: an invocation that the queue of drains that can wait has begun. Meanwhile it is seen whether others wait for theirs.

use std::convert::Infallible;
use std::time::Duration;

use jiff::Timestamp;
use spillway_core::continuation::patient;
use spillway_notice::queued::Queued;
use spillway_retry::jittered;
use spillway_startup::logs::chain;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::aws::queue::Queue;

/// How long a message stays hidden after each look: an invocation that dies is followed by another one then, as by Lambda's first
/// retry.
const HIDDEN_FOR: Duration = Duration::from_secs(90);
/// The longest pause between two looks.
const LOOKS_EVERY: Duration = Duration::from_secs(30);

/// An invocation that the queue has begun.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    /// None: the setting has been taken away since the message was sent.
    queue: Option<&'a Queue>,
    receipt_handle: String,
    /// Whether others wait.
    others_wait: watch::Sender<bool>,
}

impl<'a> Turn<'a> {
    /// The turn of a message that came now.
    pub(crate) fn of(queued: &Queued, queue: Option<&'a Queue>, now: Timestamp) -> Self {
        let others_wait = watch::Sender::new(patient::are_short(queued.due, now));
        Self { queue, receipt_handle: queued.receipt_handle.clone(), others_wait }
    }

    /// Whether others wait for their turn, from now on.
    pub(crate) fn others_wait(&self) -> watch::Receiver<bool> {
        self.others_wait.subscribe()
    }

    /// Keeps the message hidden and looks whether others wait; does not end.
    pub(crate) async fn keep(&self) -> Infallible {
        let Some(queue) = self.queue else { return std::future::pending().await };
        loop {
            if let Err(error) = queue.hide(&self.receipt_handle, HIDDEN_FOR).await {
                tracing::warn!(
                    error = chain(&error),
                    "cannot keep the message of this drain hidden; it may come twice"
                );
            }
            match queue.is_waited_for().await {
                Ok(true) => drop(self.others_wait.send_replace(true)),
                Ok(false) => {}
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(error, "cannot see whether other drains wait; going on as if none did");
                }
            }
            sleep(LOOKS_EVERY / 2 + jittered(LOOKS_EVERY / 2)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use super::*;
    use crate::test_support::context::TestContext;
    use crate::test_support::script::call;

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_looked_at_two_to_four_times_a_minute() {
        let hidden = || {
            let hidden = call("ChangeMessageVisibility").with("handle").with(r#""VisibilityTimeout":90"#);
            hidden.says(200, "{}").at_any_time()
        };
        let none_waits = json!({"Attributes": {"ApproximateNumberOfMessages": "0"}});
        let looked = || call("GetQueueAttributes").says(200, &none_waits).at_any_time();
        let (least, most) = (20, 40);
        let always = (0..least).flat_map(|_| [hidden(), looked()]);
        let perhaps = (least..=most).flat_map(|_| [hidden().perhaps(), looked().perhaps()]);
        let context = TestContext::new(&[("SPILLWAY_PATIENT_QUEUE", "https://sqs/q")], [], always.chain(perhaps));
        let (payload, receipt_handle) = (Value::Null, "handle".to_owned());
        let queued = Queued { payload, due: Timestamp::UNIX_EPOCH, receipt_handle };
        let turn = Turn::of(&queued, context.patient_queue.as_ref(), Timestamp::UNIX_EPOCH);
        timeout(Duration::from_mins(10), turn.keep()).await.unwrap_err();
    }
}
