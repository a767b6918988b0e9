//! What the settings mean: plain values, each read from its text or not at all.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use kube::core::Selector;

use super::selector;
use super::table::HALF;

/// What to do with a kind of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Cordon the node and move its pods.
    Drain,
    /// Cordon the node and leave its pods.
    Cordon,
    /// Do nothing but say so.
    Ignore,
}

/// What to do with a launch hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchHooks {
    /// Complete it when the node is Ready.
    Complete,
    /// Leave it to others.
    Ignore,
}

/// Whether the nodes of EKS managed node groups are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManagedNodeGroups {
    /// Where EKS does not drain them itself.
    Gaps,
    /// Never.
    Leave,
    /// For every notice.
    Drain,
}

/// What becomes of Karpenter's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KarpenterNodes {
    /// Karpenter drains them.
    Leave,
    /// Their `NodeClaim` is deleted, with the deadline on it.
    NodeClaim,
}

/// What Auto Scaling is told when a lifecycle action is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum LifecycleResult {
    /// Go on.
    Continue,
    /// At a termination: skip the remaining hooks; in a group that retains abandoned instances, keep
    /// this one. At a launch: end the instance.
    Abandon,
}

impl LifecycleResult {
    /// The result as Auto Scaling spells it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "CONTINUE",
            Self::Abandon => "ABANDON",
        }
    }
}

/// What becomes of pods that something still holds when nothing more is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldPods {
    /// They stay on the node, and the receipt names them.
    Keep,
    /// They are deleted in time to shut down before.
    Delete,
}

/// How often a hook is told that its node still drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    /// Twice in the hook's own timeout.
    Half,
    /// After that time, if half of the hook's own timeout is longer.
    After(Duration),
}

/// The tag that an instance or its group must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManagedTag {
    pub(crate) key: String,
    /// Absent: any value will do, as with NTH.
    pub(crate) value: Option<String>,
}

impl ManagedTag {
    /// Whether a tag of that key counts with such a value.
    pub(crate) fn allows(&self, value: &str) -> bool {
        self.value.as_deref().is_none_or(|wanted| wanted == value)
    }
}

impl fmt::Display for ManagedTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.key),
            None => f.write_str(&self.key),
        }
    }
}

/// The names that a taint of a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaintNames {
    /// `spillway/…`.
    Spillway,
    /// Those of aws-node-termination-handler.
    Nth,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

/// What is put on the event bus of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announce {
    BeginAndEnd,
    End,
    Nothing,
}

/// The reasons that Kubernetes events about a drain have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeEvents {
    /// Ours: one for each way in which a pod may end.
    Spillway,
    /// Those of aws-node-termination-handler.
    Nth,
}

/// Where what is done later is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schedules {
    /// The group of schedules that is the stack's own.
    pub(crate) group: String,
    /// The role that EventBridge Scheduler takes to put our event on the bus.
    pub(crate) role_arn: String,
    /// The queue that keeps an event which could not be put there.
    pub(crate) failures_arn: String,
}

impl TaintEffect {
    /// As Kubernetes spells it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A value that was read; `None`: it is none that is accepted.
type Accepted<T> = Option<T>;

pub(super) fn action(value: &str) -> Accepted<Policy> {
    one_of(value, &[("drain", Policy::Drain), ("cordon", Policy::Cordon), ("ignore", Policy::Ignore)])
}

pub(super) fn launch_hooks(value: &str) -> Accepted<LaunchHooks> {
    one_of(value, &[("complete", LaunchHooks::Complete), ("ignore", LaunchHooks::Ignore)])
}

pub(super) fn managed_node_groups(value: &str) -> Accepted<ManagedNodeGroups> {
    use ManagedNodeGroups::{Drain, Gaps, Leave};
    one_of(value, &[("gaps", Gaps), ("leave", Leave), ("drain", Drain)])
}

pub(super) fn karpenter_nodes(value: &str) -> Accepted<KarpenterNodes> {
    one_of(value, &[("leave", KarpenterNodes::Leave), ("nodeclaim", KarpenterNodes::NodeClaim)])
}

pub(super) fn lifecycle_result(value: &str) -> Accepted<LifecycleResult> {
    one_of(value, &[("CONTINUE", LifecycleResult::Continue), ("ABANDON", LifecycleResult::Abandon)])
}

/// The answer, or none.
pub(super) fn stranded_hooks(value: &str) -> Accepted<Option<LifecycleResult>> {
    if value == "leave" { Some(None) } else { lifecycle_result(value).map(Some) }
}

pub(super) fn held_pods(value: &str) -> Accepted<HeldPods> {
    one_of(value, &[("keep", HeldPods::Keep), ("delete", HeldPods::Delete)])
}

pub(super) fn taint_names(value: &str) -> Accepted<Option<TaintNames>> {
    one_of(value, &[("none", None), ("spillway", Some(TaintNames::Spillway)), ("nth", Some(TaintNames::Nth))])
}

pub(super) fn node_events(value: &str) -> Accepted<Option<NodeEvents>> {
    one_of(value, &[("none", None), ("spillway", Some(NodeEvents::Spillway)), ("nth", Some(NodeEvents::Nth))])
}

pub(super) fn taint_effect(value: &str) -> Accepted<TaintEffect> {
    use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};
    one_of(value, &[NoSchedule, PreferNoSchedule, NoExecute].map(|effect| (effect.as_str(), effect)))
}

