//! From a seed to a plan: what there is, which instances AWS interrupts, what people do, and what goes wrong. All that is
//! drawn beforehand stands here; what is drawn as it happens is how long things take.

use std::time::Duration;

use fastrand::Rng;

/// What a seed has happen.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
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
    pub(crate) settings: Vec<(&'static str, String)>,
    /// How long Auto Scaling waits after each heartbeat.
    pub(crate) hook_timeout: Duration,
    /// How many watches of a thousand break.
    pub(crate) watch_breaks: u32,
    /// How late a watch tells of a change, in milliseconds at most.
    pub(crate) watch_lag_ms: u64,
    /// How many looks of a thousand at a node are followed by its kubelet's own report.
    pub(crate) node_status: u32,
    /// How many invocations there may be at once.
    pub(crate) limit: Option<usize>,
    /// How many of them drains that can wait may have, if they have a queue.
    pub(crate) patient_slots: usize,
}

/// By what a node has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    DnsName,
    InstanceId,
    /// Nothing that could be guessed.
    Other,
}

/// What puts pods on the nodes.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct App {
    pub(crate) owner: Owner,
    /// How many pods: all of them on the first node, or each on the next one.
    pub(crate) pods: usize,
    pub(crate) on_first_node: bool,
    pub(crate) grace_s: u64,
    /// How long its pods take to shut down, if they are let.
    pub(crate) exits_after: Duration,
    /// How many of its pods have to be available, by one budget or two.
    pub(crate) budgets: usize,
    pub(crate) min_available: usize,
    pub(crate) is_critical: bool,
    /// Its pods tolerate a cordon.
    pub(crate) tolerates: bool,
    pub(crate) annotation: Option<(&'static str, &'static str)>,
    /// Its pods' objects outlast them, for a while.
    pub(crate) finalizer: bool,
}

/// What a pod is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone)]
pub(crate) struct Interruption {
    pub(crate) node: usize,
    pub(crate) begins: Duration,
    pub(crate) cause: Cause,
    /// How long its notices take to be delivered.
    pub(crate) delay: Duration,
}

/// Why an instance is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct ManualChange {
    pub(crate) at: Duration,
    pub(crate) node: usize,
    pub(crate) command: Command,
}

/// A person's command for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kill {
    pub(crate) attempt: u32,
    pub(crate) after_requests: u32,
}

/// Who is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Api,
    Aws,
}

/// Why a request does not simply get its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is refused: busy, or broken.
    Refused,
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outage {
    pub(crate) side: Side,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) fault: Fault,
    pub(crate) of_a_thousand: u32,
}

/// How many hooks are blocked, spot notices come beside them, so much later, and invocations there may be at once: of these so many
/// for drains that can wait.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    pub(crate) hooks: usize,
    pub(crate) spots: usize,
    pub(crate) spots_at_s: u64,
    pub(crate) limit: usize,
    pub(crate) slots: usize,
}

impl App {
    /// So many pods of a deployment, each on the next node, that nothing blocks.
    #[cfg(test)]
    fn plain(pods: usize) -> Self {
        Self {
            owner: Owner::ReplicaSet,
            pods,
            on_first_node: false,
            grace_s: 30,
            exits_after: Duration::from_secs(1),
            budgets: 0,
            min_available: 0,
            is_critical: false,
            tolerates: false,
            annotation: None,
            finalizer: false,
        }
    }

