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
//! * `ending`, `receipt` and `announce`: what happened, and its views
//!
//! This file wires them and nothing else.

mod acts;
mod announce;
mod attempt;
mod aws;
mod backoff;
mod clock;
mod cluster;
mod decision;
mod drain;
mod ending;
mod environment;
mod failure;
mod handler;
mod instance;
mod interruption;
mod invocation;
mod karpenter;
mod kubernetes;
mod later;
mod lifecycle;
mod logs;
mod managed;
mod node;
mod receipt;
mod settings;

use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

use crate::cluster::Access;
use crate::handler::Spillway;
use crate::later::schedule::Scheduler;
use crate::settings::Settings;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start();
    let settings = Settings::from_variables(std::env::vars()).inspect_err(|error| {
        tracing::error!(error = %error, "the function does not start: mend its settings");
    })?;
    let aws = environment::configuration()?;
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
        },
    };
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| spillway.handle(event))).await
}