pub(super) fn announce(value: &str) -> Accepted<Announce> {
    one_of(value, &[("begin-and-end", Announce::BeginAndEnd), ("end", Announce::End), ("none", Announce::Nothing)])
}

pub(super) fn flag(value: &str) -> Accepted<bool> {
    one_of(value, &[("true", true), ("false", false)])
}

/// The longest timeout of a hook is two hours, so more than one is never the shorter.
pub(super) fn heartbeat(value: &str) -> Accepted<Heartbeat> {
    if value == HALF { Some(Heartbeat::Half) } else { seconds(value, 5..=3600).map(Heartbeat::After) }
}

pub(super) fn seconds(value: &str, accepted: RangeInclusive<u64>) -> Accepted<Duration> {
    let seconds: u64 = value.parse().ok()?;
    accepted.contains(&seconds).then(|| Duration::from_secs(seconds))
}

/// Names that EKS takes for a cluster: up to 100 letters, digits, `-` and `_`.
pub(super) fn cluster_names(value: &str) -> Accepted<Vec<String>> {
    list(value, |name| name.len() <= 100 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)))
}

/// Names that Auto Scaling takes for a hook.
pub(super) fn hook_names(value: &str) -> Accepted<Vec<String>> {
    list(value, |name| name.len() <= 255 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_/".contains(c)))
}

/// A list separated by commas; blanks around a name do no harm, an empty name is none.
fn list(value: &str, legal: fn(&str) -> bool) -> Accepted<Vec<String>> {
    if value.trim().is_empty() {
        return Some(Vec::new());
    }
    value.split(',').map(str::trim).map(|name| (!name.is_empty() && legal(name)).then(|| name.to_owned())).collect()
}

pub(super) fn managed_tag(value: &str) -> Accepted<Option<ManagedTag>> {
    let (key, value) = match value.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (value, None),
    };
    match (key, &value) {
        ("", None) => Some(None),
        ("", Some(_)) => None,
        (key, _) => (key.len() <= 128).then(|| Some(ManagedTag { key: key.to_owned(), value })),
    }
}

pub(super) fn node_selector(value: &str) -> Accepted<Selector> {
    selector::parse(value)
}

pub(super) fn schedules(value: &str) -> Accepted<Option<Schedules>> {
    if value.is_empty() {
        return Some(None);
    }
    let [group, role_arn, failures_arn] = value.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let complete = !group.is_empty() && [role_arn, failures_arn].iter().all(|arn| arn.starts_with("arn:"));
    let (group, role_arn, failures_arn) = (group.to_owned(), role_arn.to_owned(), failures_arn.to_owned());
    complete.then_some(Some(Schedules { group, role_arn, failures_arn }))
}

pub(super) fn stack(value: &str) -> Accepted<String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
    value.chars().all(legal).then(|| value.to_owned())
}

pub(super) fn metrics_namespace(value: &str) -> Accepted<String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || ".-_/#:".contains(c);
    let fits = (1..=255).contains(&value.len()) && value.chars().all(legal);
    (fits && !value.starts_with(':') && !value.starts_with("AWS/")).then(|| value.to_owned())
}

fn one_of<T: Copy>(value: &str, accepted: &[(&str, T)]) -> Accepted<T> {
    accepted.iter().find(|(text, _)| *text == value).map(|(_, meaning)| *meaning)
}