    /// Whether its pods stay on their nodes.
    pub(crate) fn stays(&self) -> bool {
        matches!(self.owner, Owner::DaemonSet | Owner::Mirror) || self.annotation == Some(SKIPPED)
    }
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let nodes = rng.usize(1..=3);
        let apps = (0..rng.usize(1..=3)).map(|_| app(&mut rng)).collect();
        let interruptions: Vec<_> = (0..rng.usize(1..=2)).map(|_| interruption(&mut rng, nodes)).collect();
        let kills = (0..[0, 0, 0, 1, 1, 2][rng.usize(0..6)]).map(|_| kill(&mut rng)).collect();
        let outages = (0..[0, 0, 1, 2][rng.usize(0..4)]).map(|_| outage(&mut rng)).collect();
        let people = (0..[0, 0, 1, 2][rng.usize(0..4)]).map(|_| manual_change(&mut rng, &interruptions)).collect();
        let compactions = (0..rng.usize(0..3)).map(|_| Duration::from_millis(rng.u64(0..200_000))).collect();
        let naming = |rng: &mut Rng| match rng.u32(0..6) {
            0 => Naming::InstanceId,
            1 => Naming::Other,
            _ => Naming::DnsName,
        };
        Self {
            names: (0..nodes).map(|_| naming(&mut rng)).collect(),
            nodes,
            apps,
            interruptions,
            people,
            compactions,
            duplicates: [0, 100, 500][rng.usize(0..3)],
            kills,
            outages,
            invocation: Duration::from_secs([60, 120, 300, 900, 900, 900][rng.usize(0..6)]),
            skew_ms: [0, 0, 200, 2000][rng.usize(0..4)],
            settings: settings(&mut rng),
            hook_timeout: Duration::from_secs([30, 30, 120, 1800][rng.usize(0..4)]),
            watch_breaks: [0, 0, 200, 700][rng.usize(0..4)],
            watch_lag_ms: [0, 20, 500, 3000][rng.usize(0..4)],
            node_status: [0, 100, 500][rng.usize(0..3)],
            limit: None,
            patient_slots: 0,
        }
    }

    /// Nothing happens but to one node, and to the pods of one app, of which there are none yet.
    #[cfg(test)]
    pub(crate) fn quiet(app: App) -> Self {
        let drawn = Self::of(0);
        Self {
            nodes: 1,
            names: drawn.names[..1].to_vec(),
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
        let app = App { grace_s: 120, exits_after: Duration::from_secs(75), ..App::plain(nodes * 2) };
        let spare = nodes / 4;
        let of_node = |node| Interruption {
            node,
            begins: Duration::ZERO,
            cause: Cause::Maintenance { starts_after, reboots: false, called_off_after: None },
            delay: Duration::from_secs(1),
        };
        Self {
            nodes: nodes + spare,
            names: vec![Naming::DnsName; nodes + spare],
            interruptions: (0..nodes).map(of_node).collect(),
            duplicates: 0,
            kills: Vec::new(),
            outages: Vec::new(),
            invocation: Duration::from_secs(900),
            skew_ms: 2000,
            settings: settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            ..Self::quiet(app)
        }
    }

    /// Drains of hooks that a budget blocks for their hour, and spot notices beside them, all in one moment.
    #[cfg(test)]
    pub(crate) fn lane(lane: Lane) -> Self {
        let Lane { hooks, spots, spots_at_s, limit, slots } = lane;
        let blocked = App { budgets: 1, min_available: hooks, ..App::plain(hooks) };
        let nodes = hooks + spots + 1;
        let of_node = |node| {
            let (begins, cause) = if node < hooks { (0, Cause::Terminate) } else { (spots_at_s, Cause::Spot) };
            Interruption { node, begins: Duration::from_secs(begins), cause, delay: Duration::ZERO }
        };
        let queue = "https://sqs.us-east-1.amazonaws.com/123456789012/patient";
        let settings = if slots > 0 { vec![("SPILLWAY_PATIENT_QUEUE", queue.to_owned())] } else { Vec::new() };
        Self {
            nodes,
            names: vec![Naming::DnsName; nodes],
            apps: vec![blocked, App::plain(nodes)],
            interruptions: (0..hooks + spots).map(of_node).collect(),
            duplicates: 0,
            kills: Vec::new(),
            outages: Vec::new(),
            invocation: Duration::from_secs(900),
            skew_ms: 0,
            settings,
            hook_timeout: Duration::from_secs(300),
            limit: Some(limit),
            patient_slots: slots,
            ..Self::quiet(App::plain(0))
        }
    }

    /// What EC2 calls the instance of that number.
    pub(crate) fn dns_name(number: usize) -> String {
        format!("ip-10-0-0-{number}.ec2.internal")
    }

    /// What the node of that number is called.
    pub(crate) fn node_name(&self, number: usize) -> String {
        match self.names[number] {
            Naming::DnsName => Self::dns_name(number),
            Naming::InstanceId => instance_id(number),
            Naming::Other => format!("worker-{number}"),
        }
    }

    /// Whether all requests to a side go well.
    pub(crate) fn is_well(&self, side: Side) -> bool {
        self.outages.iter().all(|outage| outage.side != side)
    }

    /// What a setting is, of those that are drawn.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(set, _)| *set == name).map(|(_, value)| value.as_str())
    }
}

/// The id of the instance of that number.
pub(crate) fn instance_id(number: usize) -> String {
    format!("i-{number:017x}")
}

/// A pod that asks to be left alone, and one that asks to leave after the others.
pub(crate) const SKIPPED: (&str, &str) = ("spillway/drain", "skip");
pub(crate) const LAST: (&str, &str) = ("spillway/drain", "last");

fn settings(rng: &mut Rng) -> Vec<(&'static str, String)> {
    let one = |rng: &mut Rng, values: &[&str]| values[rng.usize(0..values.len())].to_owned();
    vec![
        ("SPILLWAY_DRAIN_ON", "spot,capacity,maintenance,state-change,terminate,rebalance".to_owned()),
        ("SPILLWAY_HOOK_MAX_WAIT_S", one(rng, &["60", "60", "120", "300"])),
        ("SPILLWAY_REBALANCE_WINDOW_S", one(rng, &["30", "120", "300"])),
        ("SPILLWAY_MAINTENANCE_LEAD_S", one(rng, &["10", "120", "300"])),
        ("SPILLWAY_TAINTS", one(rng, &["", "", "spillway", "nth", "spillway,out-of-service"])),
        ("SPILLWAY_LOAD_BALANCERS", one(rng, &["leave", "exclude"])),
        ("SPILLWAY_LAUNCH", one(rng, &["ignore", "CONTINUE", "ABANDON"])),
    ]
}

fn app(rng: &mut Rng) -> App {
    let pods = rng.usize(1..=4);
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
        min_available: rng.usize(0..=pods),
        is_critical: rng.u32(0..5) == 0,
        tolerates: rng.u32(0..8) == 0,
        annotation: match rng.u32(0..12) {
            0 => Some(("karpenter.sh/do-not-disrupt", "true")),
            1 => Some(("karpenter.sh/do-not-disrupt", "90s")),
            2 => Some(("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")),
            3 => Some(SKIPPED),
            4 => Some(LAST),
            5 => Some(("spillway/drain", "wait")),
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
    let faults =
        [Fault::Refused, Fault::Unauthorized, Fault::RequestLost, Fault::AnswerLost, Fault::Hangs, Fault::Slow];
    let fault = faults[rng.usize(0..faults.len())];
    let side = if fault == Fault::Unauthorized || rng.bool() { Side::Api } else { Side::Aws };
    let lasts = match (fault, side) {
        (Fault::Unauthorized, _) => rng.u64(100..1500),
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
