//! A plan: what there is, which instances AWS interrupts, what people do, and what goes wrong. It is drawn from a seed, or kept as
//! JSON. What is drawn as it happens is how long things take.

mod draw;
#[cfg(test)]
pub(crate) mod given;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The names of the clusters that there may be, by their numbers.
pub(crate) const CLUSTERS: [&str; 2] = ["prod", "stage"];

/// A node: which cluster's, by its number, and its name there. In the other cluster another node may have that name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId {
    pub(crate) cluster: usize,
    pub(crate) name: String,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, CLUSTERS[self.cluster])
    }
}

/// What a seed has happen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    /// The cluster of each node, by its number. A node that is not named here is of the first.
    #[serde(default)]
    pub(crate) clusters: Vec<usize>,
    pub(crate) apps: Vec<App>,
    pub(crate) interruptions: Vec<Interruption>,
    pub(crate) people: Vec<ManualChange>,
    /// When the API server forgets what was before.
    pub(crate) compactions: Vec<Duration>,
    /// How each node is named.
    pub(crate) names: Vec<Naming>,
    /// How many notices in a thousand are delivered twice.
    pub(crate) duplicates: u32,
    pub(crate) kills: Vec<Kill>,
    pub(crate) outages: Vec<Outage>,
    /// How long an invocation may take.
    pub(crate) invocation: Duration,
    /// By how many milliseconds the function's clock is ahead of AWS' at most, or behind it.
    pub(crate) skew_ms: i64,
    pub(crate) settings: Vec<(String, String)>,
    /// The nodes that Karpenter manages.
    pub(crate) karpenter: Vec<usize>,
    /// Those of a managed node group of EKS.
    pub(crate) managed: Vec<usize>,
    /// How long Auto Scaling waits after each heartbeat.
    pub(crate) hook_timeout: Duration,
    /// How many watches of a thousand break.
    pub(crate) watch_breaks: u32,
    /// How late a watch tells of a change, in milliseconds at most.
    pub(crate) watch_lag_ms: u64,
    /// How many looks of a thousand at a node are followed by its kubelet's own report.
    pub(crate) node_status: u32,
}

/// By what a node has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Naming {
    DnsName,
    InstanceId,
    /// Nothing that could be guessed.
    Other,
}

/// What puts pods on the nodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct App {
    /// Name of its pods before their numbers; empty: `app` and a number.
    #[serde(default)]
    pub(crate) name: String,
    /// The number of its cluster.
    #[serde(default)]
    pub(crate) cluster: usize,
    pub(crate) owner: Owner,
    /// How many pods: all of them on the first node, or each on the next one.
    pub(crate) pods: usize,
    pub(crate) on_first_node: bool,
    pub(crate) grace_s: u64,
    /// How long its pods take to shut down, if they are let.
    pub(crate) exits_after: Duration,
    /// The namespace of its pods, by its number.
    pub(crate) namespace: usize,
    /// How many of its pods have to be available, by one budget or two.
    pub(crate) budgets: usize,
    pub(crate) needs: Needs,
    pub(crate) unhealthy: Option<Unhealthy>,
    /// Its pods run, and are never ready.
    pub(crate) is_broken: bool,
    pub(crate) is_critical: bool,
    /// Its pods tolerate a cordon.
    pub(crate) tolerates: bool,
    pub(crate) annotation: Option<Annotation>,
    /// Its pods' objects outlast them, for a while.
    pub(crate) finalizer: bool,
    /// Each of its pods has a volume of its own.
    pub(crate) has_volume: bool,
}

/// How a budget says how many pods have to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Needs {
    MinAvailable(usize),
    MinAvailablePercent(usize),
    MaxUnavailable(usize),
    MaxUnavailablePercent(usize),
}

/// When a budget lets a pod go that runs and is not ready, if it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unhealthy {
    IfHealthyBudget,
    AlwaysAllow,
}

/// What a pod asks of who drains its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Annotation {
    DoNotDisrupt,
    DoNotDisruptFor90Seconds,
    NotSafeToEvict,
    /// To be left alone.
    Skip,
    /// To leave after the others.
    Last,
    /// To be waited for until it is done.
    Wait,
}

