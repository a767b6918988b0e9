//! Settings: environment variables, read and checked once. All problems are reported together.

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
    GroupTag, KarpenterNodes, LoadBalancers, ManagedNodeGroups, ManagedTag, NoticeFamily, Policy, Replace, Schedules,
    TaintNames, Taints,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Notices that drain a node. Notices that are neither here nor in `cordon_on` are ignored.
    pub drain_on: Vec<NoticeFamily>,
    /// Notices that only cordon a node.
    pub cordon_on: Vec<NoticeFamily>,
    /// Result that is sent for a launch hook if the node never became Ready; `None`: launch hooks are left to others.
    pub launch: Option<LifecycleResult>,
    pub managed_node_groups: ManagedNodeGroups,
    pub karpenter: KarpenterNodes,
    /// Clusters whose nodes are handled; empty: all.
    pub clusters: Vec<String>,
    pub managed_tag: Option<ManagedTag>,
    /// Labels that a node must have.
    pub node_selector: Selector,
    /// Names of the lifecycle hooks that Spillway completes.
    pub hooks: Vec<String>,
    /// Tag of the Auto Scaling groups whose hooks the function's role may complete; absent: all groups.
    pub hook_group_tag: Option<GroupTag>,
    /// Result that is sent for a hook if the instance is in no cluster, or in a cluster that denies access.
    pub hooks_without_node: Option<LifecycleResult>,
    /// Maximum time from a hook's notice for which the hook is held.
    pub hook_max_wait: Duration,
    /// Time from the start of a drain for scheduled maintenance to the start of the maintenance.
    pub maintenance_lead: Duration,
    pub replace: Replace,
    pub taints: Taints,
    pub load_balancers: LoadBalancers,
    /// The drain creates Kubernetes events on the node and its pods.
    pub node_events: bool,
    /// Dry run: the node, its pods and its hook stay unchanged.
    pub dry_run: bool,
    /// Schedule group, role and failure queue for later work; absent without the template.
    pub schedules: Option<Schedules>,
    /// Name of the function's stack; empty without the template.
    pub stack: String,
    /// URL of the queue for messages about drains; absent without recipients.
    pub announcements: Option<String>,
    /// Refused values and contradictions. While there are any, no notice is handled.
    pub wrong: Option<SettingsError>,
    /// Variables with our prefix that this version does not know.
    pub unknown: Vec<String>,
}

impl Settings {
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
            replace: reader.read(table::REPLACE, values::replace),
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

    fn report_contradictions(&self, reader: &mut Reader) {
        let list = |families: &[NoticeFamily]| families.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(",");
        for family in self.drain_on.iter().filter(|family| self.cordon_on.contains(family)) {
            let settings = [(table::DRAIN_ON, list(&self.drain_on)), (table::CORDON_ON, list(&self.cordon_on))];
            reader.contradict(settings, &format!("{} can be in one of them only", family.as_str()));
        }
    }

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
