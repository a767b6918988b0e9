//! Finds nodes with the taint `spillway/planned` but without a scheduled drain.

use std::collections::BTreeMap;

use spillway_core::node::taint::PLANNED;
use spillway_drainer::Context;
use spillway_notice::InstanceId;
use tokio::time::Instant;

use super::fleet::NodeName;
use crate::catalogue::FindingId;
use crate::report::{Finding, Severity, counted};
use crate::retry_end;

pub(super) async fn run_check(
    context: &Context,
    tainted: &BTreeMap<NodeName, InstanceId>,
    end: Instant,
) -> Option<Finding> {
    let mut left = Vec::new();
    for (node, instance) in tainted {
        match context.scheduled_for(instance, retry_end(end)).await {
            Ok(times) if times.is_empty() => left.push(node),
            Ok(_) => {}
            Err(failure) => {
                let what = format!("with the taint {PLANNED} have unknown schedules: {}", failure.text());
                let to_do = "run the doctor again";
                return Some(Finding::new(FindingId::PlannedTaintLeft, Severity::Unknown, "nodes", what, to_do));
            }
        }
    }
    let names: Vec<&str> = left.iter().map(AsRef::as_ref).collect();
    let what = format!("the taint {PLANNED} keeps pods away, but no drain is scheduled: the maintenance is cancelled");
    let command = format!("kubectl taint nodes {} {PLANNED}-", names.join(" "));
    (!left.is_empty()).then(|| {
        Finding::new(FindingId::PlannedTaintLeft, Severity::Warn, counted(left.len(), "node"), what, "remove the taint")
            .on(left.iter().copied())
            .with_command(command)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::TestContext;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tainted_node_without_a_schedule_is_found() {
        let list = |schedules: serde_json::Value| call("GET /schedules").says(200, json!({"Schedules": schedules}));
        let (waits, left) = ("i-0123456789abcdef0", "i-0123456789abcdef1");
        let schedule = call("GET /schedules/M-1").says(200, json!({"ScheduleExpression": "at(2026-12-24T02:00:00)"}));
        let aws = [list(json!([{"Name": "M-1"}])), schedule, list(json!([]))];
        let context = TestContext::new(&[], [], aws);
        let tainted = [("n-1", waits), ("n-2", left)]
            .map(|(node, instance)| (NodeName::from(node), InstanceId::parse(instance).unwrap()));
        let end = Instant::now() + Duration::from_mins(1);
        let finding = run_check(&context, &tainted.into(), end).await.unwrap();
        assert_eq!(finding.command.as_deref(), Some("kubectl taint nodes n-2 spillway/planned-"));
    }
}
