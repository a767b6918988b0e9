//! Settings of the drain function: environment variables, which are read and checked once.

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
    /// Notices for which a node is drained. Notices in neither `drain_on` nor `cordon_on` are ignored.
    pub drain_on: Vec<NoticeFamily>,
    /// Notices for which a node is only cordoned.
    pub cordon_on: Vec<NoticeFamily>,
    /// Result for a launch hook if the node never becomes Ready. If `None`, Spillway completes no launch hooks.
    pub launch: Option<LifecycleResult>,
    pub managed_node_groups: ManagedNodeGroups,
    pub karpenter: KarpenterNodes,
    /// Names of the clusters that Spillway handles. An empty list means all clusters.
    pub clusters: Vec<String>,
    pub managed_tag: Option<ManagedTag>,
    /// Labels that a node must have to be drained.
    pub node_selector: Selector,
    /// Names of the lifecycle hooks that Spillway completes.
    pub hooks: Vec<String>,
    /// Tag of the Auto Scaling groups whose hooks the function may complete. `None` means all groups.
    pub hook_group_tag: Option<GroupTag>,
    /// Result for a hook whose instance is in no cluster, or in a cluster that denies access.
    pub hooks_without_node: Option<LifecycleResult>,
    /// Maximum time from the notice of a lifecycle hook to the hook's completion.
    pub hook_max_wait: Duration,
    /// Time between the start of a drain and the scheduled maintenance.
    pub maintenance_lead: Duration,
    pub replace: Replace,
    pub taints: Taints,
    pub load_balancers: LoadBalancers,
    /// `true` if a drain creates Kubernetes events on the node and its pods.
    pub node_events: bool,
    /// `true` if the function only reports the intended actions.
    pub dry_run: bool,
    /// Configuration of EventBridge schedules. The CloudFormation template sets this value.
    pub schedules: Option<Schedules>,
    /// Name of the CloudFormation stack.
    pub stack: String,
    /// URL of the SQS queue for messages about drains. `None` if no webhook or topic is configured.
    pub announcements: Option<String>,
    /// Invalid or contradictory settings. With such settings, no notice is handled.
    pub wrong: Option<SettingsError>,
    /// Names of `SPILLWAY_` variables that are not known settings.
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
