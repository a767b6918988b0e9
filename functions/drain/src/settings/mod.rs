//! The settings: environment variables, read and checked once, every problem reported at once.
//!
//! * `table`: every setting with its default, as the documents and the template show it
//! * `values`: what their values mean
//! * `selector`: a label selector as kubectl takes it

mod selector;
mod table;
mod values;

use std::time::Duration;

use kube::core::Selector;
use spillway_startup::settings::{Reader, SettingsError};

use crate::notice::{capacity_reservation, spot};
#[cfg(test)]
pub(crate) use table::SETTINGS;
pub(crate) use values::{
    Announce, Heartbeat, HeldPods, KarpenterNodes, LaunchHooks, LifecycleResult, ManagedNodeGroups, ManagedTag,
    NodeEvents, Policy, Schedules, TaintEffect, TaintNames,
};

/// Everything that the person who deploys can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// What each kind of notice does.
    pub(crate) spot: Policy,
    pub(crate) capacity: Policy,
    pub(crate) maintenance: Policy,
    pub(crate) state_change: Policy,
    pub(crate) rebalance: Policy,
    pub(crate) terminate: Policy,
    pub(crate) launch: LaunchHooks,
    /// What becomes of nodes that have another owner.
    pub(crate) managed_node_groups: ManagedNodeGroups,
    pub(crate) karpenter: KarpenterNodes,
    /// The clusters whose nodes are acted on; empty: all.
    pub(crate) clusters: Vec<String>,
    /// The tag that an instance or its group must have.
    pub(crate) managed_tag: Option<ManagedTag>,
    /// The labels that a node must have.
    pub(crate) node_selector: Selector,
    /// The hooks that are ours; empty: all but EKS' own.
    pub(crate) hooks: Vec<String>,
    /// The answer to a hook whose instance is in no cluster or in one we may not enter.
    pub(crate) stranded_hooks: Option<LifecycleResult>,
    /// How long a hook may be held, from its notice.
    pub(crate) hook_max_wait: Duration,
    /// How often a hook gets a heartbeat.
    pub(crate) heartbeat: Heartbeat,
    /// The answer to a hook whose node still has pods when the time is up.
    pub(crate) undrained_result: LifecycleResult,
    /// The answer to a launch hook whose node never was Ready.
    pub(crate) unready_result: LifecycleResult,
    /// For how long a rebalance recommendation drains.
    pub(crate) rebalance_window: Duration,
    /// After how long it is undone, if no interruption followed.
    pub(crate) rebalance_undo: Duration,
    /// How long before scheduled maintenance its drain begins.
    pub(crate) maintenance_lead: Duration,
    /// What becomes of pods that are held when nothing more is waited for.
    pub(crate) held_pods: HeldPods,
    /// What is kept before the instance goes, so that the kubelet can report its pods' end.
    pub(crate) margin: Duration,
    /// Whether the claim taints the node, and by whose names.
    pub(crate) taint: Option<TaintNames>,
    pub(crate) taint_effect: TaintEffect,
    /// Whether the claim takes the node out of load balancers.
    pub(crate) exclude_from_load_balancers: bool,
    /// Whether a stopped node is declared out of service.
    pub(crate) out_of_service_taint: bool,
    /// Whether Kubernetes events tell of a drain, and by whose reasons.
    pub(crate) node_events: Option<NodeEvents>,
    /// Whether to touch nothing.
    pub(crate) dry_run: bool,
    /// What is put on the event bus of a drain.
    pub(crate) announce: Announce,
    /// The CloudWatch namespace of the metrics.
    pub(crate) metrics_namespace: String,
    /// Where what is done later is kept; absent when the template did not say.
    pub(crate) schedules: Option<Schedules>,
    /// The name of the stack that the function is of; empty when the template did not say.
    pub(crate) stack: String,
}

