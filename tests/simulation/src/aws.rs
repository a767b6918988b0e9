//! AWS in memory, behind the SDK's clients: instances, lifecycle actions, the event bus, schedules.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_drainer::doubles::REGION;
use spillway_drainer::doubles::aws::{AwsCall, AwsDouble, eks_cluster, hooks, instances, json_error, query_error};
use tokio::time::Instant;

use crate::draw::Side;
use crate::lambda::{ACCOUNT, AttemptId};
use crate::network::{Passage, pass};
use crate::world::{Shared, World};

/// Auto Scaling's hook of ours, and its group.
pub(crate) const HOOK: &str = "spillway";
pub(crate) const GROUP: &str = "workers";

/// Everything that AWS has.
#[derive(Debug, Default)]
pub(crate) struct Aws {
    pub(crate) instances: BTreeMap<String, Instance>,
    pub(crate) actions: BTreeMap<String, Action>,
    schedules: BTreeMap<String, Schedule>,
    next_event: u32,
    next_schedule: u32,
}

/// An instance, and its node.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) node: String,
    dns_name: String,
    /// In which states it has been, and since when.
    states: Vec<(Instant, &'static str)>,
    pub(crate) kubelet_runs: bool,
    /// How often it has booted.
    pub(crate) boots: u32,
}

/// A lifecycle action that waits, or has.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) instance: String,
    /// What the group does next, whatever it is told.
    pub(crate) then: Then,
    /// When it was begun.
    pub(crate) since: Instant,
    pub(crate) until: Instant,
    pub(crate) in_all: Instant,
    pub(crate) result: Option<ActionResult>,
}

/// What a group does with an instance after its hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    End,
    /// It stops, and is taken back after a time.
    Stop(Duration),
    /// It is in service.
    Serve,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionResult {
    Completed,
    /// Nobody answered.
    Expired,
    /// Its instance has gone before.
    Gone,
}

#[derive(Debug)]
struct Schedule {
    number: u32,
    event: Value,
}

impl Aws {
    /// Whether the kubelet of that node reports.
    pub(crate) fn kubelet_runs(&self, node: &str) -> bool {
        self.instances.values().any(|instance| instance.node == node && instance.kubelet_runs)
    }
}

impl Instance {
    pub(crate) fn running(node: &str, dns_name: &str) -> Self {
        let states = vec![(Instant::now(), "running")];
        Self { node: node.to_owned(), dns_name: dns_name.to_owned(), states, kubelet_runs: true, boots: 0 }
    }

    /// Its state now.
    pub(crate) fn state(&self) -> &'static str {
        self.states.last().map_or("running", |(_, state)| state)
    }

    pub(crate) fn becomes(&mut self, state: &'static str) {
        self.states.push((Instant::now(), state));
    }

    fn was(&self, at: Instant) -> &'static str {
        self.states.iter().rfind(|(since, _)| *since <= at).map_or("running", |(_, state)| state)
    }
}

/// The AWS of a world.
pub(crate) fn double(world: &Shared) -> AwsDouble {
    let world = world.clone();
    AwsDouble::new(move |call| {
        let (world, attempt) = (world.clone(), AttemptId::current());
        async move {
            let line = format!("{} {}", call.name, call.body);
            let passage = pass(&world, Side::Aws, attempt, &line, || {
                let mut inside = world.lock();
                let answer = answer(&mut inside, attempt, &call);
                inside.note(|| format!("  {attempt}   answered {answer:?}"));
                answer
            });
            match passage.await {
                Passage::Answered(answer) => Some(answer),
                Passage::Refused | Passage::Unauthorized => Some((503, query_error("Throttling", "Rate exceeded"))),
                Passage::Lost => None,
            }
        }
    })
}

