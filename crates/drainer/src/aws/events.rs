//! Puts Spillway's events on the account's default event bus.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::operation::put_events::PutEventsOutput;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use spillway_notice::SOURCE;

use crate::aws::CallError;

pub(crate) const PUT_EVENTS: &str = "events:PutEvents";

pub(crate) async fn put(client: &Client, detail_type: &str, detail: String) -> Result<(), CallError> {
    let entry = PutEventsRequestEntry::builder().source(SOURCE).detail_type(detail_type).detail(detail).build();
    let sent = client.put_events().entries(entry).send().await;
    accepted(&sent.map_err(|error| CallError::new(PUT_EVENTS, error))?)
}

/// Fails if EventBridge answered 200 but refused the entry.
fn accepted(answer: &PutEventsOutput) -> Result<(), CallError> {
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
    fn refused_entry_is_a_failure() {
        let answer = |code: &str| {
            let entry = PutEventsResultEntry::builder().error_code(code).error_message("why").build();
            accepted(&PutEventsOutput::builder().failed_entry_count(1).entries(entry).build())
        };
        let kind = |code| answer(code).map_err(|error| error.kind);
        assert_eq!(kind("InternalFailure"), Err(CallErrorKind::Broken));
        assert_eq!(kind("ThrottlingException"), Err(CallErrorKind::Throttled));
        assert_eq!(kind("AccessDeniedException"), Err(CallErrorKind::Denied));
        let text = answer("MalformedDetail").map_err(|error| error.to_string());
        assert_eq!(text, Err("events:PutEvents is refused: MalformedDetail: why".to_owned()));
        let entry = PutEventsResultEntry::builder().event_id("1").build();
        assert!(accepted(&PutEventsOutput::builder().entries(entry).build()).is_ok());
    }
}