impl Settings {
    /// Reads the settings from environment variables; those that are not ours are passed over.
    pub(crate) fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Result<Self, SettingsError> {
        let mut reader = Reader::new(variables, &table::known());
        let settings = Self {
            spot: reader.read(table::SPOT, values::action),
            capacity: reader.read(table::CAPACITY, values::action),
            maintenance: reader.read(table::MAINTENANCE, values::action),
            state_change: reader.read(table::STATE_CHANGE, values::action),
            rebalance: reader.read(table::REBALANCE, values::action),
            terminate: reader.read(table::TERMINATE, values::action),
            launch: reader.read(table::LAUNCH, values::launch_hooks),
            managed_node_groups: reader.read(table::MANAGED_NODE_GROUPS, values::managed_node_groups),
            karpenter: reader.read(table::KARPENTER, values::karpenter_nodes),
            clusters: reader.read(table::CLUSTERS, values::cluster_names),
            managed_tag: reader.read(table::MANAGED_TAG, values::managed_tag),
            node_selector: reader.read(table::NODE_SELECTOR, values::node_selector),
            hooks: reader.read(table::HOOKS, values::hook_names),
            stranded_hooks: reader.read(table::STRANDED_HOOKS, values::stranded_hooks),
            hook_max_wait: reader.read(table::HOOK_MAX_WAIT, |value| values::seconds(value, 60..=172_800)),
            heartbeat: reader.read(table::HEARTBEAT, values::heartbeat),
            undrained_result: reader.read(table::UNDRAINED_RESULT, values::lifecycle_result),
            unready_result: reader.read(table::UNREADY_RESULT, values::lifecycle_result),
            rebalance_window: reader.read(table::REBALANCE_WINDOW, |value| values::seconds(value, 1..=86_400)),
            rebalance_undo: reader.read(table::REBALANCE_UNDO, |value| values::seconds(value, 1..=604_800)),
            maintenance_lead: reader.read(table::MAINTENANCE_LEAD, |value| values::seconds(value, 1..=172_800)),
            held_pods: reader.read(table::HELD_PODS, values::held_pods),
            margin: reader.read(table::MARGIN, |value| values::seconds(value, 0..=600)),
            taint: reader.read(table::TAINT, values::taint_names),
            taint_effect: reader.read(table::TAINT_EFFECT, values::taint_effect),
            exclude_from_load_balancers: reader.read(table::EXCLUDE_FROM_LOAD_BALANCERS, values::flag),
            out_of_service_taint: reader.read(table::OUT_OF_SERVICE_TAINT, values::flag),
            node_events: reader.read(table::NODE_EVENTS, values::node_events),
            dry_run: reader.read(table::DRY_RUN, values::flag),
            announce: reader.read(table::ANNOUNCE, values::announce),
            metrics_namespace: reader.read(table::METRICS_NAMESPACE, values::metrics_namespace),
            schedules: reader.read(table::SCHEDULES, values::schedules),
            stack: reader.read(table::STACK, values::stack),
        };
        settings.report_contradictions(&mut reader);
        reader.finish(settings)
    }

    /// Each value may be good by itself, and two of them still make no sense together.
    fn report_contradictions(&self, reader: &mut Reader) {
        let seconds = |setting, duration: Duration| (setting, duration.as_secs().to_string());
        let max_wait = seconds(table::HOOK_MAX_WAIT, self.hook_max_wait);
        let margin = seconds(table::MARGIN, self.margin);
        if let Heartbeat::After(heartbeat) = self.heartbeat
            && heartbeat >= self.hook_max_wait
        {
            let why = "no hook is held long enough for a heartbeat";
            reader.contradict([seconds(table::HEARTBEAT, heartbeat), max_wait.clone()], why);
        }
        let notices =
            [(table::SPOT, self.spot, spot::NOTICE), (table::CAPACITY, self.capacity, capacity_reservation::NOTICE)];
        for (setting, action, notice) in notices {
            if action == Policy::Drain && self.margin >= notice.unsigned_abs() {
                let why = "nothing of such a notice's 120 s would be left for the drain";
                reader.contradict([margin.clone(), (setting, "drain".to_owned())], why);
            }
        }
        let window = seconds(table::REBALANCE_WINDOW, self.rebalance_window);
        if self.held_pods == HeldPods::Delete && self.margin >= self.hook_max_wait {
            reader.contradict([margin.clone(), max_wait], "nothing of a hook's wait would be left for the drain");
        }
        if self.held_pods == HeldPods::Delete && self.rebalance == Policy::Drain && self.margin >= self.rebalance_window
        {
            reader.contradict([margin.clone(), window.clone()], "nothing of that window would be left for the drain");
        }
        if self.maintenance == Policy::Drain && self.margin >= self.maintenance_lead {
            let lead = seconds(table::MAINTENANCE_LEAD, self.maintenance_lead);
            reader.contradict([margin, lead], "nothing of the lead would be left for the drain");
        }
        if self.rebalance != Policy::Ignore && self.rebalance_undo <= self.rebalance_window {
            let undo = seconds(table::REBALANCE_UNDO, self.rebalance_undo);
            reader.contradict([undo, window], "the node would be uncordoned while it still drains");
        }
    }
}

#[cfg(test)]
mod tests;
