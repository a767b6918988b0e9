//! Expected calls to AWS.

use serde_json::json;

use super::instance_id;
use super::script::{Expected, call};
pub(crate) use crate::doubles::aws::{ec2_error, instances, json_error, query_error};
use crate::doubles::aws::{groups, hooks};
pub(crate) use crate::doubles::scripted::put_event;

/// EC2 describes the instance with a state and tags.
pub(crate) fn described(state: &str, tags: &[(&str, &str)]) -> Expected {
    let tag = |(key, value): &(&str, &str)| format!("<item><key>{key}</key><value>{value}</value></item>");
    let tags: String = tags.iter().map(tag).collect();
    let instance = format!(
        "<item><instanceId>{}</instanceId><instanceState><name>{state}</name></instanceState>\
         <placement><availabilityZone>us-east-1a</availabilityZone></placement><tagSet>{tags}</tagSet></item>",
        instance_id()
    );
    call("DescribeInstances").says(200, instances(&instance))
}

/// Auto Scaling describes the hook, with a timeout of 300 s.
pub(crate) fn hook_described() -> Expected {
    hook_described_for(300)
}

/// Auto Scaling describes the hook, with this timeout in seconds.
pub(crate) fn hook_described_for(timeout: u64) -> Expected {
    call("DescribeLifecycleHooks").says(200, hooks(timeout, 100 * timeout)).perhaps()
}

/// Auto Scaling describes the hook's group.
pub(crate) fn group_described(keeps_abandoned: bool) -> Expected {
    call("DescribeAutoScalingGroups").with("IncludeInstances=false").says(200, groups(keeps_abandoned)).at_any_time()
}

/// Auto Scaling accepts a heartbeat.
pub(crate) fn heartbeat() -> Expected {
    call("RecordLifecycleActionHeartbeat")
        .says(200, "<RecordLifecycleActionHeartbeatResponse></RecordLifecycleActionHeartbeatResponse>")
}

/// Auto Scaling accepts a completion with this result.
pub(crate) fn completed(result: &str) -> Expected {
    call("CompleteLifecycleAction")
        .with(format!("LifecycleActionResult={result}"))
        .with(format!("InstanceId={}", instance_id()))
        .says(200, "<CompleteLifecycleActionResponse></CompleteLifecycleActionResponse>")
}

/// Answer of Auto Scaling for an action that is over.
pub(crate) fn waits_no_more() -> String {
    query_error("ValidationError", "No active Lifecycle Action found with instance ID i-1")
}

/// Lambda accepts a continuation.
pub(crate) fn invoked() -> Expected {
    call(INVOKE).with("spillway-continuation").says(202, "")
}

pub(crate) const INVOKE: &str = "POST /2015-03-31/functions/drain/invocations";

/// Scheduler has no schedule with this name to delete.
pub(crate) fn not_scheduled(name: &str) -> Expected {
    call(format!("DELETE /schedules/{name}")).says(404, json_error("ResourceNotFoundException"))
}

/// Scheduler accepts a schedule with this name.
pub(crate) fn scheduled(name: &str) -> Expected {
    call(format!("POST /schedules/{name}")).says(200, json!({"ScheduleArn": "arn"}))
}
