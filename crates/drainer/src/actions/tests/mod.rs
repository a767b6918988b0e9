//! Each action alone: its requests to AWS and to the API server, and its outcome, also when they fail.

mod claim;
mod continue_next;
mod cordon;
mod drain;
mod dry_run;
mod fan_out;
mod identify;
mod launch;
mod lifecycle;
mod look_up_maintenance;
mod node_claim;
mod out_of_service;
mod pace;
mod postpone;
mod recheck_maintenance;
mod replacement;
mod targets;
mod uncordon;
mod undo_check;
mod volumes;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_core::decision::Reason;
use spillway_core::invocation::Invocation;
use spillway_core::outcome::{DrainOutcome, Outcome};
use spillway_core::test_support::maintenance;
use spillway_notice::{Deadline, Kind};
use spillway_receipt::Counts;
use spillway_settings::LifecycleResult::{Abandon, Continue};
use tokio::time::Instant;

use super::Next;
use super::drain::drain;
use crate::aws::CallError;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{AfterDrain, Fate, PodRecord, StepName};
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, no_volumes, node, pod, status, watched};
use crate::test_support::aws::{
    INVOKE, completed, described, ec2_error, group_described, heartbeat, hook_described, invoked, json_error,
    not_scheduled, put_event, query_error, scheduled, waits_no_more,
};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};
use crate::test_support::{at, instance, instance_id};

/// Node of another instance under the same name.
fn successor() -> Value {
    let mut node = node();
    node["spec"]["providerID"] = json!("aws:///us-east-1a/i-0fffffffffffffff0");
    node
}

fn read_node(node: impl ToString) -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, node)
}

fn no_node() -> Expected {
    call(format!("GET {NODE_PATH}")).says(404, status(404, "NotFound", "nodes"))
}

fn patch_node() -> Expected {
    call(format!("PATCH {NODE_PATH}"))
}

fn claim_node() -> Expected {
    patch_node().says(200, node())
}

fn uncordon_node() -> Expected {
    patch_node().with(r#""op":"remove","path":"/spec/unschedulable""#).says(200, node())
}

/// List of the node, with which its watch begins.
fn list_node(node: Value) -> Expected {
    call("GET /api/v1/nodes").with("metadata.name").without("watch=true").says(200, list("Node", &[node]))
}

fn watch_node() -> Expected {
    call("GET /api/v1/nodes").with("metadata.name").with("watch=true")
}

fn list_pods(pods: &[Value]) -> Expected {
    call("GET /api/v1/pods").with("spec.nodeName").without("watch=true").says(200, list("Pod", pods))
}

fn watch_pods(lines: &[Value]) -> Expected {
    call("GET /api/v1/pods").with("watch=true").with("resourceVersion=7").streams(lines)
}

fn eviction(name: &str) -> Expected {
    let evicted = call(format!("POST /api/v1/namespaces/shop/pods/{name}/eviction")).with(format!("uid-{name}"));
    evicted.without("dryRun").says(201, json!({"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201}))
}

/// Refusal of a webhook with that code.
fn denied_by_webhook(code: u16) -> String {
    status(code, "", "nodes").replace("why", "admission webhook 'w' denied the request")
}

/// Answer of Auto Scaling to a heartbeat of a hook that is over.
fn hook_over() -> Expected {
    call("RecordLifecycleActionHeartbeat").says(400, waits_no_more())
}

/// EC2's description of the instance's status with these events.
fn scheduled_events(events: &str) -> Expected {
    let status = format!("<item><instanceId>{}</instanceId><eventsSet>{events}</eventsSet></item>", instance_id());
    let answer = format!("<instanceStatusSet>{status}</instanceStatusSet>");
    call("DescribeInstanceStatus")
        .says(200, format!("<DescribeInstanceStatusResponse>{answer}</DescribeInstanceStatusResponse>"))
}

/// Drains the case's node. Heartbeats are sent only by [`drain_held`].
async fn drain_case(context: &TestContext, case: &Case) -> (Result<Next, Failure>, Record) {
    let (attempt, mut record) = (case.attempt(context).await, Record::default());
    let outcome = Box::pin(drain(context, &case.target(&attempt), &mut record)).await;
    (outcome, record)
}

async fn drain_held(context: &TestContext, case: &Case) -> (Result<Next, Failure>, Record) {
    let (attempt, mut record) = (case.attempt(context).await, Record::default());
    let target = case.target(&attempt);
    let outcome = attempt.with_heartbeats(Box::pin(drain(context, &target, &mut record))).await;
    (outcome, record)
}

/// Second of a step.
fn second(record: &Record, step: StepName) -> i64 {
    record.steps.iter().find(|(done, _)| *done == step).unwrap().1.as_second()
}

/// Outcome of a drain of so many pods, all of which have left.
fn drained(moved: usize) -> Next {
    let counts = Counts { moved, lost: 0, unconfirmed: 0 };
    DrainOutcome::Drained { node: NODE.to_owned(), counts }.into()
}

/// Outcome of an action that is over.
fn done(next: Next) -> Outcome {
    match next {
        Next::Done(outcome) => outcome,
        Next::DecideAgain(_) => panic!("{next:?}"),
    }
}
