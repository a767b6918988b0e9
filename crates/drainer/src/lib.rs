//! The drain function: a notice in, a drained node out.
//!
//! # Layout
//! Read `handler` first: it tells what happens to a notice, in order. What a notice says is read by the crate
//! `spillway-notice`, what was chosen by `spillway-settings`. The rooms, from the ground up; none imports a later one:
//! * `invocation`: one invocation, its clock, what it keeps back for its end
//! * `aws`: EC2, Auto Scaling's lifecycle hooks, load balancers, the event bus, Lambda
//! * `decision`: what is to be done, or the reason why nothing is (pure)
//! * `kube`: calls to the API server, watches, pods as a drain reads them
//! * `node`: find the node, claim it, watch it, uncordon it
//! * `failure`: what makes an invocation fail
//! * `drain`: plan, evict, watch
//! * `continuation`: going on in a later invocation, or at a time
//! * `receipt`: what happened, as the one record of it
//! * `context`: the clients, and what one notice is about
//! * `publish`: the receipt's views: log, metrics, events
//! * `actions`: a file for each thing that may be done
//! * `handler`: the story
//! * `self_test`: would the next notice be handled?

mod actions;
mod aws;
mod context;
mod continuation;
mod decision;
mod drain;
mod failure;
mod handler;
mod invocation;
mod kube;
mod node;
mod publish;
mod receipt;
mod self_test;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod test_support;

use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Serialize;
use serde_json::Value;
use spillway_aws_call::Caller;
use spillway_receipt::Receipt;
use spillway_settings::Settings;

use crate::aws::itself::Itself;
use crate::context::Context;
use crate::context::cluster::{Access, OneConnection};
use crate::continuation::schedule::Scheduler;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::self_test::SelfTestReport;

/// Serves invocations until Lambda ends the process. Fails if a setting is wrong or the environment lacks something.
pub async fn run(variables: impl Iterator<Item = (String, String)>) -> Result<(), Error> {
    let settings = Settings::from_variables(variables).inspect_err(|error| {
        tracing::error!(error = %error, "the function does not start: correct its settings");
    })?;
    let aws = spillway_startup::aws::configuration()?;
    let region = aws.region().ok_or("AWS_REGION is not set")?.to_string();
    let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME").map_err(|_| "AWS_LAMBDA_FUNCTION_NAME is not set")?;
    let credentials = aws.credentials_provider().ok_or("the function has no AWS credentials")?;
    let itself = Itself::new(Caller::new(&aws)?, &function);
    let client = aws_sdk_scheduler::Client::new(&aws);
    let scheduler = Scheduler::new(client, settings.schedules.as_ref(), (&region, &function));
    let context = Context {
        settings,
        ec2: aws_sdk_ec2::Client::new(&aws),
        autoscaling: aws_sdk_autoscaling::Client::new(&aws),
        load_balancing: aws_sdk_elasticloadbalancingv2::Client::new(&aws),
        eventbridge: aws_sdk_eventbridge::Client::new(&aws),
        itself,
        scheduler,
        access: Access {
            clusters: Arc::new(spillway_eks::Clusters::new(aws_sdk_eks::Client::new(&aws))),
            credentials,
            region,
            connector: Box::new(OneConnection),
        },
    };
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| Box::pin(respond(&context, event)))).await
}

/// What the function answers to an event: to a notice its receipt, to who asks for a self-test the report.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Response {
    Receipt(Box<Receipt>),
    Report(SelfTestReport),
}

/// Answers one event. An error keeps it.
async fn respond(context: &Context, event: LambdaEvent<Value>) -> Result<Response, Failure> {
    let invocation = Invocation::begin(&event.context);
    if let Some(request) = self_test::request(&event.payload) {
        return Ok(Response::Report(self_test::examine(context, &request, &invocation).await));
    }
    let receipt = handler::handle(context, event.payload, &invocation).await?;
    Ok(Response::Receipt(Box::new(receipt)))
}
