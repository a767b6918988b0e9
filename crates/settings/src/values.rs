//! What the settings mean: plain values, each read from its text or not at all.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use kube_core::Selector;
use spillway_receipt::LifecycleResult;

use super::selector;

/// What to do with a kind of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Cordon the node and move its pods.
    Drain,
    /// Cordon the node and leave its pods.
    Cordon,
    /// Do nothing but say so.
    Ignore,
}

/// Notices that are switched together, by one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeFamily {
    /// The interruption of a spot instance.
    Spot,
    /// The interruption of a capacity reservation, the end of a capacity block.
    Capacity,
    /// Scheduled maintenance.
    Maintenance,
    /// An instance that stops, shuts down or runs again without another notice.
    StateChange,
    /// The terminate hook of an Auto Scaling group.
    Terminate,
    /// A rebalance recommendation.
    Rebalance,
}

impl NoticeFamily {
    const ALL: [Self; 6] =
        [Self::Spot, Self::Capacity, Self::Maintenance, Self::StateChange, Self::Terminate, Self::Rebalance];

    /// The word that names it in a setting.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spot => "spot",
            Self::Capacity => "capacity",
            Self::Maintenance => "maintenance",
            Self::StateChange => "state-change",
            Self::Terminate => "terminate",
            Self::Rebalance => "rebalance",
        }
    }
}

/// Whether the nodes of EKS managed node groups are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedNodeGroups {
    /// Where EKS does not drain them itself.
    Gaps,
    /// Never.
    Leave,
    /// For every notice.
    Drain,
}

/// What becomes of Karpenter's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KarpenterNodes {
    /// Karpenter drains them.
    Leave,
    /// Their `NodeClaim` is deleted, with the deadline on it.
    NodeClaim,
}

/// The tag that an instance or its group must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedTag {
    pub key: String,
    /// Absent: any value will do, as with NTH.
    pub value: Option<String>,
}

impl ManagedTag {
    /// Whether a tag of that key counts with such a value.
    #[must_use]
    pub fn allows(&self, value: &str) -> bool {
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

/// A tag of an Auto Scaling group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupTag {
    pub key: String,
    pub value: String,
}

impl GroupTag {
    /// Whether it is among these tags.
    #[must_use]
    pub fn is_in(&self, tags: &BTreeMap<String, String>) -> bool {
        tags.get(&self.key) == Some(&self.value)
    }
}

impl fmt::Display for GroupTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The names that a taint of a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaintNames {
    /// `spillway/…`.
    Spillway,
    /// Those of aws-node-termination-handler.
    Nth,
}

/// Which taints a node gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taints {
    /// Whether the claim taints it, and by whose names.
    pub of_claim: Option<TaintNames>,
    /// Whether a stopped node is declared out of service.
    pub out_of_service: bool,
}

/// What load balancers are told of a node that is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadBalancers {
    /// Nothing.
    Leave,
    /// By the label, that they should send it nothing more.
    Exclude,
    /// As `Exclude`, and a hook waits until load balancers have let the instance go.
    Wait,
}

/// Where what is done later is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedules {
    /// The group of schedules that is the stack's own.
    pub group: String,
    /// The role that EventBridge Scheduler takes to put our event on the bus.
    pub role_arn: String,
    /// The queue that keeps an event which could not be put there.
    pub failures_arn: String,
}

/// A value that was read; `None`: it is none that is accepted.
type Accepted<T> = Option<T>;

/// The word of every setting that switches something off: a variable that is empty has its default.
const OFF: &str = "off";
/// Notices in the order given; a word that stands twice counts once.
pub(super) fn notices(value: &str) -> Accepted<Vec<NoticeFamily>> {
    if value.is_empty() || value == OFF {
        return Some(Vec::new());
    }
    let mut named = Vec::new();
    for word in value.split(',') {
        let family = NoticeFamily::ALL.into_iter().find(|family| family.as_str() == word.trim())?;
        if !named.contains(&family) {
            named.push(family);
        }
    }
    Some(named)
}

/// The answer, or none.
pub(super) fn launch_hooks(value: &str) -> Accepted<Option<LifecycleResult>> {
    if value == OFF { Some(None) } else { lifecycle_result(value).map(Some) }
}

pub(super) fn managed_node_groups(value: &str) -> Accepted<ManagedNodeGroups> {
    use ManagedNodeGroups::{Drain, Gaps, Leave};
    one_of(value, &[("gaps", Gaps), (OFF, Leave), ("drain", Drain)])
}

pub(super) fn karpenter_nodes(value: &str) -> Accepted<KarpenterNodes> {
    use KarpenterNodes::{Leave, NodeClaim};
    one_of(value, &[(OFF, Leave), ("nodeclaim", NodeClaim)])
}

fn lifecycle_result(value: &str) -> Accepted<LifecycleResult> {
    one_of(value, &[("CONTINUE", LifecycleResult::Continue), ("ABANDON", LifecycleResult::Abandon)])
}

/// The answer, or none.
pub(super) fn hooks_without_node(value: &str) -> Accepted<Option<LifecycleResult>> {
    if value == OFF { Some(None) } else { lifecycle_result(value).map(Some) }
}

pub(super) fn taints(value: &str) -> Accepted<Taints> {
    let mut taints = Taints { of_claim: None, out_of_service: false };
    for word in value.split(',').map(str::trim).filter(|_| !value.is_empty() && value != OFF) {
        match (word, taints) {
            ("spillway", Taints { of_claim: None, .. }) => taints.of_claim = Some(TaintNames::Spillway),
            ("nth", Taints { of_claim: None, .. }) => taints.of_claim = Some(TaintNames::Nth),
            ("out-of-service", Taints { out_of_service: false, .. }) => taints.out_of_service = true,
            _ => return None,
        }
    }
    Some(taints)
}

pub(super) fn load_balancers(value: &str) -> Accepted<LoadBalancers> {
    use LoadBalancers::{Exclude, Leave, Wait};
    one_of(value, &[(OFF, Leave), ("exclude", Exclude), ("wait", Wait)])
}

pub(super) fn flag(value: &str) -> Accepted<bool> {
    one_of(value, &[("true", true), ("false", false)])
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

/// Of characters that IAM takes as they are, in a policy that the template writes as a text.
pub(super) fn hook_group_tag(value: &str) -> Accepted<Option<GroupTag>> {
    if value.is_empty() {
        return Some(None);
    }
    let legal = |part: &str, most| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "+._:/@-".contains(c);
        (1..=most).contains(&part.len()) && part.chars().all(plain)
    };
    let (key, value) = value.split_once('=')?;
    (legal(key, 128) && legal(value, 256)).then(|| Some(GroupTag { key: key.to_owned(), value: value.to_owned() }))
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

/// Empty: there is none.
pub(super) fn queue_url(value: &str) -> Accepted<Option<String>> {
    let legal = value.is_empty() || value.starts_with("https://");
    legal.then(|| Some(value.to_owned()).filter(|url| !url.is_empty()))
}

pub(super) fn one_of<T: Copy>(value: &str, accepted: &[(&str, T)]) -> Accepted<T> {
    accepted.iter().find(|(text, _)| *text == value).map(|(_, meaning)| *meaning)
}
