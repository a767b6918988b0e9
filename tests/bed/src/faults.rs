//! Catalogue of faults that pass: the steps of a drain, and the faults of each (pure). The scenario `each_fault` makes one at a time.

use std::time::Duration;

use crate::gateway::Fault as GatewayFault;
use crate::gateway::{Answer, Fault::Answer as Answered};

/// A request of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub name: &'static str,
    /// The gateway's name of the request.
    pub call: &'static str,
    /// The drain that makes the request.
    pub way: Way,
}

/// Notice and set-up that lead to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A spot notice.
    Spot,
    /// A spot notice, while a budget blocks the pods.
    Budget,
    /// A terminate notice, while a lifecycle hook waits.
    Hook,
    /// A terminate notice, while the settings require a tag of the instance or its group.
    Tag,
    /// A rebalance recommendation, after which the node may be uncordoned.
    Rebalance,
    /// A spot notice for a node of Karpenter.
    Karpenter,
    /// A stop of the instance, and its new start.
    RunsAgain,
}

impl Step {
    /// All steps. The first heartbeat precedes the claim.
    pub const ALL: [Self; 17] = [
        step("find the instance", "ec2:DescribeInstances", Way::Spot),
        step("find the tag", "autoscaling:DescribeTags", Way::Tag),
        step("find the cluster", "eks:DescribeCluster", Way::Spot),
        step("find the hook", "autoscaling:DescribeLifecycleHooks", Way::Hook),
        step("heartbeat", "autoscaling:RecordLifecycleActionHeartbeat", Way::Hook),
        step("complete", "autoscaling:CompleteLifecycleAction", Way::Hook),
        step("schedule", "scheduler:CreateSchedule", Way::Rebalance),
        step("put events", "events:PutEvents", Way::Spot),
        step("claim", "patch nodes", Way::Spot),
        step("look at the node", "get nodes", Way::Spot),
        step("list", "list pods", Way::Spot),
        step("evict", "create pods/eviction", Way::Spot),
        step("watch", "watch pods", Way::Spot),
        step("watch budgets", "watch poddisruptionbudgets", Way::Budget),
        step("delete", "delete pods", Way::Budget),
        step("delete the NodeClaim", "delete nodeclaims", Way::Karpenter),
        step("uncordon", "patch nodes", Way::RunsAgain),
    ];

    /// Name of the AWS service in a signature. `None`: the request goes to the API server.
    pub fn aws_service(&self) -> Option<&'static str> {
        self.call.split_once(':').map(|(service, _)| service)
    }
}

const fn step(name: &'static str, call: &'static str, way: Way) -> Step {
    Step { name, call, way }
}

/// A fault of a step.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Unique name.
    pub name: &'static str,
    pub means: Means,
}

/// Source of a fault.
#[derive(Debug, Clone, Copy)]
pub enum Means {
    /// The gateway, at a request of the step.
    Request(fn(Step) -> GatewayFault),
    /// The network, from a request of the step on.
    Network(Network),
}

/// A fault of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Every connection is reset.
    Reset,
    /// Connections are reset, then refused, for this long.
    Down(Duration),
    /// No bytes move on any connection, for this long.
    BlackHole(Duration),
    /// The server comes back with a certificate of another authority.
    NewAuthority,
}

/// Faults of every step.
const ANYWHERE: [Fault; 8] = [
    request("body cut short", |_| GatewayFault::CutShort),
    request("body no data", |_| GatewayFault::NotData),
    request("request reset", |_| GatewayFault::Reset),
    request("no answer", |_| GatewayFault::Silence),
    // Longer than any healthy request, and shorter than every timeout.
    request("3 s late", |_| GatewayFault::Slow(Duration::from_secs(3))),
    network("connection reset", Network::Reset),
    network("server down", Network::Down(Duration::from_secs(5))),
    // Longer than the connection's pings wait.
    network("black hole", Network::BlackHole(Duration::from_secs(12))),
];

/// Faults of every request to the API server.
const OF_KUBERNETES: [Fault; 13] = [
    request("401", |_| Answered(Answer::kubernetes(401))),
    request("403", |_| Answered(Answer::kubernetes(403))),
    request("404", |_| Answered(Answer::kubernetes(404))),
    request("409", |_| Answered(Answer::kubernetes(409))),
    request("422", |_| Answered(Answer::kubernetes(422))),
    request("429", |_| Answered(Answer::throttled(None))),
    request("429 with Retry-After 2", |_| Answered(Answer::throttled(Some(2)))),
    request("500", |_| Answered(Answer::kubernetes(500))),
    request("503", |_| Answered(Answer::kubernetes(503))),
    request("504", |_| Answered(Answer::kubernetes(504))),
    request("token expired", |_| GatewayFault::TokenExpires),
    request("GOAWAY", |_| GatewayFault::GoAway),
    network("new authority", Network::NewAuthority),
];

/// Faults of one request to the API server.
const OF_ONE_STEP: [(&str, Fault); 2] = [
    ("evict", request("429 of a budget", |_| Answered(Answer::held_by("web")))),
    ("watch", request("410", |_| Answered(Answer::kubernetes(410)))),
];

/// Faults of every request to AWS, with the status and code of each service.
const OF_AWS: [Fault; 4] = [
    request("throttled", |step| {
        aws(step, |service| match service {
            "ec2" => (503, "RequestLimitExceeded"),
            "eks" => (429, "TooManyRequestsException"),
            "events" | "scheduler" => (429, "ThrottlingException"),
            _ => (400, "Throttling"),
        })
    }),
    request("denied", |step| {
        aws(step, |service| match service {
            "ec2" => (403, "UnauthorizedOperation"),
            "eks" | "events" | "scheduler" => (403, "AccessDeniedException"),
            _ => (403, "AccessDenied"),
        })
    }),
    request("AWS 500", |step| {
        aws(step, |service| (500, if service == "eks" { "ServerException" } else { "InternalError" }))
    }),
    request("AWS 503", |step| {
        aws(step, |service| (503, if service == "eks" { "ServiceUnavailableException" } else { "ServiceUnavailable" }))
    }),
];

impl Fault {
    pub fn of(step: Step) -> Vec<Self> {
        let of_one_step = OF_ONE_STEP.iter().filter(|(name, _)| *name == step.name).map(|(_, fault)| *fault);
        match step.aws_service() {
            Some(_) => OF_AWS.into_iter().chain(ANYWHERE).collect(),
            None => OF_KUBERNETES.into_iter().chain(of_one_step).chain(ANYWHERE).collect(),
        }
    }
}

const fn request(name: &'static str, make: fn(Step) -> GatewayFault) -> Fault {
    Fault { name, means: Means::Request(make) }
}

const fn network(name: &'static str, what: Network) -> Fault {
    Fault { name, means: Means::Network(what) }
}

/// A refusal in the shape of the step's AWS service.
fn aws(step: Step, status_and_code: impl Fn(&str) -> (u16, &'static str)) -> GatewayFault {
    let service = step.aws_service().expect("only requests to AWS have faults of AWS");
    let (status, code) = status_and_code(service);
    Answered(Answer::aws(service, status, code))
}