/// What a pod is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Owner {
    ReplicaSet,
    /// The next pod has the name of the last.
    StatefulSet,
    DaemonSet,
    /// It mirrors a file of the node.
    Mirror,
    /// Nobody: it is not replaced.
    Nobody,
}

/// What AWS does with the instance of a node, beginning then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Interruption {
    pub(crate) node: usize,
    pub(crate) begins: Duration,
    pub(crate) cause: Cause,
    /// How long its notices take to be delivered.
    pub(crate) delay: Duration,
}

/// Why an instance is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cause {
    /// EC2 takes a Spot Instance back two minutes after the notice.
    Spot,
    /// Its group terminates it, and waits for its hook.
    Terminate,
    /// Its group stops it and puts it into its warm pool, waiting for a hook; and takes it out again after a time.
    WarmPool { back_after: Duration },
    /// EC2 may take it back soon.
    Rebalance,
    /// Somebody stops it, and starts it again after a time.
    Stop { stops_after: Duration, starts_after: Option<Duration> },
    /// Somebody terminates it.
    ShutDown,
    /// AWS reboots or terminates it after a time, unless that is called off before.
    Maintenance { starts_after: Duration, reboots: bool, called_off_after: Option<Duration> },
}

/// What a person does with a node.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ManualChange {
    pub(crate) at: Duration,
    pub(crate) node: usize,
    pub(crate) command: Command,
}

/// A person's command for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    Cordon,
    Uncordon,
    /// Uncordons it, and cordons it again a moment later.
    Recordon,
    Taint,
    Label,
    /// Labels it so that Spillway leaves it alone.
    OptOut,
    Delete,
    /// Deletes it, and another instance's node takes its name.
    Replace,
}

/// An attempt that is killed: the how manieth, and after how many requests.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Kill {
    pub(crate) attempt: u32,
    pub(crate) after_requests: u32,
}

/// Who is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Side {
    Api,
    Aws,
}

/// Why a request does not simply get its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// It is refused: busy, or broken.
    Refused,
    /// The authenticator has no time: it answers 401, for a moment.
    Unauthorized,
    /// It is denied: somebody took a right away, or the function's credentials have expired.
    Denied,
    /// A webhook on nodes is down: no change of a node is made.
    Webhook,
    /// It never arrives.
    RequestLost,
    /// It is done, and its answer is lost.
    AnswerLost,
    /// It is done, and no answer ever comes.
    Hangs,
    /// It takes seconds.
    Slow,
}

/// A time in which some requests to a side go wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outage {
    pub(crate) side: Side,
    /// The one cluster whose API server it is of.
    #[serde(default)]
    pub(crate) cluster: Option<usize>,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) fault: Fault,
    pub(crate) of_a_thousand: u32,
    /// Text of the requests that are meant; empty: all.
    #[serde(default)]
    pub(crate) only: String,
}

impl Needs {
    /// How many of so many pods have to be there: a part of a pod is a whole one (`GetScaledValueFromIntOrPercent`, rounded up).
    pub(crate) fn of(self, pods: usize) -> usize {
        let part = |percent: usize| (pods * percent).div_ceil(100);
        match self {
            Self::MinAvailable(least) => least,
            Self::MinAvailablePercent(percent) => part(percent),
            Self::MaxUnavailable(most) => pods.saturating_sub(most),
            Self::MaxUnavailablePercent(percent) => pods.saturating_sub(part(percent)),
        }
    }
}

impl Annotation {
    /// Its key and its value.
    pub(crate) fn pair(self) -> (&'static str, &'static str) {
        match self {
            Self::DoNotDisrupt => ("karpenter.sh/do-not-disrupt", "true"),
            Self::DoNotDisruptFor90Seconds => ("karpenter.sh/do-not-disrupt", "90s"),
            Self::NotSafeToEvict => ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
            Self::Skip => ("spillway/drain", "skip"),
            Self::Last => ("spillway/drain", "last"),
            Self::Wait => ("spillway/drain", "wait"),
        }
    }
}

impl App {
    /// The namespace of its pods.
    pub(crate) fn namespace(&self) -> &'static str {
        ["shop", "billing"][self.namespace]
    }

    /// Whether its pods stay on their nodes.
    pub(crate) fn stays(&self) -> bool {
        matches!(self.owner, Owner::DaemonSet | Owner::Mirror) || self.annotation == Some(Annotation::Skip)
    }
}

