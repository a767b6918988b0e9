//! Going on in a later invocation: until when, and the event that asks for it.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::operation::put_events::PutEventsOutput;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::aws::{self, CallError};
use crate::failure::Failure;
use crate::interruption::continued::{DETAIL_TYPE, History, SOURCE};
use crate::interruption::{Deadline, Interruption};
use crate::invocation::Invocation;
use crate::lifecycle::Waits;
use crate::settings::Settings;

/// How many invocations one notice may take. The longest drain, 48 hours in invocations of
/// 15 minutes, takes 194; should time ever be reckoned wrong, the going round still ends.
pub(crate) const MOST_INVOCATIONS: usize = 200;
const PUT_EVENTS: &str = "events:PutEvents";

/// Until when a notice is worked on, in however many invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Until when its node is drained.
    pub(crate) drain: Timestamp,
    /// Until when what fails for a while is tried again. A hook waits for its answer longer than the
    /// setting lets it wait for the drain.
    retry: Timestamp,
}

impl Limits {
    /// The instance's own time; for a hook, how long Auto Scaling waits and how long it may.
    pub(crate) fn of(interruption: &Interruption, waits: Option<Waits>, settings: &Settings) -> Self {
        let after = |wait| interruption.time.saturating_add(wait).unwrap_or(Timestamp::MAX);
        match (interruption.deadline, waits) {
            (Deadline::Hard(at), _) => Self { drain: at, retry: at },
            (Deadline::HeldByHook, Some(waits)) => {
                let longest = waits.longest_for_an_answer();
                Self { drain: after(settings.hook_max_wait.min(longest)), retry: after(longest) }
            }
            (Deadline::HeldByHook, None) => {
                let at = after(settings.hook_max_wait);
                Self { drain: at, retry: at }
            }
        }
    }

    /// Whether a later invocation may still mend what this one could not.
    pub(crate) fn leave_time_after(&self, invocation: &Invocation, failure: &Failure, history: &History) -> bool {
        let limit = match failure {
            Failure::PodsLeft { .. } => self.drain,
            failure if failure.may_pass() => self.retry,
            _ => return false,
        };
        invocation.is_over_before(limit) && history.earlier.len() + 1 < MOST_INVOCATIONS
    }
}

/// Puts the event that a rule of the template routes back to the function. Tried until `end`.
pub(crate) async fn hand_on(client: &Client, history: &History, end: Instant) -> Result<(), CallError> {
    let detail = serde_json::to_string(history).expect("a history is plain data with string keys");
    aws::until(PUT_EVENTS, end, || put(client, &detail)).await
}

async fn put(client: &Client, detail: &str) -> Result<(), CallError> {
    let entry = PutEventsRequestEntry::builder().source(SOURCE).detail_type(DETAIL_TYPE).detail(detail).build();
    match client.put_events().entries(entry).send().await {
        Ok(answer) => taken(&answer),
        Err(error) => Err(CallError::new(PUT_EVENTS, &error)),
    }
}

/// EventBridge answers 200 to a call whose entries it has refused.
fn taken(answer: &PutEventsOutput) -> Result<(), CallError> {
    if answer.failed_entry_count() == 0 {
        return Ok(());
    }
    let refused = answer.entries().iter().find(|entry| entry.error_code().is_some());
    let code = refused.and_then(|entry| entry.error_code()).unwrap_or("no error code");
    let message = refused.and_then(|entry| entry.error_message()).unwrap_or("no message");
    Err(CallError::answered(PUT_EVENTS, code, message, None))
}
