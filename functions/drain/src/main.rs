//! The drain function: a notice in, a drained node out.
//!
//! # Layout
//! Read `handler` first: it tells what happens to a notice, in order. Each step is a file:
//! * `interruption`: each notice's JSON → what it means for one instance (pure)
//! * `instance`: EC2: who is this instance, which cluster, whose node
//! * `decision`: what is to be done, or the reason why nothing is (pure)
//! * `attempt`: one interruption in one invocation
//! * `acts`: a file for each thing that may be done
//! * `cluster`: EKS: a Kubernetes client
//! * `node`: find the node, check it, claim it
//! * `drain`: plan, evict, watch
//! * `karpenter`: hand a node to Karpenter
//! * `lifecycle`: Auto Scaling: heartbeat, complete
//! * `later`: EventBridge and its Scheduler: go on in a later invocation, or at a time
//! * `bus`: our own events on the event bus
//! * `ending`, `receipt` and `announce`: what happened, and its views
//! * `requests`: how many requests go over the wire
//! * `emf`: CloudWatch metrics as a line of the log
//! * `doctor`: would the next notice be handled? Beside the story; `answer` tells the two kinds of events apart
//!
//! This file wires them and nothing else.

mod acts;
mod announce;
mod answer;
mod attempt;
mod aws;
mod backoff;
mod bus;
mod clock;
mod cluster;
mod decision;
mod doctor;
mod drain;
mod emf;
mod ending;
mod failure;
mod handler;
mod instance;
mod interruption;
mod invocation;
mod karpenter;
mod kubernetes;
mod later;
mod lifecycle;
mod managed;
mod node;
mod pod;
mod receipt;
mod requests;
#[cfg(test)]
mod schema;
mod settings;

use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use spillway_startup::logs;

use crate::answer::answer;
use crate::cluster::Access;
use crate::handler::Spillway;
use crate::later::schedule::Scheduler;
use crate::requests::Sent;
use crate::settings::Settings;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start(&["spillway_drain"]);
    let settings = Settings::from_variables(std::env::vars()).inspect_err(|error| {
        tracing::error!(error = %error, "the function does not start: mend its settings");
    })?;
    let aws = spillway_startup::aws::configuration()?;
    let sent = Sent::default();
    let http = sent.counting(aws.http_client().ok_or("the AWS configuration has no HTTP client")?);
    let aws = aws.into_builder().http_client(http).build();
    let region = aws.region().ok_or("AWS_REGION is not set")?.to_string();
    let scheduler = Scheduler::new(aws_sdk_scheduler::Client::new(&aws), settings.schedules.as_ref(), &region);
    let spillway = Spillway {
        settings,
        ec2: aws_sdk_ec2::Client::new(&aws),
        autoscaling: aws_sdk_autoscaling::Client::new(&aws),
        eventbridge: aws_sdk_eventbridge::Client::new(&aws),
        scheduler,
        access: Access {
            clusters: Arc::new(spillway_eks::Clusters::new(aws_sdk_eks::Client::new(&aws))),
            credentials: aws.credentials_provider().ok_or("the function has no AWS credentials")?,
            region,
            sent: sent.kubernetes.clone(),
        },
        sent,
    };
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| answer(&spillway, event))).await
}
