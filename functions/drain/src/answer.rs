//! What the function answers to an event: to a notice its receipt, to who asks for the doctor the report.

use lambda_runtime::LambdaEvent;
use serde::Serialize;
use serde_json::Value;

use crate::doctor::{self, Report};
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::invocation::Invocation;
use crate::receipt::Receipt;

/// The answer.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Receipt(Box<Receipt>),
    Report(Report),
}

/// Answers one event. An error keeps it.
pub(crate) async fn answer(spillway: &Spillway, event: LambdaEvent<Value>) -> Result<Answer, Failure> {
    let invocation = Invocation::begin(&event.context);
    match doctor::order(&event.payload) {
        Some(order) => Ok(Answer::Report(spillway.examine(&order, &invocation).await)),
        None => spillway.handle(event.payload, &invocation).await.map(|receipt| Answer::Receipt(Box::new(receipt))),
    }
}
