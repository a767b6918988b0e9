//! Plans of tests.

use std::time::Duration;

use super::{App, Cause, Interruption, Naming, Plan};

impl App {
    /// Pods of a deployment, spread over the nodes, without a budget.
    pub(crate) fn plain(pods: usize) -> Self {
        Self { pods, grace_s: 30, exits_after: Duration::from_secs(1), ..Self::default() }
    }
}

impl Plan {
    /// A node with these pods, without any event.
    pub(crate) fn quiet(apps: Vec<App>) -> Self {
        let (invocation, hook_timeout) = (Duration::from_mins(15), Duration::from_mins(30));
        Self { nodes: 1, names: vec![Naming::DnsName], apps, invocation, hook_timeout, ..Self::default() }
    }

    /// Nodes with the same maintenance, and a quarter of spare nodes. Pods shut down in three quarters of their grace.
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
