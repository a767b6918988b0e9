//! Calls of the function to AWS.

use std::mem;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_drainer::doubles::aws::{AwsCall, eks_cluster, groups, hooks, instances, json_error, query_error};
use tokio::time::Instant;

use super::actions::group;
use super::{ActionResult, Aws, AwsEvent};
use crate::event::Effects;
use crate::fact::Fact;
use crate::lambda::{AttemptId, LambdaEvent};
use crate::plan::CLUSTERS;

/// A schedule, numbered because a name may be used again.
#[derive(Debug)]
pub(super) struct Schedule {
    number: u32,
    event: Value,
}

/// Status and body.
pub(crate) type AwsAnswer = (u16, String);

/// Endpoint of a cluster's API server.
pub(crate) fn endpoint(cluster: &str) -> String {
    format!("https://{cluster}.gr7.us-east-1.eks.amazonaws.com")
}

impl Aws {
    pub(crate) fn answer(&mut self, by: AttemptId, call: &AwsCall) -> (AwsAnswer, Effects) {
        if self.plan.replaces()
            && let Some(answer) = self.answer_replacement(by, call)
        {
            return (answer, mem::take(&mut self.effects));
        }
        let answer = match (call.name.as_str(), call.name.split_once(' ')) {
            ("DescribeInstances", _) => self.describe(call.parameter("InstanceId.1").unwrap_or_default()),
            ("DescribeInstanceStatus", _) => {
                self.scheduled_events(call.parameter("Filter.2.Value.1").unwrap_or_default())
            }
            ("DescribeLifecycleHooks", _) => {
                let timeout = self.plan.hook_timeout.as_secs();
                (200, hooks(timeout, timeout * 100))
            }
            ("DescribeAutoScalingGroups", _) => (200, groups(false)),
            ("RecordLifecycleActionHeartbeat" | "CompleteLifecycleAction", _) => self.of_action(by, call),
            ("PutEvents", _) => (200, json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}).to_string()),
            (_, Some(("GET", path))) if path.starts_with("/clusters/") => {
                (200, eks_cluster(&endpoint(path.trim_start_matches("/clusters/"))))
            }
            (_, Some(("POST", path))) if path.contains("/functions/") => {
                self.invoke(serde_json::from_str(&call.body).unwrap_or_default());
                (202, String::new())
            }
            (_, Some((method, path))) if path.starts_with("/schedules/") => {
                self.schedule(method, path.trim_start_matches("/schedules/"), &call.body)
            }
            (name, _) => panic!("unknown call {name}: {}", call.body),
        };
        (answer, mem::take(&mut self.effects))
    }

    /// Cancelled maintenance of an instance: EC2 still lists it.
    fn scheduled_events(&self, id: &str) -> AwsAnswer {
        let event = self.called_off.get(id).map_or_else(String::new, |starts| {
            format!(
                "<item><instanceId>{id}</instanceId><eventsSet><item><instanceEventId>e-{id}</instanceEventId>\
                 <code>system-reboot</code><description>[Canceled] maintenance</description>\
                 <notBefore>{starts}</notBefore></item></eventsSet></item>"
            )
        });
        let answer = format!("<instanceStatusSet>{event}</instanceStatusSet>");
        (200, format!("<DescribeInstanceStatusResponse>{answer}</DescribeInstanceStatusResponse>"))
    }

    /// Describes an instance as it was a while ago.
    fn describe(&mut self, id: &str) -> AwsAnswer {
        let behind = self.dice.ms(0..2000);
        let behind = if self.dice.perhaps(50) { behind * 10 } else { behind };
        let Some(instance) = self.instances.get(id) else {
            return (400, query_error("InvalidInstanceID.NotFound", "unknown instance"));
        };
        let state = instance.was(Instant::now().checked_sub(behind).unwrap_or_else(Instant::now));
        let dns_name = if state == "terminated" { "" } else { &instance.dns_name };
        let tag = |key: &str, value: &str| format!("<item><key>{key}</key><value>{value}</value></item>");
        let number = instance.node.cluster;
        let manager = if self.plan.is_karpenters(id) {
            tag("karpenter.sh/nodepool", "default")
        } else {
            tag("aws:autoscaling:groupName", &group(number))
        };
        let cluster = if self.plan.is_managed(id) {
            tag("aws:eks:cluster-name", CLUSTERS[number]) + &tag("eks:nodegroup-name", "blue")
        } else {
            tag(&format!("kubernetes.io/cluster/{}", CLUSTERS[number]), "owned")
        };
        let (spot_request, replaced) = self.replacement_members(id);
        let item = format!(
            "<item><instanceId>{id}</instanceId>{spot_request}<privateDnsName>{dns_name}</privateDnsName><instanceState>\
             <name>{state}</name></instanceState><placement><availabilityZone>us-east-1a</availabilityZone></placement>\
             <tagSet>{cluster}{manager}{replaced}</tagSet></item>"
        );
        (200, instances(&item))
    }

    /// Heartbeat or completion of a lifecycle action.
    fn of_action(&mut self, by: AttemptId, call: &AwsCall) -> AwsAnswer {
        let token = call.parameter("LifecycleActionToken").unwrap_or_default();
        if call.name == "CompleteLifecycleAction" {
            self.effects.fact(Fact::HookCompleted { by, token: token.to_owned(), waits: self.is_waiting(token) });
        }
        if !self.is_waiting(token) {
            let why = format!("No active Lifecycle Action found with token {token}");
            return (400, query_error("ValidationError", &why));
        }
        if call.name == "CompleteLifecycleAction" {
            self.end_action(token, ActionResult::Completed);
        } else {
            self.hold_action(token);
        }
        let name = &call.name;
        (200, format!("<{name}Response></{name}Response>"))
    }

    /// Invokes the function, for itself or for a schedule.
    fn invoke(&mut self, event: Value) {
        let after = self.dice.ms(20..1500);
        self.effects.now(LambdaEvent::Sent { event, after });
    }

    fn schedule(&mut self, method: &str, name: &str, body: &str) -> AwsAnswer {
        match (method, self.schedules.contains_key(name)) {
            ("POST", true) => return (409, json_error("ConflictException")),
            ("PUT" | "DELETE", false) => return (404, json_error("ResourceNotFoundException")),
            ("DELETE", true) => {
                self.schedules.remove(name);
                return (200, "{}".to_owned());
            }
            _ => {}
        }
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let expression = body["ScheduleExpression"].as_str().unwrap_or_default();
        let at = expression.trim_start_matches("at(").trim_end_matches(')');
        let at: Timestamp = format!("{at}Z").parse().expect("an at expression has a time");
        let Ok(ahead) = Duration::try_from(at.duration_since(self.clock.now())) else {
            return (400, json_error("ValidationException"));
        };
        let event = serde_json::from_str(body["Target"]["Input"].as_str().unwrap_or_default()).unwrap_or_default();
        self.last_schedule += 1;
        let number = self.last_schedule;
        self.schedules.insert(name.to_owned(), Schedule { number, event });
        let late = self.dice.ms(0..60_000);
        self.effects.after(ahead + late, AwsEvent::ScheduleDue { name: name.to_owned(), number });
        (200, json!({"ScheduleArn": "arn"}).to_string())
    }

    /// Fires a schedule, unless it was moved or deleted.
    pub(super) fn fire(&mut self, name: String, number: u32) {
        if self.schedules.get(&name).is_none_or(|schedule| schedule.number != number) {
            return;
        }
        let event = self.schedules.remove(&name).map(|schedule| schedule.event).unwrap_or_default();
        self.effects.fact(Fact::ScheduleFired { name });
        self.invoke(event);
    }
}
