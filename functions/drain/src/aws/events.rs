//! Our own events on the account's default event bus.

use std::cell::Cell;

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::operation::put_events::PutEventsOutput;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use serde::Serialize;

use crate::aws::CallError;
use crate::notice::continued::SOURCE;

pub(crate) const PUT_EVENTS: &str = "events:PutEvents";
/// What EventBridge takes in one call: so many entries, of so many bytes in all.
pub(crate) const MOST_ENTRIES: usize = 10;
pub(crate) const MOST_BYTES: usize = 256 * 1024;

/// The detail of an event of ours: with the stack whose event it is, so that no other stack of the account takes it for its
/// own.
pub(crate) fn detail(stack: &str, data: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Own<'a, T> {
        stack: &'a str,
        #[serde(flatten)]
        data: &'a T,
    }
    serde_json::to_string(&Own { stack, data }).expect("it is plain data with text for keys")
}

/// Puts an event with each of the details; those that are refused are left.
pub(crate) async fn put(client: &Client, detail_type: &str, left: &Cell<Vec<String>>) -> Result<(), CallError> {
    let details = left.take();
    let entry =
        |detail| PutEventsRequestEntry::builder().source(SOURCE).detail_type(detail_type).detail(detail).build();
    let sent = client.put_events().set_entries(Some(details.iter().map(entry).collect())).send().await;
    let (refused, answer) = match sent {
        Ok(answer) => (refused(details, &answer), taken(&answer)),
        Err(error) => (details, Err(CallError::new(PUT_EVENTS, error))),
    };
    left.set(refused);
    answer
}

/// EventBridge answers entry by entry, in order.
fn refused(details: Vec<String>, answer: &PutEventsOutput) -> Vec<String> {
    let answers = answer.entries().iter().map(|entry| entry.error_code().is_some());
    details.into_iter().zip(answers).filter_map(|(detail, refused)| refused.then_some(detail)).collect()
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

#[cfg(test)]
mod tests {
    use aws_sdk_eventbridge::types::PutEventsResultEntry;

    use super::*;
    use crate::aws::CallErrorKind;

    #[test]
    fn an_entry_that_eventbridge_refused_is_a_failure() {
        let answer = |code: &str| {
            let entry = PutEventsResultEntry::builder().error_code(code).error_message("why").build();
            taken(&PutEventsOutput::builder().failed_entry_count(1).entries(entry).build())
        };
        let kind = |code| answer(code).map_err(|error| error.kind);
        assert_eq!(kind("InternalFailure"), Err(CallErrorKind::Broken));
        assert_eq!(kind("ThrottlingException"), Err(CallErrorKind::Throttled));
        assert_eq!(kind("AccessDeniedException"), Err(CallErrorKind::Denied));
        let text = answer("MalformedDetail").map_err(|error| error.to_string());
        assert_eq!(text, Err("events:PutEvents is refused: MalformedDetail: why".to_owned()));
        let entry = PutEventsResultEntry::builder().event_id("1").build();
        assert!(taken(&PutEventsOutput::builder().entries(entry).build()).is_ok());
    }
}
