//! AWS in memory, behind the SDK's clients: instances, lifecycle actions, the event bus, schedules.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::draw::Side;
use super::lambda::{ACCOUNT, AttemptId, REGION};
use super::network::{Passage, pass};
use super::world::{Shared, World};
use crate::test_support::aws::{instances, json_error, query_error};

/// Auto Scaling's hook of ours, and its group.
pub(super) const HOOK: &str = "spillway";
pub(super) const GROUP: &str = "workers";

/// Everything that AWS has.
#[derive(Debug, Default)]
pub(super) struct Aws {
    pub(super) instances: BTreeMap<String, Instance>,
    pub(super) actions: BTreeMap<String, Action>,
    schedules: BTreeMap<String, Schedule>,
    next_event: u32,
    next_schedule: u32,
}

/// An instance, and its node.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) node: String,
    dns_name: String,
    /// In which states it has been, and since when.
    states: Vec<(Instant, &'static str)>,
    pub(super) kubelet_runs: bool,
    /// How often it has booted.
    pub(super) boots: u32,
}

/// A lifecycle action that waits, or has.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) instance: String,
    /// What the group does next, whatever it is told.
    pub(super) then: Then,
    /// When it was begun.
    pub(super) since: Instant,
    pub(super) until: Instant,
    pub(super) in_all: Instant,
    pub(super) result: Option<ActionResult>,
}

/// What a group does with an instance after its hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    End,
    /// It stops, and is taken back after a time.
    Stop(Duration),
    /// It is in service.
    Serve,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionResult {
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
    pub(super) fn kubelet_runs(&self, node: &str) -> bool {
        self.instances.values().any(|instance| instance.node == node && instance.kubelet_runs)
    }
}

impl Instance {
    pub(super) fn running(node: &str, dns_name: &str) -> Self {
        let states = vec![(Instant::now(), "running")];
        Self { node: node.to_owned(), dns_name: dns_name.to_owned(), states, kubelet_runs: true, boots: 0 }
    }

    /// Its state now.
    pub(super) fn state(&self) -> &'static str {
        self.states.last().map_or("running", |(_, state)| state)
    }

    pub(super) fn becomes(&mut self, state: &'static str) {
        self.states.push((Instant::now(), state));
    }

    fn was(&self, at: Instant) -> &'static str {
        self.states.iter().rfind(|(since, _)| *since <= at).map_or("running", |(_, state)| state)
    }
}

/// The SDK's way to the AWS of the world that the thread is in.
#[derive(Debug, Clone)]
pub(super) struct ToAws(pub(super) Shared);

impl HttpClient for ToAws {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for ToAws {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (world, attempt) = (self.0.clone(), AttemptId::current());
        let call = Call::read(&request);
        HttpConnectorFuture::new(async move {
            let line = format!("{} {}", call.name, call.body);
            let passage = pass(&world, Side::Aws, attempt, &line, || {
                let mut inside = world.lock();
                let answer = answer(&mut inside, attempt, &call);
                inside.note(|| format!("  {attempt}   answered {answer:?}"));
                answer
            });
            match passage.await {
                Passage::Answered((status, body)) => Ok(response(status, body)),
                Passage::Refused | Passage::Unauthorized => {
                    Ok(response(503, query_error("Throttling", "Rate exceeded")))
                }
                Passage::Lost => Err(ConnectorError::io("the connection broke".into())),
            }
        })
    }
}

fn response(status: u16, body: String) -> HttpResponse {
    let mut response = HttpResponse::new(StatusCode::try_from(status).expect("it is one"), SdkBody::from(body));
    response.headers_mut().insert("x-amzn-requestid", "aws-1");
    response
}

/// A call, whatever its protocol.
struct Call {
    /// The action, or the method and the path.
    name: String,
    body: String,
}

impl Call {
    fn read(request: &HttpRequest) -> Self {
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        let target = request.headers().get("x-amz-target").and_then(|target| target.split('.').next_back());
        let action = body.strip_prefix("Action=").and_then(|body| body.split('&').next());
        let path = || {
            let uri = request.uri().split_once("//").map_or(request.uri(), |(_, rest)| rest);
            let path = uri.find('/').map_or("", |at| &uri[at..]);
            format!("{} {}", request.method(), path.split('?').next().unwrap_or_default())
        };
        let name = target.or(action).map_or_else(path, str::to_owned);
        Self { name, body }
    }

    /// A parameter of the query protocol. Nothing in it is encoded that matters here.
    fn parameter(&self, name: &str) -> Option<&str> {
        self.body.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

fn answer(world: &mut World, attempt: AttemptId, call: &Call) -> (u16, String) {
    let done = |name: &str| (200, format!("<{name}Response></{name}Response>"));
    match call.name.as_str() {
        "DescribeInstances" => describe(world, call.parameter("InstanceId.1").unwrap_or_default()),
        "DescribeLifecycleHooks" => {
            let timeout = world.plan.hook_timeout.as_secs();
            let hook = format!(
                "<HeartbeatTimeout>{timeout}</HeartbeatTimeout><GlobalTimeout>{}</GlobalTimeout>",
                timeout * 100
            );
            (
                200,
                format!(
                    "<DescribeLifecycleHooksResponse><DescribeLifecycleHooksResult><LifecycleHooks><member>{hook}</member>\
                 </LifecycleHooks></DescribeLifecycleHooksResult></DescribeLifecycleHooksResponse>"
                ),
            )
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
            Some(("GET", path)) if path.starts_with("/clusters/") => {
                let ca = json!({"data": "Y2E="});
                (200, json!({"cluster": {"endpoint": "https://127.0.0.1", "certificateAuthority": ca}}).to_string())
            }
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
    pub(super) fn event(&mut self, source: &str, detail_type: &str, detail: &Value) -> Value {
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
