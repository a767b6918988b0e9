//! Plan of a world: nodes and pods, interruptions by AWS, changes by people, faults. Drawn from a seed, or kept as JSON. Durations of
//! requests and the like are drawn later.

mod draw;
#[cfg(test)]
pub(crate) mod given;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Names of the clusters by number.
pub(crate) const CLUSTERS: [&str; 2] = ["prod", "stage"];

/// Cluster and name of a node. Both clusters may have a node of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId {
    pub(crate) cluster: usize,
    pub(crate) name: String,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, CLUSTERS[self.cluster])
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    /// Cluster of each node; the first for missing nodes.
    #[serde(default)]
    pub(crate) clusters: Vec<usize>,
    pub(crate) apps: Vec<App>,
    pub(crate) interruptions: Vec<Interruption>,
    pub(crate) people: Vec<ManualChange>,
    /// Times at which the API server forgets old versions.
    pub(crate) compactions: Vec<Duration>,
    pub(crate) names: Vec<Naming>,
    /// Notices of a thousand that are delivered twice.
    pub(crate) duplicates: u32,
    pub(crate) kills: Vec<Kill>,
    pub(crate) outages: Vec<Outage>,
    /// Timeout of an invocation.
    pub(crate) invocation: Duration,
    /// Largest difference between the function's clock and that of AWS, in milliseconds.
    pub(crate) skew_ms: i64,
    pub(crate) settings: Vec<(String, String)>,
    /// Nodes of Karpenter.
    pub(crate) karpenter: Vec<usize>,
    /// Nodes of a managed node group.
    pub(crate) managed: Vec<usize>,
    /// Timeout of a lifecycle action after each heartbeat.
    pub(crate) hook_timeout: Duration,
    /// Watches of a thousand that break.
    pub(crate) watch_breaks: u32,
    /// Largest lag of a watch, in milliseconds.
    pub(crate) watch_lag_ms: u64,
    /// Reads of a thousand of a node after which its kubelet writes its status.
    pub(crate) node_status: u32,
}

/// Source of a node's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Naming {
    DnsName,
    InstanceId,
    Other,
}

/// Pods with one owner.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct App {
    /// Prefix of the pods' names; empty: `app` and a number.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) cluster: usize,
    pub(crate) owner: Owner,
    pub(crate) pods: usize,
    /// All pods on the first node, instead of one on each.
    pub(crate) on_first_node: bool,
    pub(crate) grace_s: u64,
    /// Time that a pod takes to shut down.
    pub(crate) exits_after: Duration,
    pub(crate) namespace: usize,
    pub(crate) budgets: usize,
    /// `minAvailable` of each budget.
    pub(crate) needs: usize,
    pub(crate) is_critical: bool,
    pub(crate) tolerates: bool,
    pub(crate) annotation: Option<Annotation>,
    /// A finalizer keeps the object of a stopped pod for a while.
    pub(crate) finalizer: bool,
    pub(crate) has_volume: bool,
}

/// Annotation of a pod about drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Annotation {
    DoNotDisrupt,
    DoNotDisruptFor90Seconds,
    Skip,
    Last,
}

/// Owner of a pod. A StatefulSet's next pod has the name of the last; an unowned pod is not replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Owner {
    #[default]
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Mirror,
    Unowned,
}

/// Interruption of an instance by AWS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Interruption {
    pub(crate) node: usize,
    pub(crate) begins: Duration,
    pub(crate) cause: Cause,
    /// Delay of its notices.
    pub(crate) delay: Duration,
}

/// Cause of an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cause {
    Spot,
    /// Termination by the group, with a hook.
    Terminate,
    /// Stop by the group, with a hook, and return from the warm pool.
    WarmPool {
        back_after: Duration,
    },
    Rebalance,
    Stop {
        stops_after: Duration,
        starts_after: Option<Duration>,
    },
    ShutDown,
    Maintenance {
        starts_after: Duration,
        reboots: bool,
        called_off_after: Option<Duration>,
    },
}

/// Change of a node by a person.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ManualChange {
    pub(crate) at: Duration,
    pub(crate) node: usize,
    pub(crate) command: Command,
}

/// Command of a person. `Recordon` uncordons a node and cordons it again; `Replace` deletes it, and another instance takes its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    Cordon,
    Uncordon,
    Recordon,
    Taint,
    Label,
    OptOut,
    Delete,
    Replace,
}

/// Kill of an attempt after a number of requests.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Kill {
    pub(crate) attempt: u32,
    pub(crate) after_requests: u32,
}

/// Server of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Side {
    Api,
    Aws,
}

/// Fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// 429, 500 or 503.
    Refused,
    /// 401, for a moment.
    Unauthorized,
    /// 403: a permission is missing, or credentials have expired.
    Denied,
    /// A webhook on nodes fails: nodes cannot be changed.
    Webhook,
    RequestLost,
    /// The request takes effect.
    AnswerLost,
    /// The request takes effect, without any answer.
    Hangs,
    Slow,
}

