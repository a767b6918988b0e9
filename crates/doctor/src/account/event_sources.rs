//! Event source mappings of the function: queues and streams from which Lambda invokes it. The stack has none.

use spillway_drainer::aws::itself::{MAPPINGS, Mapping};
use spillway_drainer::aws::{self, CallError, Itself};
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, quoted};

const ID: CheckId = CheckId::EventSources;

/// The check. Retries until `end`.
pub(super) async fn look(itself: &Itself, region: &str, end: Instant) -> Check {
    check(&aws::until(MAPPINGS, asked_until(end), || itself.mappings()).await, region)
}

fn check(mappings: &Result<Vec<Mapping>, CallError>, region: &str) -> Check {
    match mappings {
        Ok(mappings) => {
            let what = if mappings.is_empty() {
                "no queue and no stream invokes the function"
            } else {
                "the function is invoked by more than the stack's rules and schedules"
            };
            Check::made(ID, what, mappings.iter().map(|mapping| foreign(mapping, region)).collect())
        }
        Err(error) => {
            let what = "the event source mappings of the function are not known";
            Check::not_answered(ID, FindingId::EventSourcesUnknown, error, what)
        }
    }
}

fn foreign(Mapping { id, source }: &Mapping, region: &str) -> Finding {
    let source = source.as_deref().unwrap_or("a source without an ARN");
    let what = format!(
        "invokes the function with messages of {source}. The stack has no such mapping. The function refuses these messages, and each \
         takes a concurrent execution from a drain"
    );
    let to_do = "see who made the mapping, and delete it";
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

    async fn looked(status: u16, answer: Value) -> Check {
        let listed = call("GET /2015-03-31/event-source-mappings").says(status, answer);
        let context = TestContext::new(&[], [], [listed]);
        look(&context.itself, "us-east-1", Instant::now() + Duration::from_secs(60)).await
    }

    #[tokio::test(start_paused = true)]
    async fn function_without_mappings_has_no_finding() {
        let check = looked(200, json!({"EventSourceMappings": []})).await;
        assert_eq!((check.status, check.findings), (CheckStatus::Ok, Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn each_mapping_fails_the_check_with_the_command_that_deletes_it() {
        let queue = "arn:aws:sqs:us-east-1:999999999999:theirs";
        let mappings =
            json!([{"UUID": "a-1", "EventSourceArn": queue, "State": "Enabled"}, {"UUID": "a-2", "State": "Disabled"}]);
        let check = looked(200, json!({"EventSourceMappings": mappings})).await;
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
    }

    #[tokio::test(start_paused = true)]
    async fn denied_list_is_unknown() {
        let check = looked(403, serde_json::from_str(&json_error("AccessDeniedException")).unwrap()).await;
        assert_eq!((check.status, check.findings[0].id), (CheckStatus::Unknown, FindingId::EventSourcesUnknown));
    }
}
