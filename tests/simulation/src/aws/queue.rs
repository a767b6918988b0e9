//! The queue of drains that can wait, and its event source mapping, which has so many invocations at a time.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_drainer::doubles::aws::AwsCall;
use tokio::time::Instant;

use super::{Aws, AwsAnswer, AwsEvent};
use crate::lambda::LambdaEvent;

/// As the template has it.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(900);
/// Lambda's poller waits after a throttle.
const BACKS_OFF: Duration = Duration::from_secs(1);

/// A message of the queue, until it is deleted.
#[derive(Debug)]
pub(super) struct Message {
    body: String,
    visible: Instant,
    is_worked_on: bool,
}

/// How an invocation with a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    Succeeded,
    Failed,
    Throttled,
}

impl Aws {
    /// A call about the queue.
    pub(super) fn of_queue(&mut self, call: &AwsCall) -> AwsAnswer {
        let asked: Value = serde_json::from_str(&call.body).unwrap_or_default();
        let seconds = |name: &str| Duration::from_secs(asked[name].as_u64().unwrap_or_default());
        let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
        match call.name.as_str() {
            "SendMessage" => {
                let visible = Instant::now() + seconds("DelaySeconds");
                self.last_message += 1;
                let message = Message { body: text("MessageBody"), visible, is_worked_on: false };
                self.messages.insert(self.last_message.to_string(), message);
                self.effects.after(seconds("DelaySeconds"), AwsEvent::MessagesDue);
                (200, json!({"MessageId": "1", "MD5OfMessageBody": "0"}).to_string())
            }
            "ChangeMessageVisibility" => {
                self.hide_message(&text("ReceiptHandle"), seconds("VisibilityTimeout"));
                (200, String::new())
            }
            _ => {
                let visible = self.messages.values().filter(|message| message.visible <= Instant::now()).count();
                (200, json!({"Attributes": {"ApproximateNumberOfMessages": visible.to_string()}}).to_string())
            }
        }
    }

    /// Hands messages over, the one that is due for longest first, while there are slots for them.
    pub(super) fn poll(&mut self) {
        while self.messages.values().filter(|message| message.is_worked_on).count() < self.plan.patient_slots {
            let is_due = |(_, message): &(&String, &mut Message)| message.visible <= Instant::now();
            let due = self.messages.iter_mut().filter(is_due).min_by_key(|(_, message)| message.visible);
            let Some((handle, message)) = due else { return };
            message.is_worked_on = true;
            let (handle, body) = (handle.clone(), message.body.clone());
            self.hide_message(&handle, VISIBILITY_TIMEOUT);
            self.effects.now(LambdaEvent::Polled { handle, body });
        }
    }

    pub(super) fn end_turn(&mut self, handle: &str, end: TurnEnd) {
        if let Some(message) = self.messages.get_mut(handle) {
            message.is_worked_on = false;
        }
        match end {
            TurnEnd::Succeeded => drop(self.messages.remove(handle)),
            TurnEnd::Failed => {}
            TurnEnd::Throttled => self.hide_message(handle, BACKS_OFF),
        }
        self.poll();
    }

    fn hide_message(&mut self, handle: &str, time: Duration) {
        if let Some(message) = self.messages.get_mut(handle) {
            message.visible = Instant::now() + time;
            self.effects.after(time, AwsEvent::MessagesDue);
        }
    }
}
