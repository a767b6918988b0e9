//! Entry point of the drain function.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Serialize;
use serde_json::Value;
use spillway_core::invocation::Invocation;
use spillway_doctor::SelfTestReport;
use spillway_drainer::{Context, Failure};
use spillway_receipt::Receipt;
use spillway_settings::Settings;
use spillway_startup::aws::{self, Connections};
use spillway_startup::logs;

/// Serves invocations until Lambda ends the process. Fails if an environment variable or the credentials are missing.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start();
    let settings = Settings::from_variables(std::env::vars());
    if let Some(wrong) = &settings.wrong {
        tracing::error!(error = %wrong, "the function handles no notice: correct its settings");
    }
    let connections = Connections::new();
    let context = Context::from_environment(settings, &aws::configuration(&connections)?)?;
    let answer = |event: LambdaEvent<Value>| {
        connections.renew();
        Box::pin(respond(&context, event))
    };
    lambda_runtime::run(service_fn(answer)).await
}

/// Answer to Lambda: the receipt of a notice, or the report of a self-test.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Response {
    Receipt(Box<Receipt>),
    Report(SelfTestReport),
}

async fn respond(context: &Context, event: LambdaEvent<Value>) -> Result<Response, Failure> {
    let lambda_runtime::Context { request_id, invoked_function_arn, deadline, .. } = &event.context;
    let invocation = Invocation::begin(request_id, invoked_function_arn, *deadline);
    if let Some(request) = spillway_doctor::request(&event.payload) {
        let report = spillway_doctor::examine(context, &request, &invocation).await;
        return match context.settings.wrong.clone() {
            // Fails, because a new stack has no alarm on findings yet. Its alarm on drains counts failed invocations.
            Some(wrong) if request.ends_deployment => Err(Failure::Settings(wrong)),
            _ => Ok(Response::Report(report)),
        };
    }
    let receipt = spillway_drainer::handle(context, event.payload, &invocation).await?;
    Ok(Response::Receipt(Box::new(receipt)))
}
