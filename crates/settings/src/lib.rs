//! The settings: environment variables, read and checked once, every problem reported at once.
//!
//! * `environment`: reads variables, also for the announce function
//! * `table`: every setting with its default, as the documents and the template show it
//! * `values`: what their values mean
//! * `selector`: a label selector as kubectl takes it

pub mod environment;
mod selector;
mod table;
mod values;

use std::time::Duration;

use environment::Reader;
pub use environment::SettingsError;
use kube_core::Selector;
pub use spillway_receipt::LifecycleResult;

#[cfg(test)]
use table::SETTINGS;
pub use values::{
    GroupTag, KarpenterNodes, LoadBalancers, ManagedNodeGroups, ManagedTag, NoticeFamily, Policy, Schedules,
    TaintNames, Taints,
};

/// Everything that the person who deploys can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The notices that drain a node, and those that only cordon it; the others are ignored.
    pub drain_on: Vec<NoticeFamily>,
    pub cordon_on: Vec<NoticeFamily>,
    /// The answer to a launch hook whose node never was Ready; absent: launch hooks are left to others.
    pub launch: Option<LifecycleResult>,
    /// What becomes of nodes that have another owner.
    pub managed_node_groups: ManagedNodeGroups,
    pub karpenter: KarpenterNodes,
    /// The clusters whose nodes are acted on; empty: all.
    pub clusters: Vec<String>,
    /// The tag that an instance or its group must have.
    pub managed_tag: Option<ManagedTag>,
    /// The labels that a node must have.
    pub node_selector: Selector,
    /// The hooks that are ours.
    pub hooks: Vec<String>,
    /// The tag of the groups whose hooks the role may touch; absent: all groups'.
    pub hook_group_tag: Option<GroupTag>,
    /// The answer to a hook whose instance is in no cluster or in one we may not enter.
    pub hooks_without_node: Option<LifecycleResult>,
    /// How long a hook may be held, from its notice.
    pub hook_max_wait: Duration,
    /// How long before scheduled maintenance its drain begins.
    pub maintenance_lead: Duration,
    /// Which taints a node gets.
    pub taints: Taints,
    /// What load balancers are told of the node, and whether a hook waits for them.
    pub load_balancers: LoadBalancers,
    /// Whether Kubernetes events on the node and its pods describe a drain.
    pub node_events: bool,
    /// Whether to touch nothing.
    pub dry_run: bool,
    /// Where what is done later is kept; absent when the template did not say.
    pub schedules: Option<Schedules>,
    /// The name of the stack that the function is of; empty when the template did not say.
    pub stack: String,
    /// The URL of the queue for messages about drains; absent when nobody is notified.
    pub announcements: Option<String>,
    /// Refused values and contradictions. Each setting in question has its default, and no notice is handled.
    pub wrong: Option<SettingsError>,
    /// Variables with our prefix that this version does not know.
    pub unknown: Vec<String>,
}

impl Settings {
    /// Reads the settings from environment variables; those that are not ours are passed over.
    #[must_use]
    pub fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut reader = Reader::new(variables, &table::known());
        let mut settings = Self {
            drain_on: reader.read(table::DRAIN_ON, values::notices),
            cordon_on: reader.read(table::CORDON_ON, values::notices),
            launch: reader.read(table::LAUNCH, values::launch_hooks),
            managed_node_groups: reader.read(table::MANAGED_NODE_GROUPS, values::managed_node_groups),
            karpenter: reader.read(table::KARPENTER, values::karpenter_nodes),
            clusters: reader.read(table::CLUSTERS, values::cluster_names),
            managed_tag: reader.read(table::MANAGED_TAG, values::managed_tag),
            node_selector: reader.read(table::NODE_SELECTOR, values::node_selector),
            hooks: reader.read(table::HOOKS, values::hook_names),
            hook_group_tag: reader.read(table::HOOK_GROUP_TAG, values::hook_group_tag),
            hooks_without_node: reader.read(table::HOOKS_WITHOUT_NODE, values::hooks_without_node),
            hook_max_wait: reader.read(table::HOOK_MAX_WAIT, |value| values::seconds(value, 60..=172_800)),
            maintenance_lead: reader.read(table::MAINTENANCE_LEAD, |value| values::seconds(value, 10..=172_800)),
            taints: reader.read(table::TAINTS, values::taints),
            load_balancers: reader.read(table::LOAD_BALANCERS, values::load_balancers),
            node_events: reader.read(table::NODE_EVENTS, values::flag),
            dry_run: reader.read(table::DRY_RUN, values::flag),
            schedules: reader.read(table::SCHEDULES, values::schedules),
            stack: reader.read(table::STACK, values::stack),
            announcements: reader.read(table::ANNOUNCEMENTS, values::queue_url),
            wrong: None,
            unknown: reader.unknown().to_vec(),
        };
        settings.report_contradictions(&mut reader);
        settings.wrong = reader.finish(()).err();
        settings
    }

    /// Each value may be good by itself, and two of them still make no sense together.
    fn report_contradictions(&self, reader: &mut Reader) {
        let list = |families: &[NoticeFamily]| families.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(",");
        for family in self.drain_on.iter().filter(|family| self.cordon_on.contains(family)) {
            let settings = [(table::DRAIN_ON, list(&self.drain_on)), (table::CORDON_ON, list(&self.cordon_on))];
            reader.contradict(settings, &format!("{} can be in one of them only", family.as_str()));
        }
    }

    /// What such notices do.
    #[must_use]
    pub fn policy(&self, family: NoticeFamily) -> Policy {
        if self.drain_on.contains(&family) {
            Policy::Drain
        } else if self.cordon_on.contains(&family) {
            Policy::Cordon
        } else {
            Policy::Ignore
        }
    }
}

#[cfg(test)]
mod tests;
