//! Plans of what a test is about, instead of a drawn one.

use std::time::Duration;

use super::{App, Cause, Interruption, Naming, Needs, Owner, Plan};

impl App {
    /// So many pods of a deployment, each on the next node, that nothing blocks.
    pub(crate) fn plain(pods: usize) -> Self {
        Self {
            name: String::new(),
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
    /// Nothing happens but to one node, and to the pods of these apps.
    pub(crate) fn quiet(apps: Vec<App>) -> Self {
        Self {
            nodes: 1,
            clusters: Vec::new(),
            names: vec![Naming::DnsName],
            apps,
            interruptions: Vec::new(),
            people: Vec::new(),
            compactions: Vec::new(),
            duplicates: 0,
            kills: Vec::new(),
            outages: Vec::new(),
            invocation: Duration::from_mins(15),
            skew_ms: 0,
            settings: Vec::new(),
            karpenter: Vec::new(),
            managed: Vec::new(),
            hook_timeout: Duration::from_mins(30),
            watch_breaks: 0,
            watch_lag_ms: 0,
            node_status: 0,
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
            skew_ms: 2000,
            settings: vec![("SPILLWAY_MAINTENANCE_LEAD_S".to_owned(), lead_s.to_owned())],
            ..Self::quiet(vec![app])
        }
    }
}
