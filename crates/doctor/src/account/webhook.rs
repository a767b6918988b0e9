//! Whether messages would be sent: the announcer is asked about the webhook's document, which it alone may read.

use spillway_drainer::Context;
use spillway_drainer::aws::{self, CallError, itself::INVOKE};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, PUT_BACK, Severity};

const ID: CheckId = CheckId::Webhook;

/// The check. Asked until `end`.
pub(super) async fn look(context: &Context, end: Instant) -> Check {
    let Some(announcer) = &context.announcer else {
        return Check::skipped(ID, "there is no webhook: the parameter Webhook is empty");
    };
    match aws::until(INVOKE, asked_until(end), || announcer.wrong()).await {
        Ok(wrong) => {
            let what = if wrong.is_empty() {
                "the announcer can read the webhook's document"
            } else {
                "no message reaches the webhook"
            };
            Check::made(ID, what, wrong.iter().map(|why| cannot_be_used(why)).collect())
        }
        Err(error) => unknown(&error),
    }
}

fn cannot_be_used(why: &str) -> Finding {
    let what =
        format!("{why}. No drain is affected; messages wait in their queue for half an hour, and are then undelivered");
    let to_do = "correct what the parameter Webhook names: docs/announcements.md has what the document may be, and a message \
                 to test it with";
    Finding::new(FindingId::WebhookUnusable, Severity::Warn, "the webhook's document", what, to_do)
}

fn unknown(error: &CallError) -> Check {
    let what = format!("the announcer does not say whether it can read the webhook's document: {}", chain(error));
    let finding = Finding::new(FindingId::WebhookUnknown, Severity::Unknown, INVOKE, &what, PUT_BACK);
    Check::made(ID, &what, vec![finding])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::TestContext;

    use super::*;
    use crate::report::CheckStatus;

    async fn looked(answer: Value) -> Check {
        let asked = call("POST /2015-03-31/functions/messages/invocations").with("Spillway Doctor").says(200, answer);
        let context = TestContext::new(&[("SPILLWAY_ANNOUNCER", "messages")], [], [asked]);
        look(&context, Instant::now() + Duration::from_secs(60)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_that_can_be_used_has_no_finding() {
        assert_eq!(looked(json!({"wrong": []})).await.status, CheckStatus::Ok);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_wrong_with_the_document_is_told_in_the_announcers_words() {
        let check = looked(json!({"wrong": ["the webhook's document /hook has no \"url\""]})).await;
        assert_eq!((check.status, check.findings[0].id), (CheckStatus::Warn, FindingId::WebhookUnusable));
        assert!(check.findings[0].what.starts_with("the webhook's document /hook has no \"url\". "), "{check:#?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_announcer_that_fails_leaves_it_unknown_and_is_quoted() {
        let check = looked(json!({"errorType": "Runtime.ExitError", "errorMessage": "it ended"})).await;
        assert_eq!(check.status, CheckStatus::Unknown);
        assert!(check.findings[0].what.ends_with("it ended"), "{check:#?}");
    }

    #[tokio::test]
    async fn without_a_webhook_nobody_is_asked() {
        let context = TestContext::new(&[], [], []);
        assert_eq!(look(&context, Instant::now()).await.status, CheckStatus::Skipped);
    }
}
