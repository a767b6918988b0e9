//! The calls that a script of AWS has.

use serde_json::json;

use super::instance_id;
use super::script::{Expected, call};
pub(crate) use crate::doubles::aws::{ec2_error, instances, json_error, query_error};
use crate::doubles::aws::{groups, hooks};
pub(crate) use crate::doubles::scripted::put_event;

/// EC2 is asked for the instance, and describes it in a state and with tags.
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

/// Auto Scaling is asked for the hook, which waits for 300 s after each heartbeat, beside all else.
pub(crate) fn hook_described() -> Expected {
    hook_described_for(300)
}

/// The same with that timeout in seconds.
pub(crate) fn hook_described_for(timeout: u64) -> Expected {
    call("DescribeLifecycleHooks").says(200, hooks(timeout, 100 * timeout)).perhaps()
}

/// Auto Scaling is asked for the hook's group, while the node is claimed.
pub(crate) fn group_described(keeps_abandoned: bool) -> Expected {
    call("DescribeAutoScalingGroups").with("IncludeInstances=false").says(200, groups(keeps_abandoned)).at_any_time()
}

/// Auto Scaling gets a heartbeat.
pub(crate) fn heartbeat() -> Expected {
    call("RecordLifecycleActionHeartbeat")
        .says(200, "<RecordLifecycleActionHeartbeatResponse></RecordLifecycleActionHeartbeatResponse>")
}

/// Auto Scaling gets that result.
pub(crate) fn completed(result: &str) -> Expected {
    call("CompleteLifecycleAction")
        .with(format!("LifecycleActionResult={result}"))
        .with(format!("InstanceId={}", instance_id()))
        .says(200, "<CompleteLifecycleActionResponse></CompleteLifecycleActionResponse>")
}

/// The same calls answered: nobody waits any more.
pub(crate) fn waits_no_more() -> String {
    query_error("ValidationError", "No active Lifecycle Action found with instance ID i-1")
}

/// The function is invoked with such a continuation.
pub(crate) fn invoked() -> Expected {
    call(INVOKE).with("spillway-continuation").says(202, "")
}

/// Lambda's call.
pub(crate) const INVOKE: &str = "POST /2015-03-31/functions/drain/invocations";

/// Scheduler has no schedule of that name to take away.
pub(crate) fn not_scheduled(name: &str) -> Expected {
    call(format!("DELETE /schedules/{name}")).says(404, json_error("ResourceNotFoundException"))
}

/// Scheduler takes a schedule of that name.
pub(crate) fn scheduled(name: &str) -> Expected {
    call(format!("POST /schedules/{name}")).says(200, json!({"ScheduleArn": "arn"}))
}
