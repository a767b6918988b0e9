//! From a seed to a plan: what there is, which instances AWS interrupts, what people do, and what goes wrong. All that is
//! drawn beforehand stands here; what is drawn as it happens is how long things take.

use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// What a seed has happen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<PlannedNode>,
    pub(crate) apps: Vec<App>,
    pub(crate) interruptions: Vec<Interruption>,
    pub(crate) people: Vec<ManualChange>,
    /// When the API server forgets what was before.
    pub(crate) compactions: Vec<Duration>,
    /// When the API server is not there, for so long: each connection breaks.
    pub(crate) restarts: Vec<(Duration, Duration)>,
    /// When the namespace of the first app is deleted.
    pub(crate) namespace_ends: Option<Duration>,
    /// How many notices in a thousand are delivered twice.
    pub(crate) duplicates: u32,
    pub(crate) kills: Vec<Kill>,
    pub(crate) outages: Vec<Outage>,
    /// How long an invocation may take.
    pub(crate) invocation: Duration,
    /// By how many milliseconds the function's clock is ahead of AWS' at most, or behind it.
    pub(crate) skew_ms: i64,
    pub(crate) settings: Vec<(String, String)>,
    /// How long Auto Scaling waits after each heartbeat.
    pub(crate) hook_timeout: Duration,
    /// How many watches of a thousand break.
    pub(crate) watch_breaks: u32,
    /// How late a watch tells of a change, in milliseconds at most.
    pub(crate) watch_lag_ms: u64,
    /// How many looks of a thousand at a node are followed by its kubelet's own report.
    pub(crate) node_status: u32,
}

/// A node, and what its instance says of it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PlannedNode {
    pub(crate) naming: Naming,
    pub(crate) manager: Manager,
    /// It has the label and its instance the tag that settings may ask for.
    pub(crate) is_marked: bool,
    /// Its instance's tags name another cluster, too.
    pub(crate) is_of_two: bool,
}

/// What manages the life of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Manager {
    Nobody,
    ManagedNodeGroup,
    Karpenter,
    AutoMode,
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
    pub(crate) owner: Owner,
    /// How many pods: all of them on the first node, or each on the next one.
    pub(crate) pods: usize,
    pub(crate) on_first_node: bool,
    pub(crate) grace_s: u64,
    /// How long its pods take to shut down, if they are let.
    pub(crate) exits_after: Duration,
    /// In which namespace it is.
    pub(crate) namespace: usize,
    /// How many of its pods have to be available, by one budget or two.
    pub(crate) budgets: usize,
    pub(crate) budget: BudgetForm,
    /// Each of its pods has a volume of its own.
    pub(crate) has_volume: bool,
    pub(crate) is_critical: bool,
    /// Its pods tolerate a cordon.
    pub(crate) tolerates: bool,
    pub(crate) annotation: Option<Annotation>,
    /// Its pods' objects outlast them, for a while.
    pub(crate) finalizer: bool,
}

/// How a budget says what it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BudgetForm {
    MinAvailable(usize),
    MinAvailablePercent(usize),
    MaxUnavailable(usize),
    MaxUnavailablePercent(usize),
}

impl BudgetForm {
    /// How many of so many pods have to be healthy.
    pub(crate) fn desired(self, expected: usize) -> usize {
        let share = |percent: usize| (expected * percent).div_ceil(100);
        match self {
            Self::MinAvailable(pods) => pods,
            Self::MinAvailablePercent(percent) => share(percent),
            Self::MaxUnavailable(pods) => expected.saturating_sub(pods),
            Self::MaxUnavailablePercent(percent) => expected.saturating_sub(share(percent)),
        }
    }
}

/// What a pod asks for by an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Annotation {
    DoNotDisrupt,
    DoNotDisruptFor90s,
    NotSafeToEvict,
    /// To be left alone.
    Skip,
    /// To leave after the others.
    Last,
    /// To be left alone until it has finished.
    Wait,
}

impl Annotation {
    /// As it stands on a pod.
    pub(crate) fn written(self) -> (&'static str, &'static str) {
        match self {
            Self::DoNotDisrupt => ("karpenter.sh/do-not-disrupt", "true"),
            Self::DoNotDisruptFor90s => ("karpenter.sh/do-not-disrupt", "90s"),
            Self::NotSafeToEvict => ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
            Self::Skip => ("spillway/drain", "skip"),
            Self::Last => ("spillway/drain", "last"),
            Self::Wait => ("spillway/drain", "wait"),
        }
    }
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
    /// It is refused for want of a right: for a moment, as when a policy is changed.
    Denied,
    /// The credentials are past their time.
    ExpiredCredentials,
    /// A webhook does not answer the API server: what changes something fails after ten seconds and more.
    WebhookHangs,
    /// The authenticator has no time: it answers 401, for a moment.
    Unauthorized,
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
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Outage {
    pub(crate) side: Side,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) fault: Fault,
    pub(crate) of_a_thousand: u32,
}

