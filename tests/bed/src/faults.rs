//! Catalogue of faults: the steps of a drain, and the faults of each (pure). The scenario `each_fault` makes one at a time.

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
    /// `true` if the function knows the node's pods by then.
    pub after_list: bool,
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
        before_list("find the instance", "ec2:DescribeInstances", Way::Spot),
        before_list("find the tag", "autoscaling:DescribeTags", Way::Tag),
        before_list("find the cluster", "eks:DescribeCluster", Way::Spot),
        before_list("find the hook", "autoscaling:DescribeLifecycleHooks", Way::Hook),
        before_list("heartbeat", "autoscaling:RecordLifecycleActionHeartbeat", Way::Hook),
        after_list("complete", "autoscaling:CompleteLifecycleAction", Way::Hook),
        after_list("schedule", "scheduler:CreateSchedule", Way::Rebalance),
        after_list("put events", "events:PutEvents", Way::Spot),
        before_list("claim", "patch nodes", Way::Spot),
        before_list("look at the node", "get nodes", Way::Spot),
        before_list("list", "list pods", Way::Spot),
        after_list("evict", "create pods/eviction", Way::Spot),
        after_list("watch", "watch pods", Way::Spot),
        after_list("watch budgets", "watch poddisruptionbudgets", Way::Budget),
        after_list("delete", "delete pods", Way::Budget),
        before_list("delete the NodeClaim", "delete nodeclaims", Way::Karpenter),
        before_list("uncordon", "patch nodes", Way::RunsAgain),
    ];

    /// Name of the AWS service in a signature. `None`: the request goes to the API server.
    pub fn aws_service(&self) -> Option<&'static str> {
        self.call.split_once(':').map(|(service, _)| service)
    }
}

const fn before_list(name: &'static str, call: &'static str, way: Way) -> Step {
    Step { name, call, way, after_list: false }
}

const fn after_list(name: &'static str, call: &'static str, way: Way) -> Step {
    Step { name, call, way, after_list: true }
}

/// A fault of a step.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Unique name.
    pub name: &'static str,
    /// A receipt that names the fault has one of these texts. Empty: the fault fails no drain.
    pub words: &'static [&'static str],
    pub means: Means,
}

/// Source of a fault.
#[derive(Debug, Clone, Copy)]
pub enum Means {
    /// The gateway, at a request of the step.
    Request(fn(Step) -> GatewayFault),
    /// The network, from a request of the step on.
    Network(Network),
    /// EKS' answer, or the function's environment, from the start.
    Endpoint,
}

/// A fault of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Every connection is reset.
    Reset,
    /// Connections are reset, then refused, for this long or for ever.
    Down(Duration),
    /// No bytes move on any connection, for this long or for ever.
    BlackHole(Duration),
    /// The server comes back with a certificate of another authority.
    NewAuthority,
}

const NEVER: &[&str] = &[];
const BUSY: &[&str] = &["Too many requests", "busy"];
const FAILS: &[&str] = &["fails at AWS' end"];
const NO_ANSWER: &[&str] = &["got no answer", "did not answer", "was lost"];
const NO_SERVER: &[&str] = &["cannot connect", "got no answer", "did not answer", "was lost"];

/// Faults of every step.
const ANYWHERE: [Fault; 8] = [
    request("body cut short", NO_ANSWER, |_| GatewayFault::CutShort),
    request("body no data", NO_ANSWER, |_| GatewayFault::NotData),
    request("request reset", NO_ANSWER, |_| GatewayFault::Reset),
    request("no answer", NO_ANSWER, |_| GatewayFault::Silence),
    // Longer than any healthy request, and shorter than every timeout.
    request("3 s late", NEVER, |_| GatewayFault::Slow(Duration::from_secs(3))),
    network("connection reset", NO_ANSWER, Network::Reset),
    network("server down", NO_SERVER, Network::Down(Duration::from_secs(5))),
    // Longer than the connection's pings wait.
    network("black hole", NO_SERVER, Network::BlackHole(Duration::from_secs(12))),
];