/// Period in which some requests to a side have a fault.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outage {
    pub(crate) side: Side,
    /// Cluster of the API server; `None`: all.
    #[serde(default)]
    pub(crate) cluster: Option<usize>,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) fault: Fault,
    pub(crate) of_a_thousand: u32,
    /// Text of the affected requests; empty: all.
    #[serde(default)]
    pub(crate) only: String,
}

impl Annotation {
    pub(crate) fn pair(self) -> (&'static str, &'static str) {
        match self {
            Self::DoNotDisrupt => ("karpenter.sh/do-not-disrupt", "true"),
            Self::DoNotDisruptFor90Seconds => ("karpenter.sh/do-not-disrupt", "90s"),
            Self::Skip => ("spillway/drain", "skip"),
            Self::Last => ("spillway/drain", "last"),
        }
    }
}

impl App {
    pub(crate) fn namespace(&self) -> &'static str {
        ["shop", "billing"][self.namespace]
    }

    /// Returns `true` if the pods stay on their nodes.
    pub(crate) fn stays(&self) -> bool {
        matches!(self.owner, Owner::DaemonSet | Owner::Mirror) || self.annotation == Some(Annotation::Skip)
    }
}

impl Plan {
    fn cluster_of(&self, node: usize) -> usize {
        self.clusters.get(node).copied().unwrap_or_default()
    }

    pub(crate) fn cluster_count(&self) -> usize {
        1 + self.clusters.iter().max().copied().unwrap_or_default()
    }

    /// Returns `true` if the function acts in a cluster.
    pub(crate) fn serves(&self, cluster: usize) -> bool {
        let named = self.setting("SPILLWAY_CLUSTERS").unwrap_or_default();
        named.is_empty() || named.split(',').any(|name| name == CLUSTERS[cluster])
    }

    /// Number of a node within its cluster: both clusters have the same addresses.
    fn ordinal(&self, node: usize) -> usize {
        (0..node).filter(|before| self.cluster_of(*before) == self.cluster_of(node)).count()
    }

    pub(crate) fn dns_name(&self, number: usize) -> String {
        format!("ip-10-0-0-{}.ec2.internal", self.ordinal(number))
    }

    pub(crate) fn node(&self, number: usize) -> NodeId {
        let name = match self.names[number] {
            Naming::DnsName => self.dns_name(number),
            Naming::InstanceId => instance_id(number),
            Naming::Other => format!("worker-{}", self.ordinal(number)),
        };
        NodeId { cluster: self.cluster_of(number), name }
    }

    /// Returns `true` if no request to a side has a fault.
    pub(crate) fn is_well(&self, side: Side) -> bool {
        self.outages.iter().all(|outage| outage.side != side)
    }

    pub(crate) fn is_all_well(&self) -> bool {
        self.outages.is_empty()
    }

    /// Prefix of the names of an app's pods. Other namespaces and clusters have the same names.
    pub(crate) fn app_name(&self, app: usize) -> String {
        if !self.apps[app].name.is_empty() {
            return self.apps[app].name.clone();
        }
        let place = |app: &App| (app.cluster, app.namespace);
        let before = self.apps[..app].iter().filter(|before| place(before) == place(&self.apps[app]));
        format!("app-{}", before.count())
    }

    pub(crate) fn is_karpenters(&self, instance: &str) -> bool {
        self.karpenter.iter().any(|number| instance_id(*number) == instance)
    }

    pub(crate) fn is_managed(&self, instance: &str) -> bool {
        self.managed.iter().any(|number| instance_id(*number) == instance)
    }

    /// Start and lead of the maintenance in a plan without other interruptions and with a lead of an hour or more.
    pub(crate) fn planned(&self) -> Option<(Duration, Duration)> {
        let lead = Duration::from_secs(self.setting("SPILLWAY_MAINTENANCE_LEAD_S")?.parse().ok()?);
        let start = |one: &Interruption| match one.cause {
            Cause::Maintenance { starts_after, .. } => Some(starts_after),
            _ => None,
        };
        let starts: Option<Vec<_>> = self.interruptions.iter().map(start).collect();
        Some((starts?.into_iter().min()?, lead)).filter(|_| Duration::from_hours(1) <= lead)
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.setting("SPILLWAY_DRY_RUN") == Some("true")
    }

    pub(crate) fn has_fault(&self, side: Side, fault: Fault) -> bool {
        self.outages.iter().any(|outage| outage.side == side && outage.fault == fault)
    }

    /// Returns `true` if a node may be drained without a cordon, so that pods may return: after five seconds of errors, or fifteen
    /// without an answer (docs/what-happens.md).
    pub(crate) fn may_stay_open(&self) -> bool {
        let prevents_cordon = |outage: &Outage| match outage.fault {
            Fault::Webhook | Fault::Hangs => true,
            Fault::Refused => outage.until > outage.from + Duration::from_secs(5),
            _ => false,
        };
        self.outages.iter().any(|outage| outage.side == Side::Api && prevents_cordon(outage))
    }

    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(set, _)| set == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) fn instance_id(number: usize) -> String {
    format!("i-{number:017x}")
}