impl App {
    /// Whether its pods stay on their nodes.
    pub(crate) fn stays(&self) -> bool {
        matches!(self.owner, Owner::DaemonSet | Owner::Mirror) || self.annotation == Some(Annotation::Skip)
    }
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let is_large = rng.u32(0..50) == 0;
        let nodes = if is_large { rng.usize(10..=30) } else { rng.usize(1..=3) };
        let apps = if is_large { rng.usize(10..=40) } else { rng.usize(1..=3) };
        let namespaces = [1, 1, 2, 5][rng.usize(0..4)];
        let apps = (0..apps).map(|_| app(&mut rng, namespaces, if is_large { 12 } else { 4 })).collect();
        let interruptions = if is_large { rng.usize(1..=8) } else { rng.usize(1..=2) };
        let interruptions: Vec<_> = (0..interruptions).map(|_| interruption(&mut rng, nodes)).collect();
        let kills = (0..[0, 0, 0, 1, 1, 2][rng.usize(0..6)]).map(|_| kill(&mut rng)).collect();
        let outages = (0..[0, 0, 1, 2][rng.usize(0..4)]).map(|_| outage(&mut rng)).collect();
        let people = (0..[0, 0, 1, 2][rng.usize(0..4)]).map(|_| manual_change(&mut rng, &interruptions)).collect();
        let compactions = (0..rng.usize(0..3)).map(|_| Duration::from_millis(rng.u64(0..200_000))).collect();
        let restarts = (0..[0, 0, 0, 1, 2][rng.usize(0..5)])
            .map(|_| (Duration::from_millis(rng.u64(0..200_000)), Duration::from_millis(rng.u64(100..20_000))));
        let restarts = restarts.collect();
        let are_alike = rng.u32(0..4) > 0;
        Self {
            nodes: (0..nodes).map(|_| planned_node(&mut rng, are_alike)).collect(),
            apps,
            interruptions,
            people,
            compactions,
            restarts,
            namespace_ends: (rng.u32(0..20) == 0).then(|| Duration::from_millis(rng.u64(1000..120_000))),
            duplicates: [0, 100, 500][rng.usize(0..3)],
            kills,
            outages,
            invocation: Duration::from_secs([60, 120, 300, 900, 900, 900][rng.usize(0..6)]),
            skew_ms: [0, 0, 200, 2000][rng.usize(0..4)],
            settings: settings(&mut rng, is_large),
            hook_timeout: Duration::from_secs([30, 30, 120, 1800][rng.usize(0..4)]),
            watch_breaks: [0, 0, 200, 700][rng.usize(0..4)],
            watch_lag_ms: [0, 20, 500, 3000][rng.usize(0..4)],
            node_status: [0, 100, 500][rng.usize(0..3)],
        }
    }

    /// Nothing happens but to one node, and to the pods of one app, of which there are none yet.
    #[cfg(test)]
    pub(crate) fn quiet(app: App) -> Self {
        let drawn = Self::of(0);
        Self {
            nodes: drawn.nodes[..1].to_vec(),
            restarts: Vec::new(),
            namespace_ends: None,
            apps: vec![app],
            interruptions: Vec::new(),
            people: Vec::new(),
            compactions: Vec::new(),
            watch_breaks: 0,
            watch_lag_ms: 0,
            node_status: 0,
            ..drawn
        }
    }

    /// So many of the nodes have the same maintenance, and are all that happens.
    #[cfg(test)]
    pub(crate) fn maintenance(nodes: usize, starts_after: Duration, settings: &[(&'static str, &str)]) -> Self {
        let app = App {
            owner: Owner::ReplicaSet,
            pods: nodes * 2,
            on_first_node: false,
            grace_s: 120,
            exits_after: Duration::from_secs(75),
            namespace: 0,
            budgets: 0,
            budget: BudgetForm::MinAvailable(0),
            has_volume: false,
            is_critical: false,
            tolerates: false,
            annotation: None,
            finalizer: false,
        };
        let spare = nodes / 4;
        let node =
            PlannedNode { naming: Naming::DnsName, manager: Manager::Nobody, is_marked: true, is_of_two: false };
        let of_node = |node| Interruption {
            node,
            begins: Duration::ZERO,
            cause: Cause::Maintenance { starts_after, reboots: false, called_off_after: None },
            delay: Duration::from_secs(1),
        };
        Self {
            nodes: vec![node; nodes + spare],
            interruptions: (0..nodes).map(of_node).collect(),
            duplicates: 0,
            kills: Vec::new(),
            outages: Vec::new(),
            invocation: Duration::from_secs(900),
            skew_ms: 2000,
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Self::quiet(app)
        }
    }

    /// What EC2 calls the instance of that number.
    pub(crate) fn dns_name(number: usize) -> String {
        format!("ip-10-0-0-{number}.ec2.internal")
    }

    /// What the node of that number is called.
    pub(crate) fn node_name(&self, number: usize) -> String {
        match self.nodes[number].naming {
            Naming::DnsName => Self::dns_name(number),
            Naming::InstanceId => instance_id(number),
            Naming::Other => format!("worker-{number}"),
        }
    }

    /// The node of an instance as it was planned; a replacement is like none.
    pub(crate) fn node_of(&self, instance: &str) -> Option<&PlannedNode> {
        self.nodes.iter().enumerate().find(|(number, _)| instance_id(*number) == instance).map(|(_, node)| node)
    }

    /// The labels of an instance's node by which settings choose, and that say who manages it.
    pub(crate) fn labels_of(&self, instance: &str) -> Vec<(&'static str, &'static str)> {
        let Some(node) = self.node_of(instance) else { return Vec::new() };
        let manager = match node.manager {
            Manager::Nobody => None,
            Manager::ManagedNodeGroup => Some(("eks.amazonaws.com/nodegroup", "workers")),
            Manager::Karpenter => Some(("karpenter.sh/nodepool", "default")),
            Manager::AutoMode => Some(("eks.amazonaws.com/compute-type", "auto")),
        };
        manager.into_iter().chain(node.is_marked.then_some(("team", "shop"))).collect()
    }

    /// The tags of an instance, but for its group's.
    pub(crate) fn tags_of(&self, instance: &str) -> Vec<(&'static str, &'static str)> {
        let Some(node) = self.node_of(instance) else { return vec![("aws:eks:cluster-name", "prod")] };
        let mut tags = match node.manager {
            Manager::Nobody => vec![("aws:eks:cluster-name", "prod")],
            Manager::ManagedNodeGroup => vec![("eks:cluster-name", "prod"), ("eks:nodegroup-name", "workers")],
            Manager::Karpenter => vec![("eks:eks-cluster-name", "prod"), ("karpenter.sh/nodeclaim", "default-1")],
            Manager::AutoMode => vec![("eks:eks-cluster-name", "prod")],
        };
        tags.extend(node.is_marked.then_some(("team", "shop")));
        tags.extend(node.is_of_two.then_some(("kubernetes.io/cluster/stage", "owned")));
        tags
    }

    /// Whether all requests to a side go well.
    pub(crate) fn is_well(&self, side: Side) -> bool {
        (side == Side::Aws || self.restarts.is_empty()) && self.outages.iter().all(|outage| outage.side != side)
    }

    /// Whether what is done is only told.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.setting("SPILLWAY_DRY_RUN") == Some("true")
    }

    /// Whether such a notice drains a node, or cordons it.
    pub(crate) fn is_on(&self, what: &str, kind: &str) -> bool {
        let kinds = self.setting(&format!("SPILLWAY_{what}_ON")).unwrap_or_default();
        kinds.split(',').any(|on| on == kind)
    }

    /// Whether such a notice drains a node.
    pub(crate) fn drains_on(&self, kind: &str) -> bool {
        self.is_on("DRAIN", kind) && !self.is_dry_run()
    }

    /// Whether the settings let anything be done about an instance, for such a notice.
    pub(crate) fn acts_on(&self, instance: &str, kind: Option<&str>) -> bool {
        let node = self.node_of(instance);
        let is_asked_for = |setting| self.setting(setting).is_some_and(|value| !value.is_empty());
        let chooses = is_asked_for("SPILLWAY_MANAGED_TAG") || is_asked_for("SPILLWAY_NODE_SELECTOR");
        if chooses && !node.is_some_and(|node| node.is_marked) {
            return false;
        }
        let is_of_one = self.setting("SPILLWAY_CLUSTERS") == Some("prod");
        match node.map_or((Manager::Nobody, false), |node| (node.manager, node.is_of_two)) {
            (_, true) if !is_of_one => false,
            (Manager::Nobody, _) => true,
            (Manager::ManagedNodeGroup, _) => match self.setting("SPILLWAY_MANAGED_NODE_GROUPS") {
                Some("leave") => false,
                Some("gaps") => !matches!(kind, Some("spot" | "rebalance")),
                _ => true,
            },
            (Manager::Karpenter | Manager::AutoMode, _) => false,
        }
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

fn planned_node(rng: &mut Rng, are_alike: bool) -> PlannedNode {
    PlannedNode {
        naming: match rng.u32(0..6) {
            0 => Naming::InstanceId,
            1 => Naming::Other,
            _ => Naming::DnsName,
        },
        manager: match rng.u32(0..6) {
            _ if are_alike => Manager::Nobody,
            0 | 1 => Manager::ManagedNodeGroup,
            2 => Manager::Karpenter,
            3 => Manager::AutoMode,
            _ => Manager::Nobody,
        },
        is_marked: rng.u32(0..4) > 0,
        is_of_two: !are_alike && rng.u32(0..6) == 0,
    }
}

/// What of a notice the settings ask for.
const NOTICES: &str = "spot,capacity,maintenance,state-change,terminate,rebalance";

fn settings(rng: &mut Rng, is_large: bool) -> Vec<(String, String)> {
    let one = |rng: &mut Rng, values: &[&str]| values[rng.usize(0..values.len())].to_owned();
    let rarely = |rng: &mut Rng, usual: &str, rare: &str| if rng.u32(0..16) == 0 { rare } else { usual }.to_owned();
    let (drains, cordons) = match rng.u32(0..16) {
        0 => ("spot,maintenance,state-change", "terminate,rebalance"),
        1 => ("terminate", "spot,maintenance,rebalance,state-change"),
        2 => ("spot,terminate", ""),
        _ => (NOTICES, ""),
    };
    // What takes long takes a simulation long, too.
    let is_long = !is_large && rng.u32(0..16) == 0;
    let (longest_wait, longest_window) = if is_long {
        ("3600".to_owned(), "3600".to_owned())
    } else {
        (one(rng, &["60", "60", "120", "300"]), one(rng, &["30", "120", "300"]))
    };
    let settings = [
        ("SPILLWAY_DRAIN_ON", drains.to_owned()),
        ("SPILLWAY_CORDON_ON", cordons.to_owned()),
        ("SPILLWAY_DRY_RUN", rarely(rng, "false", "true")),
        ("SPILLWAY_CLUSTERS", one(rng, &["", "", "prod", "prod,stage"])),
        ("SPILLWAY_MANAGED_TAG", rarely(rng, "", "team=shop")),
        ("SPILLWAY_NODE_SELECTOR", rarely(rng, "", "team=shop")),
        ("SPILLWAY_MANAGED_NODE_GROUPS", one(rng, &["gaps", "leave", "drain"])),
        ("SPILLWAY_STRANDED_HOOKS", one(rng, &["leave", "leave", "CONTINUE", "ABANDON"])),
        ("SPILLWAY_VOLUME_WAIT_S", one(rng, &["60", "60", "0", "10"])),
        ("SPILLWAY_HOOK_MAX_WAIT_S", longest_wait),
        ("SPILLWAY_REBALANCE_WINDOW_S", longest_window),
        ("SPILLWAY_MAINTENANCE_LEAD_S", one(rng, &["10", "120", "300"])),
        ("SPILLWAY_TAINTS", one(rng, &["", "", "spillway", "nth", "spillway,out-of-service"])),
        ("SPILLWAY_LOAD_BALANCERS", one(rng, &["leave", "exclude", "wait"])),
        ("SPILLWAY_LAUNCH", one(rng, &["ignore", "CONTINUE", "ABANDON"])),
        ("SPILLWAY_NODE_EVENTS", one(rng, &["none", "none", "spillway", "nth"])),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).into()
}

fn app(rng: &mut Rng, namespaces: usize, most: usize) -> App {
    let pods = rng.usize(1..=most);
    let grace_s = [0, 1, 5, 30, 30, 30, 60, 110, 300, 3600][rng.usize(0..10)];
    let exits_in_time = rng.u32(0..10) < 8;
    let longest = if exits_in_time { grace_s.min(120) * 1000 } else { grace_s * 1000 + 60_000 };
    App {
        owner: match rng.u32(0..12) {
            0 => Owner::DaemonSet,
            1 => Owner::Mirror,
            2 => Owner::Nobody,
            3 | 4 => Owner::StatefulSet,
            _ => Owner::ReplicaSet,
        },
        pods,
        on_first_node: rng.bool(),
        grace_s,
        exits_after: Duration::from_millis(rng.u64(0..=longest)),
        budgets: [0, 0, 1, 1, 1, 2][rng.usize(0..6)],
        budget: match rng.u32(0..6) {
            0 => BudgetForm::MinAvailablePercent(rng.usize(0..=100)),
            1 => BudgetForm::MaxUnavailable(rng.usize(0..=2)),
            2 => BudgetForm::MaxUnavailablePercent(rng.usize(0..=60)),
            _ => BudgetForm::MinAvailable(rng.usize(0..=pods)),
        },
        namespace: rng.usize(0..namespaces),
        has_volume: rng.u32(0..6) == 0,
        is_critical: rng.u32(0..5) == 0,
        tolerates: rng.u32(0..8) == 0,
        annotation: match rng.u32(0..12) {
            0 => Some(Annotation::DoNotDisrupt),
            1 => Some(Annotation::DoNotDisruptFor90s),
            2 => Some(Annotation::NotSafeToEvict),
            3 => Some(Annotation::Skip),
            4 => Some(Annotation::Last),
            5 => Some(Annotation::Wait),
            _ => None,
        },
        finalizer: rng.u32(0..12) == 0,
    }
}

fn interruption(rng: &mut Rng, nodes: usize) -> Interruption {
    Interruption {
        node: rng.usize(0..nodes),
        begins: Duration::from_millis(rng.u64(0..60_000)),
        cause: cause(rng),
        delay: Duration::from_millis([0, 300, 1500, 20_000][rng.usize(0..4)] + rng.u64(0..500)),
    }
}

fn cause(rng: &mut Rng) -> Cause {
    let mut within = |from: u64, to: u64| Duration::from_millis(rng.u64(from * 1000..to * 1000));
    let (soon, late, later) = (within(1, 90), within(60, 600), within(1, 600));
    match rng.u32(0..12) {
        0..2 => Cause::Spot,
        2..5 => Cause::Terminate,
        5 => Cause::WarmPool { back_after: late },
        6 | 7 => Cause::Rebalance,
        8 => Cause::Stop { stops_after: soon, starts_after: rng.bool().then_some(late) },
        9 => Cause::ShutDown,
        _ => Cause::Maintenance {
            starts_after: late,
            reboots: rng.bool(),
            called_off_after: rng.bool().then_some(later),
        },
    }
}

fn manual_change(rng: &mut Rng, interruptions: &[Interruption]) -> ManualChange {
    let commands = [
        Command::Cordon,
        Command::Cordon,
        Command::Uncordon,
        Command::Recordon,
        Command::Recordon,
        Command::Taint,
        Command::Label,
        Command::OptOut,
        Command::Delete,
        Command::Replace,
    ];
    let command = commands[rng.usize(0..commands.len())];
    // To a node whose instance is interrupted, and rather while it is.
    let interruption = &interruptions[rng.usize(0..interruptions.len())];
    let within = [5_000, 60_000, 300_000][rng.usize(0..3)];
    let at = interruption.begins + interruption.delay + Duration::from_millis(rng.u64(0..within));
    ManualChange { at: at.saturating_sub(Duration::from_secs(2)), node: interruption.node, command }
}

fn kill(rng: &mut Rng) -> Kill {
    Kill { attempt: rng.u32(0..4), after_requests: rng.u32(1..25) }
}

fn outage(rng: &mut Rng) -> Outage {
    let from = Duration::from_millis(rng.u64(0..120_000));
    let faults = [
        Fault::Refused,
        Fault::Refused,
        Fault::Unauthorized,
        Fault::RequestLost,
        Fault::AnswerLost,
        Fault::Hangs,
        Fault::Slow,
        Fault::Denied,
        Fault::ExpiredCredentials,
        Fault::WebhookHangs,
    ];
    let fault = faults[rng.usize(0..faults.len())];
    let side = match fault {
        Fault::Unauthorized | Fault::WebhookHangs => Side::Api,
        Fault::ExpiredCredentials => Side::Aws,
        _ => {
            if rng.bool() {
                Side::Api
            } else {
                Side::Aws
            }
        }
    };
    let lasts = match (fault, side) {
        (Fault::Unauthorized, _) => rng.u64(100..1500),
        (Fault::Denied | Fault::ExpiredCredentials, _) => rng.u64(1000..10_000),
        // Each call of the SDK makes three attempts, and takes the longest of all that a seed does.
        (_, Side::Aws) => rng.u64(1000..30_000),
        (_, Side::Api) => rng.u64(1000..30_000) * [1, 8][rng.usize(0..2)],
    };
    Outage {
        side,
        from,
        until: from + Duration::from_millis(lasts),
        fault,
        of_a_thousand: [100, 1000, 1000][rng.usize(0..3)],
    }
}
