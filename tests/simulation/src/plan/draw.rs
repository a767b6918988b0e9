//! Plan of a seed.

use std::time::Duration;

use fastrand::Rng;

use super::{
    Annotation, App, Cause, Command, Fault, Interruption, Kill, ManualChange, Naming, Outage, Owner, Plan, Side,
};

use Command::{Cordon, Delete, Label, OptOut, Recordon, Replace, Uncordon};
use Fault::{AnswerLost, Denied, Hangs, Refused, RequestLost, Slow, Unauthorized, Webhook};
use Naming::{DnsName, InstanceId, Other};

const COMMANDS: [Command; 10] =
    [Cordon, Cordon, Uncordon, Recordon, Recordon, Command::Taint, Label, OptOut, Delete, Replace];
const FAULTS: [Fault; 8] = [Refused, Unauthorized, Denied, Webhook, RequestLost, AnswerLost, Hangs, Slow];
const NAMES: [Naming; 6] = [InstanceId, Other, DnsName, DnsName, DnsName, DnsName];

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        // One world of fifty is large: 30 nodes and 300 pods.
        let is_large = rng.u32(0..50) == 0;
        let (nodes, apps, pods, interruptions) =
            if is_large { (30, 15, 20, 12) } else { (rng.usize(1..=3), rng.usize(1..=3), 4, rng.usize(1..=2)) };
        let apps = (0..apps).map(|_| app(&mut rng, pods)).collect();
        let karpenter: Vec<_> = (0..nodes).filter(|_| rng.u32(0..12) == 0).collect();
        let managed = (0..nodes).filter(|node| !karpenter.contains(node) && rng.u32(0..8) == 0).collect();
        let interruptions: Vec<_> = (0..interruptions).map(|_| interruption(&mut rng, nodes, &karpenter)).collect();
        let kills = (0..[0, 0, 0, 1, 1, 2][rng.usize(0..6)]).map(|_| kill(&mut rng)).collect();
        let outages = (0..[0, 0, 1, 2][rng.usize(0..4)]).map(|_| outage(&mut rng)).collect();
        let people = (0..[0, 0, 1, 2][rng.usize(0..4)]).map(|_| manual_change(&mut rng, &interruptions)).collect();
        let compactions = (0..rng.usize(0..3)).map(|_| Duration::from_millis(rng.u64(0..200_000))).collect();
        let settings = settings(&mut rng);
        let invocation = [60, 120, 300, 900, 900, 900][rng.usize(0..6)];
        let mut plan = Self {
            clusters: Vec::new(),
            names: (0..nodes).map(|_| NAMES[rng.usize(0..NAMES.len())]).collect(),
            nodes,
            apps,
            interruptions,
            people,
            compactions,
            duplicates: [0, 100, 500][rng.usize(0..3)],
            kills,
            outages,
            invocation: Duration::from_secs(invocation),
            skew_ms: [0, 0, 200, 2000][rng.usize(0..4)],
            settings,
            hook_timeout: Duration::from_secs([30, 30, 120, 1800][rng.usize(0..4)]),
            watch_breaks: [0, 0, 200, 700][rng.usize(0..4)],
            watch_lag_ms: [0, 20, 500, 3000][rng.usize(0..4)],
            node_status: [0, 100, 500][rng.usize(0..3)],
            karpenter,
            managed,
        };
        if rng.u32(0..8) == 0 {
            plan.add_twin(&mut rng);
        }
        plan
    }

    /// Adds a second cluster with the same names of nodes and pods, and some of the same events, at the same or another time.
    fn add_twin(&mut self, rng: &mut Rng) {
        let nodes = self.nodes;
        self.nodes *= 2;
        self.clusters = (0..self.nodes).map(|node| node / nodes).collect();
        self.names.extend_from_within(..);
        self.apps.extend(self.apps.clone().into_iter().map(|app| App { cluster: 1, ..app }));
        self.karpenter.extend(self.karpenter.clone().iter().map(|node| node + nodes));
        self.managed.extend(self.managed.clone().iter().map(|node| node + nodes));
        for first in self.interruptions.clone() {
            let begins = [first.begins, Duration::from_millis(rng.u64(0..60_000))][rng.usize(0..2)];
            let twin = Interruption { node: first.node + nodes, begins, ..first };
            self.interruptions.extend((rng.u32(0..3) > 0).then_some(twin));
        }
        for outage in self.outages.iter_mut().filter(|outage| outage.side == Side::Api) {
            outage.cluster = [None, Some(0), Some(1)][rng.usize(0..3)];
        }
        let changed = self.people.clone().into_iter().filter(|_| rng.bool());
        self.people.extend(changed.map(|first| ManualChange { node: first.node + nodes, ..first }));
        let served = ["", "prod,stage", "stage"][rng.usize(0..3)];
        self.settings.push(("SPILLWAY_CLUSTERS".to_owned(), served.to_owned()));
    }
}

