//! Types and parsers of the settings' values.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use kube_core::Selector;
use spillway_receipt::LifecycleResult;

use super::selector;

/// Action for a kind of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Spillway cordons the node and evicts its pods.
    Drain,
    /// Spillway only cordons the node.
    Cordon,
    /// Spillway writes a receipt, but leaves the node unchanged.
    Ignore,
}

/// Group of notice kinds. In a setting, one word such as `spot` stands for one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeFamily {
    Spot,
    /// Interruption of a capacity reservation, or end of a capacity block.
    Capacity,
    Maintenance,
    /// State change of an instance, such as `stopping` or `running`.
    StateChange,
    /// Terminate hook of an Auto Scaling group.
    Terminate,
    Rebalance,
}

impl NoticeFamily {
    const ALL: [Self; 6] =
        [Self::Spot, Self::Capacity, Self::Maintenance, Self::StateChange, Self::Terminate, Self::Rebalance];

    /// Returns the family's name in settings.
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

/// Setting: the notices for which Spillway drains nodes of EKS managed node groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedNodeGroups {
    /// EKS drains nodes of managed node groups for some notices. Spillway drains these nodes for all other notices.
    Gaps,
    /// Spillway never drains nodes of managed node groups.
    Leave,
    /// Spillway drains nodes of managed node groups for every notice.
    Drain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KarpenterNodes {
    /// Spillway ignores Karpenter's nodes.
    Leave,
    /// Spillway deletes the node's `NodeClaim`, and Karpenter then drains the node.
    NodeClaim,
}

/// Tag that is required on an instance or on its Auto Scaling group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedTag {
    pub key: String,
    /// Required value. If `None`, every value is accepted.
    pub value: Option<String>,
}

impl ManagedTag {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupTag {
    pub key: String,
    pub value: String,
}

impl GroupTag {
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

/// Notices for which Spillway asks the Auto Scaling group to replace the instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replace {
    pub spot: bool,
    pub maintenance: bool,
}

impl Replace {
    #[must_use]
    pub fn is_on(self) -> bool {
        self.spot || self.maintenance
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaintNames {
    /// Taint names that begin with `spillway/`.
    Spillway,
    /// Taint names of aws-node-termination-handler.
    Nth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taints {
    pub of_claim: Option<TaintNames>,
    pub out_of_service: bool,
}

/// Exclusion of a cordoned node from load balancers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadBalancers {
    Leave,
    /// A label excludes the node from load balancers.
    Exclude,
    /// A label excludes the node from load balancers. The lifecycle hook waits until load balancers deregister the instance.
    Wait,
}

/// Configuration of the EventBridge schedules that invoke the function later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedules {
    /// Name of the stack's schedule group.
    pub group: String,
    /// Role that EventBridge Scheduler assumes to invoke the function.
    pub role_arn: String,
    pub failures_arn: String,
}

/// Parsed value. `None` if invalid.
type Accepted<T> = Option<T>;

/// Word that turns a setting off. An empty variable means the default.
const OFF: &str = "off";

/// Parses a list of notices. Keeps the order and drops repetitions.
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

pub(super) fn hooks_without_node(value: &str) -> Accepted<Option<LifecycleResult>> {
    launch_hooks(value)
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

pub(super) fn replace(value: &str) -> Accepted<Replace> {
    let spot = Replace { spot: true, maintenance: false };
    one_of(
        value,
        &[(OFF, Replace::default()), ("spot", spot), ("spot,maintenance", Replace { maintenance: true, ..spot })],
    )
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

/// Parses names of EKS clusters. Each name has at most 100 characters: letters, digits, `-` and `_`.
pub(super) fn cluster_names(value: &str) -> Accepted<Vec<String>> {
    list(value, |name| name.len() <= 100 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)))
}

pub(super) fn hook_names(value: &str) -> Accepted<Vec<String>> {
    list(value, |name| name.len() <= 255 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_/".contains(c)))
}

/// Parses names that are separated by commas. `None` if a name is empty or illegal.
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

/// Parses a tag. Refuses characters that IAM interprets, because the template inserts the tag into an IAM policy.
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

pub(super) fn queue_url(value: &str) -> Accepted<Option<String>> {
    let legal = value.is_empty() || value.starts_with("https://");
    legal.then(|| Some(value.to_owned()).filter(|url| !url.is_empty()))
}

pub(super) fn one_of<T: Copy>(value: &str, accepted: &[(&str, T)]) -> Accepted<T> {
    accepted.iter().find(|(text, _)| *text == value).map(|(_, meaning)| *meaning)
}