/// Faults of every request to the API server.
const OF_KUBERNETES: [Fault; 13] = [
    request("401", &["Unauthorized"], |_| Answered(Answer::kubernetes(401))),
    request("403", &["this is forbidden"], |_| Answered(Answer::kubernetes(403))),
    request("404", &["could not find the requested resource"], |_| Answered(Answer::kubernetes(404))),
    request("409", &["the object has been modified"], |_| Answered(Answer::kubernetes(409))),
    request("422", &["rejected our request"], |_| Answered(Answer::kubernetes(422))),
    request("429", BUSY, |_| Answered(Answer::throttled(None))),
    request("429 with Retry-After 2", BUSY, |_| Answered(Answer::throttled(Some(2)))),
    request("500", &["etcdserver: request timed out"], |_| Answered(Answer::kubernetes(500))),
    request("503", &["currently unable to handle the request"], |_| Answered(Answer::kubernetes(503))),
    request("504", &["did not complete within the allotted timeout"], |_| Answered(Answer::kubernetes(504))),
    request("token expired", &["Unauthorized"], |_| GatewayFault::TokenExpires),
    request("GOAWAY", NEVER, |_| GatewayFault::GoAway),
    network("new authority", &["certificate"], Network::NewAuthority),
];

/// Faults of one request to the API server. The server's name is resolved for the first one, the claim.
const OF_ONE_STEP: [(&str, Fault); 3] = [
    ("claim", NO_SUCH_NAME),
    ("evict", request("429 of a budget", &["PodDisruptionBudget web"], |_| Answered(Answer::held_by("web")))),
    ("watch", request("410", &["too old resource version"], |_| Answered(Answer::kubernetes(410)))),
];

/// Faults of every request to AWS, with the status and code of each service.
const OF_AWS: [Fault; 5] = [
    request("throttled", &["is throttled"], |step| {
        aws(step, |service| match service {
            "ec2" => (503, "RequestLimitExceeded"),
            "eks" => (429, "TooManyRequestsException"),
            "events" | "scheduler" => (429, "ThrottlingException"),
            _ => (400, "Throttling"),
        })
    }),
    request("denied", &["is denied"], |step| {
        aws(step, |service| match service {
            "ec2" => (403, "UnauthorizedOperation"),
            "eks" | "events" | "scheduler" => (403, "AccessDeniedException"),
            _ => (403, "AccessDenied"),
        })
    }),
    request("AWS 500", FAILS, |step| {
        aws(step, |service| (500, if service == "eks" { "ServerException" } else { "InternalError" }))
    }),
    request("AWS 503", FAILS, |step| {
        aws(step, |service| (503, if service == "eks" { "ServiceUnavailableException" } else { "ServiceUnavailable" }))
    }),
    NO_SUCH_NAME,
];

const NO_SUCH_NAME: Fault = Fault { name: "no such name", words: NO_SERVER, means: Means::Endpoint };

impl Fault {
    pub fn of(step: Step) -> Vec<Self> {
        let of_one_step = OF_ONE_STEP.iter().filter(|(name, _)| *name == step.name).map(|(_, fault)| *fault);
        match step.aws_service() {
            Some(_) => OF_AWS.into_iter().chain(ANYWHERE).collect(),
            None => OF_KUBERNETES.into_iter().chain(of_one_step).chain(ANYWHERE).collect(),
        }
    }
}

const fn request(name: &'static str, words: &'static [&'static str], make: fn(Step) -> GatewayFault) -> Fault {
    Fault { name, words, means: Means::Request(make) }
}

const fn network(name: &'static str, words: &'static [&'static str], what: Network) -> Fault {
    Fault { name, words, means: Means::Network(what) }
}

/// A refusal in the shape of the step's AWS service.
fn aws(step: Step, status_and_code: impl Fn(&str) -> (u16, &'static str)) -> GatewayFault {
    let service = step.aws_service().expect("only requests to AWS have faults of AWS");
    let (status, code) = status_and_code(service);
    Answered(Answer::aws(service, status, code))
}