fn answer(world: &mut World, attempt: AttemptId, call: &AwsCall) -> (u16, String) {
    let done = |name: &str| (200, format!("<{name}Response></{name}Response>"));
    match call.name.as_str() {
        "DescribeInstances" => describe(world, call.parameter("InstanceId.1").unwrap_or_default()),
        "DescribeLifecycleHooks" => {
            let timeout = world.plan.hook_timeout.as_secs();
            (200, hooks(timeout, timeout * 100))
        }
        "RecordLifecycleActionHeartbeat" | "CompleteLifecycleAction" => {
            let token = call.parameter("LifecycleActionToken").unwrap_or_default();
            let waits = world.aws.actions.get(token).is_some_and(|action| action.result.is_none());
            if !waits {
                let why = format!("No active Lifecycle Action found with token {token}");
                return (400, query_error("ValidationError", &why));
            }
            if call.name == "CompleteLifecycleAction" {
                world.witness_completion(attempt, token);
                world.end_action(token, ActionResult::Completed);
            } else {
                world.hold_action(token);
            }
            done(&call.name)
        }
        "PutEvents" => (200, json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}).to_string()),
        name => match name.split_once(' ') {
            Some(("GET", path)) if path.starts_with("/clusters/") => (200, eks_cluster()),
            Some((method, path)) if path.starts_with("/schedules/") => {
                schedule(world, method, path.trim_start_matches("/schedules/"), &call.body)
            }
            Some(("POST", path)) if path.contains("/functions/") => {
                own_event(world, &serde_json::from_str(&call.body).unwrap_or_default());
                (202, String::new())
            }
            _ => panic!("nobody answers {name}: {}", call.body),
        },
    }
}

/// What EC2 says of an instance: what was so a while ago.
fn describe(world: &mut World, id: &str) -> (u16, String) {
    let behind = world.ms(0..2000);
    let behind = if world.perhaps(50) { behind * 10 } else { behind };
    let Some(instance) = world.aws.instances.get(id) else {
        return (400, query_error("InvalidInstanceID.NotFound", "there is none"));
    };
    let state = instance.was(Instant::now().checked_sub(behind).unwrap_or_else(Instant::now));
    let dns_name = if state == "terminated" { "" } else { &instance.dns_name };
    let item = format!(
        "<item><instanceId>{id}</instanceId><privateDnsName>{dns_name}</privateDnsName><instanceState><name>{state}</name>\
         </instanceState><placement><availabilityZone>us-east-1a</availabilityZone></placement><tagSet><item>\
         <key>aws:eks:cluster-name</key><value>prod</value></item><item><key>aws:autoscaling:groupName</key><value>{GROUP}</value>\
         </item></tagSet></item>"
    );
    (200, instances(&item))
}

/// The function has itself invoked, or a schedule does.
fn own_event(world: &mut World, event: &Value) {
    let after = world.ms(20..1500);
    world.deliver(event, after);
}

fn schedule(world: &mut World, method: &str, name: &str, body: &str) -> (u16, String) {
    let exists = world.aws.schedules.contains_key(name);
    match (method, exists) {
        ("POST", true) => return (409, json_error("ConflictException")),
        ("PUT" | "DELETE", false) => return (404, json_error("ResourceNotFoundException")),
        ("DELETE", true) => {
            world.aws.schedules.remove(name);
            world.busy -= 1;
            return (200, "{}".to_owned());
        }
        _ => {}
    }
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let expression = body["ScheduleExpression"].as_str().unwrap_or_default();
    let at = expression.trim_start_matches("at(").trim_end_matches(')');
    let at: Timestamp = format!("{at}Z").parse().expect("it is a time");
    if at <= world.now() {
        return (400, json_error("ValidationException"));
    }
    let target = &body["Target"];
    let input: Value = serde_json::from_str(target["Input"].as_str().unwrap_or_default()).unwrap_or_default();
    world.aws.next_schedule += 1;
    let number = world.aws.next_schedule;
    world.busy += usize::from(!exists);
    world.aws.schedules.insert(name.to_owned(), Schedule { number, event: input });
    let (name, late) = (name.to_owned(), world.ms(0..60_000));
    let after = Duration::try_from(at.duration_since(world.now())).unwrap_or_default() + late;
    world.later(after, move |world| world.fire(&name, number));
    (200, json!({"ScheduleArn": "arn"}).to_string())
}

impl World {
    /// An event as EventBridge delivers it, of now.
    pub(crate) fn event(&mut self, source: &str, detail_type: &str, detail: &Value) -> Value {
        self.aws.next_event += 1;
        json!({"version": "0", "id": format!("event-{}", self.aws.next_event), "detail-type": detail_type,
            "source": source, "account": ACCOUNT, "time": self.second(), "region": REGION, "resources": [],
            "detail": detail})
    }

    /// A schedule's time has come, if it was not moved or taken away.
    fn fire(&mut self, name: &str, number: u32) {
        let Some(schedule) = self.aws.schedules.get(name).filter(|schedule| schedule.number == number) else { return };
        let event = schedule.event.clone();
        self.aws.schedules.remove(name);
        self.busy -= 1;
        self.note(|| format!("schedule {name} fires"));
        own_event(self, &event);
    }
}
