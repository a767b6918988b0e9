//! Plans of what a test is about, instead of a drawn one.

use std::time::Duration;

use super::{App, Cause, Interruption, Naming, Needs, Owner, Plan};

impl App {
    /// So many pods of a deployment, each on the next node, that nothing blocks.
    pub(crate) fn plain(pods: usize) -> Self {
        Self {
            cluster: 0,
            owner: Owner::ReplicaSet,
            pods,
            on_first_node: false,
            grace_s: 30,
            exits_after: Duration::from_secs(1),
            namespace: 0,
            budgets: 0,
            needs: Needs::MinAvailable(0),
            unhealthy: None,
            is_broken: false,
            is_critical: false,
            tolerates: false,
            annotation: None,
            finalizer: false,
            has_volume: false,
        }
    }
}

impl Plan {
    /// Nothing happens but to one node, and to the pods of one app, of which there are none yet.
    pub(crate) fn quiet(app: App) -> Self {
        let drawn = Self::of(0);
        Self {
            nodes: 1,
            clusters: Vec::new(),
            names: drawn.names[..1].to_vec(),
            apps: vec![app],
            interruptions: Vec::new(),
            people: Vec::new(),
            compactions: Vec::new(),
            watch_breaks: 0,
            watch_lag_ms: 0,
            node_status: 0,
            karpenter: Vec::new(),
            managed: Vec::new(),
            ..drawn
        }
    }

    /// So many of the nodes have the same maintenance, and are all that happens. Their pods shut down in three quarters of their grace.
    pub(crate) fn maintenance(nodes: usize, starts_after: Duration, lead_s: &str, grace_s: u64) -> Self {
        let app = App { grace_s, exits_after: Duration::from_secs(grace_s) * 3 / 4, ..App::plain(nodes * 2) };
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
            settings: vec![("SPILLWAY_MAINTENANCE_LEAD_S".to_owned(), lead_s.to_owned())],
            ..Self::quiet(app)
        }
    }
}