/// Settings and their values. A value that stands twice is drawn twice as often.
const SETTINGS: [(&str, &str); 9] = [
    ("HOOK_MAX_WAIT_S", "60|60|60|60|120|120|300|300|300|900"),
    ("MANAGED_NODE_GROUPS", "gaps|gaps|drain|off"),
    ("HOOKS_WITHOUT_NODE", "off|CONTINUE|ABANDON"),
    ("MAINTENANCE_LEAD_S", "10|120|300"),
    ("TAINTS", "||spillway|nth|spillway,out-of-service"),
    ("LOAD_BALANCERS", "off|exclude"),
    ("LAUNCH", "off|CONTINUE|ABANDON"),
    ("NODE_EVENTS", "false|true"),
    ("DRY_RUN", "false|false|false|false|false|false|false|false|false|true"),
];

fn settings(rng: &mut Rng) -> Vec<(String, String)> {
    let on_rebalance = match rng.u32(0..4) {
        0 => ("CORDON_ON", "rebalance"),
        _ => ("DRAIN_ON", "spot,capacity,maintenance,state-change,terminate,rebalance"),
    };
    let drawn = SETTINGS.map(|(name, values)| {
        let values: Vec<&str> = values.split('|').collect();
        (name, values[rng.usize(0..values.len())])
    });
    let all = [on_rebalance].into_iter().chain(drawn);
    all.map(|(name, value)| (format!("SPILLWAY_{name}"), value.to_owned())).collect()
}

fn app(rng: &mut Rng, most: usize) -> App {
    let pods = rng.usize(1..=most);
    let grace_s = [0, 1, 5, 30, 30, 30, 60, 110, 300, 3600][rng.usize(0..10)];
    let exits_in_time = rng.u32(0..10) < 8;
    let longest = if exits_in_time { grace_s.min(120) * 1000 } else { grace_s * 1000 + 60_000 };
    let owner = match rng.u32(0..12) {
        0 => Owner::DaemonSet,
        1 => Owner::Mirror,
        2 => Owner::Unowned,
        3 | 4 => Owner::StatefulSet,
        _ => Owner::ReplicaSet,
    };
    App {
        name: String::new(),
        cluster: 0,
        owner,
        pods,
        on_first_node: rng.bool(),
        grace_s,
        exits_after: Duration::from_millis(rng.u64(0..=longest)),
        namespace: rng.usize(0..2),
        budgets: [0, 0, 1, 1, 1, 2][rng.usize(0..6)],
        needs: rng.usize(0..=pods),
        is_critical: rng.u32(0..5) == 0,
        tolerates: rng.u32(0..8) == 0,
        annotation: match rng.u32(0..12) {
            0..3 => Some(Annotation::DoNotDisrupt),
            3 => Some(Annotation::DoNotDisruptFor90Seconds),
            4 => Some(Annotation::Skip),
            5 => Some(Annotation::Last),
            _ => None,
        },
        finalizer: rng.u32(0..12) == 0,
        has_volume: owner == Owner::StatefulSet && rng.u32(0..3) > 0,
    }
}

fn interruption(rng: &mut Rng, nodes: usize, karpenter: &[usize]) -> Interruption {
    let (node, cause) = (rng.usize(0..nodes), cause(rng));
    let has_hook = matches!(cause, Cause::Terminate | Cause::WarmPool { .. });
    Interruption {
        node,
        begins: Duration::from_millis(rng.u64(0..60_000)),
        // An instance of Karpenter has no Auto Scaling group.
        cause: if has_hook && karpenter.contains(&node) { Cause::Spot } else { cause },
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
    let command = COMMANDS[rng.usize(0..COMMANDS.len())];
    // A change of an interrupted node, most often during the interruption.
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
    let fault = FAULTS[rng.usize(0..FAULTS.len())];
    let is_of_api = matches!(fault, Fault::Unauthorized | Fault::Webhook);
    let side = if is_of_api || rng.bool() { Side::Api } else { Side::Aws };
    let lasts = match (fault, side) {
        (Fault::Unauthorized, _) => rng.u64(100..1500),
        // A call of the SDK makes three attempts, and takes longer than any other request.
        (_, Side::Aws) => rng.u64(1000..30_000),
        (_, Side::Api) => rng.u64(1000..30_000) * [1, 8][rng.usize(0..2)],
    };
    Outage {
        side,
        cluster: None,
        from,
        until: from + Duration::from_millis(lasts),
        fault,
        of_a_thousand: [100, 1000, 1000][rng.usize(0..3)],
        only: String::new(),
    }
}
