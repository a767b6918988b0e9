//! Finds event source mappings that invoke the function. Spillway's stack creates none.

use spillway_drainer::aws::itself::{MAPPINGS, Mapping};
use spillway_drainer::aws::{self, CallError, Itself};
use tokio::time::Instant;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, quoted};
use crate::retry_end;

const ID: CheckId = CheckId::EventSources;

pub(super) async fn run_check(itself: &Itself, region: &str, end: Instant) -> Check {
    check(&aws::until(MAPPINGS, retry_end(end), || itself.mappings()).await, region)
}

fn check(mappings: &Result<Vec<Mapping>, CallError>, region: &str) -> Check {
    match mappings {
        Ok(mappings) => {
            let what = if mappings.is_empty() {
                "no event source mapping invokes the function"
            } else {
                "event source mappings outside the stack invoke the function"
            };
            Check::made(ID, what, mappings.iter().map(|mapping| foreign(mapping, region)).collect())
        }
        Err(error) => {
            let what = "cannot list the event source mappings of the function";
            Check::not_answered(ID, FindingId::EventSourcesUnknown, error, what)
        }
    }
}

fn foreign(Mapping { id, source }: &Mapping, region: &str) -> Finding {
    let source = source.as_deref().unwrap_or("a source without an ARN");
    let what = format!(
        "invokes the function with messages of {source}, but the stack has no such mapping: each message is refused and takes a \
         concurrent execution from a drain"
    );
    let to_do = "find the creator of the mapping, and delete the mapping";
    Finding::new(FindingId::ForeignEventSource, Severity::Fail, format!("event source mapping {id}"), what, to_do)
        .with_command(format!("aws lambda delete-event-source-mapping --uuid {} --region {region}", quoted(id)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use spillway_drainer::doubles::aws::json_error;
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::TestContext;

    use super::*;
    use crate::report::CheckStatus;

    async fn check_of(status: u16, answer: Value) -> Check {
        let listed = call("GET /2015-03-31/event-source-mappings").says(status, answer);
        let context = TestContext::new(&[], [], [listed]);
        run_check(&context.itself, "us-east-1", Instant::now() + Duration::from_secs(60)).await
    }

    #[tokio::test(start_paused = true)]
    async fn mappings_are_failures_with_a_delete_command() {
        let check = check_of(200, json!({"EventSourceMappings": []})).await;
        assert_eq!((check.status, check.findings), (CheckStatus::Ok, Vec::new()));
        let queue = "arn:aws:sqs:us-east-1:999999999999:theirs";
        let mappings =
            json!([{"UUID": "a-1", "EventSourceArn": queue, "State": "Enabled"}, {"UUID": "a-2", "State": "Disabled"}]);
        let check = check_of(200, json!({"EventSourceMappings": mappings})).await;
        let found: Vec<_> = check.findings.iter().map(|finding| (finding.id, finding.object.as_str())).collect();
        assert_eq!(
            found,
            [
                (FindingId::ForeignEventSource, "event source mapping a-1"),
                (FindingId::ForeignEventSource, "event source mapping a-2"),
            ]
        );
        assert!(check.status == CheckStatus::Fail && check.findings[0].what.contains(queue), "{check:#?}");
        let command = check.findings[0].command.as_deref();
        assert_eq!(command, Some("aws lambda delete-event-source-mapping --uuid a-1 --region us-east-1"));
        let check = check_of(403, serde_json::from_str(&json_error("AccessDeniedException")).unwrap()).await;
        assert_eq!((check.status, check.findings[0].id), (CheckStatus::Unknown, FindingId::EventSourcesUnknown));
    }
}