impl Plan {
    /// The number of a node's cluster.
    fn cluster_of(&self, node: usize) -> usize {
        self.clusters.get(node).copied().unwrap_or_default()
    }

    /// How many clusters there are.
    pub(crate) fn cluster_count(&self) -> usize {
        1 + self.clusters.iter().max().copied().unwrap_or_default()
    }

    /// Whether the function is to act in a cluster.
    pub(crate) fn serves(&self, cluster: usize) -> bool {
        let named = self.setting("SPILLWAY_CLUSTERS").unwrap_or_default();
        named.is_empty() || named.split(',').any(|name| name == CLUSTERS[cluster])
    }

    /// The how manieth of its cluster a node is: the networks of both clusters have the same addresses.
    fn ordinal(&self, node: usize) -> usize {
        (0..node).filter(|before| self.cluster_of(*before) == self.cluster_of(node)).count()
    }

    /// What EC2 calls the instance of that number.
    pub(crate) fn dns_name(&self, number: usize) -> String {
        format!("ip-10-0-0-{}.ec2.internal", self.ordinal(number))
    }

    /// The node of that number.
    pub(crate) fn node(&self, number: usize) -> NodeId {
        let name = match self.names[number] {
            Naming::DnsName => self.dns_name(number),
            Naming::InstanceId => instance_id(number),
            Naming::Other => format!("worker-{}", self.ordinal(number)),
        };
        NodeId { cluster: self.cluster_of(number), name }
    }

    /// Whether all requests to a side go well.
    pub(crate) fn is_well(&self, side: Side) -> bool {
        self.outages.iter().all(|outage| outage.side != side)
    }

    /// What the pods of an app are called before their number: in another namespace or cluster others have the same names.
    pub(crate) fn app_name(&self, app: usize) -> String {
        if !self.apps[app].name.is_empty() {
            return self.apps[app].name.clone();
        }
        let place = |app: &App| (app.cluster, app.namespace);
        let before = self.apps[..app].iter().filter(|before| place(before) == place(&self.apps[app]));
        format!("app-{}", before.count())
    }

    /// Whether Karpenter manages an instance's node.
    pub(crate) fn is_karpenters(&self, instance: &str) -> bool {
        self.karpenter.iter().any(|number| instance_id(*number) == instance)
    }

    /// Whether EKS manages an instance's node.
    pub(crate) fn is_managed(&self, instance: &str) -> bool {
        self.managed.iter().any(|number| instance_id(*number) == instance)
    }

    /// After which time the maintenance starts that is all that happens, and the lead of its drains, if that is an hour or more.
    pub(crate) fn planned(&self) -> Option<(Duration, Duration)> {
        let lead = Duration::from_secs(self.setting("SPILLWAY_MAINTENANCE_LEAD_S")?.parse().ok()?);
        let start = |one: &Interruption| match one.cause {
            Cause::Maintenance { starts_after, .. } => Some(starts_after),
            _ => None,
        };
        let starts: Option<Vec<_>> = self.interruptions.iter().map(start).collect();
        Some((starts?.into_iter().min()?, lead)).filter(|_| Duration::from_hours(1) <= lead)
    }

    /// Whether nothing may be changed.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.setting("SPILLWAY_DRY_RUN") == Some("true")
    }

    /// Whether a fault comes between the function and that side, for a time.
    pub(crate) fn has_fault(&self, side: Side, fault: Fault) -> bool {
        self.outages.iter().any(|outage| outage.side == side && outage.fault == fault)
    }

    /// Whether a node may stay uncordoned while it is drained, so that what leaves it may come back: after five seconds of errors,
    /// or fifteen without an answer, its pods are evicted without a cordon (docs/what-happens.md).
    pub(crate) fn may_stay_open(&self) -> bool {
        let is_so = |outage: &Outage| match outage.fault {
            Fault::Webhook | Fault::Hangs => true,
            Fault::Refused => outage.until > outage.from + Duration::from_secs(5),
            _ => false,
        };
        self.outages.iter().any(|outage| outage.side == Side::Api && is_so(outage))
    }

    /// What a setting is, of those that are drawn.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(set, _)| set == name).map(|(_, value)| value.as_str())
    }
}

/// The id of the instance of that number.
pub(crate) fn instance_id(number: usize) -> String {
    format!("i-{number:017x}")
}
