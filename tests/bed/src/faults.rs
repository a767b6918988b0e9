//! The catalogue of faults: the requests that a drain makes, and what can go wrong with each. Pure.
//!
//! The end-to-end test `each_fault` makes them one at a time.

use std::time::Duration;

use crate::gateway::Fault as GatewayFault;
use crate::gateway::{Answer, Fault::Answer as Answered};

/// A step of a drain that asks somebody for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub name: &'static str,
    /// The request that the step is known by, as the gateway names it.
    pub call: &'static str,
    /// The drain that comes to the step.
    pub way: Way,
    /// Whether the function knows the node's pods by then.
    pub after_list: bool,
}

/// What leads to a step, and so what must have been set up for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A spot notice.
    Spot,
    /// A spot notice, while a budget blocks the pods.
    Budget,
    /// A terminate notice, while a lifecycle hook waits.
    Hook,
    /// The same, and the settings ask for a tag of the instance or its group.
    Tag,
    /// A rebalance recommendation, after which the node may be uncordoned.
    Rebalance,
    /// A spot notice for a node that is Karpenter's, and is handed to it.
    Karpenter,
    /// The instance was stopping, and runs again.
    RunsAgain,
}

impl Step {
    /// All steps. The function sends the first heartbeat before it claims the node.
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

    /// The service of AWS that is asked, by its name in a signature. `None`: the API server is asked.
    #[must_use]
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

/// Something that can go wrong.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// It tells one fault from another.
    pub name: &'static str,
    /// A receipt that blames the fault has one of these words. Empty: no drain fails because of it.
    pub words: &'static [&'static str],
    pub means: Means,
}

impl PartialEq for Fault {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Fault {}

/// What makes a fault.
#[derive(Debug, Clone, Copy)]
pub enum Means {
    /// The gateway, at a request of the step.
    Request(fn(Step) -> GatewayFault),
    /// The network, from a request of the step on.
    Network(Network),
    /// What EKS shows, or the function's environment, from the start.
    Endpoint,
}

/// What the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Every connection is reset.
    Reset,
    /// The server is down for this long, if it ever comes back: connections are reset, then refused.
    Down(Duration),
    /// Nothing moves on any connection for this long, if it ever moves again.
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
    // Longer than anything takes that is well, and shorter than every timeout.
    request("3 s late", NEVER, |_| GatewayFault::Slow(Duration::from_secs(3))),
    network("connection reset", NO_ANSWER, Network::Reset),
    network("server down", NO_SERVER, Network::Down(Duration::from_secs(5))),
    // Longer than the connection's pings wait, so that it is given up.
    network("black hole", NO_SERVER, Network::BlackHole(Duration::from_secs(12))),
];

/// Faults of every step that asks the API server.
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

/// Faults of one step that asks the API server. It asks for the server's name when it connects, to claim the node.
const OF_ONE_STEP: [(&str, Fault); 3] = [
    ("claim", NO_SUCH_NAME),
    ("evict", request("429 of a budget", &["PodDisruptionBudget web"], |_| Answered(Answer::held_by("web")))),
    ("watch", request("410", &["too old resource version"], |_| Answered(Answer::kubernetes(410)))),
];

/// Faults of every step that asks AWS. Each service has a status and a code of its own for them.
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
    /// The faults that a step can meet.
    #[must_use]
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

/// A refusal in the shape of the service that the step asks.
fn aws(step: Step, status_and_code: impl Fn(&str) -> (u16, &'static str)) -> GatewayFault {
    let service = step.aws_service().expect("only steps that ask AWS have faults of AWS");
    let (status, code) = status_and_code(service);
    Answered(Answer::aws(service, status, code))
}
