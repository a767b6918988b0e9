//! Decides whether to ask an Auto Scaling group for a replacement before AWS takes an instance. Pure.
//!
//! The group terminates the old instance and launches a new instance. A lifecycle hook holds the old instance during the drain.
//! The replacement is requested if [`takes_part`], [`before_calls`], [`of_group`] and [`confirmed`] all allow the request.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use spillway_notice::{Kind, Notice};
use spillway_settings::{GroupTag, NoticeFamily, Policy, Settings};

use crate::instance::{Instance, ManagedBy};
use crate::node::claimant::{Claim, ClaimResult};

/// Tag that an Auto Scaling group and its instances need for replacements.
pub const TAG: (&str, &str) = ("spillway:replace", "true");
/// Statuses of a Spot request whose instance EC2 interrupts (EC2 user guide, "Spot request status").
const INTERRUPTED: [&str; 3] =
    ["marked-for-termination", "instance-terminated-by-price", "instance-terminated-no-capacity"];
/// Codes of EC2's scheduled events that stop or terminate the instance.
const ENDS: [&str; 2] = ["instance-retirement", "instance-stop"];
/// Maximum time between the notice and the last status change of the Spot request.
const APART: SignedDuration = SignedDuration::from_mins(5);
/// Scaling processes that a replacement needs. If the group has suspended one of these processes, no replacement is requested.
const PROCESSES: [&str; 2] = ["Launch", "Terminate"];
/// Hourly limit of replacements in a small group.
const LEAST_LIMIT: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replacement {
    /// Auto Scaling accepted the request at this time.
    Requested(Timestamp),
    NotRequested(NotRequested),
}

impl Replacement {
    /// Returns the text for the receipt: the time from `notice` to the request, or the reason for no request.
    pub fn text(&self, notice: Timestamp) -> String {
        match self {
            Self::Requested(at) => format!("requested at {:.1} s", at.duration_since(notice).as_secs_f64()),
            Self::NotRequested(reason) => format!("not requested: {reason}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRequested {
    #[error("no claim of this notice holds the node")]
    NoClaim,
    #[error("EKS manages the group")]
    ManagedByEks,
    #[error("the settings do not drain for this notice, or this is a dry run")]
    NotDrained,
    #[error("DrainOn does not name terminate, so that nobody completes the hook of the instance")]
    HooksNotHandled,
    #[error("EC2 names no spot request of the instance")]
    NoSpotRequest,
    #[error("the Auto Scaling group {0} does not exist")]
    NoGroup(String),
    #[error("the group lacks the tag {}={}", TAG.0, TAG.1)]
    NoTag,
    #[error("the group has no terminate hook of ours to hold the instance")]
    NoHook,
    #[error("the group lacks the tag {0}, without which IAM denies completing its hook")]
    NoHookGroupTag(String),
    #[error("the instance is {0} in its group, not InService")]
    NotInService(String),
    #[error("the group has a warm pool")]
    WarmPool,
    #[error("the group has suspended {0}")]
    Suspended(String),
    #[error("the group rebalances its capacity itself")]
    CapacityRebalancing,
    #[error("the group replaced {replaced} instances in the last hour, and {most} is the limit")]
    TooMany { replaced: usize, most: usize },
    #[error("EC2 does not confirm the interruption: the spot request has the status {status}, set at {updated}")]
    NotInterrupted { status: String, updated: Timestamp },
    #[error("EC2 does not confirm the maintenance: no retirement or stop of the instance is scheduled")]
    NotMaintained,
    #[error("{0}")]
    CallFailed(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupState {
    pub tags: BTreeMap<String, String>,
    /// Names of the group's termination lifecycle hooks.
    pub hooks: Vec<String>,
    /// Lifecycle state of the instance; `None` if the instance is not in the group.
    pub instance: Option<String>,
    pub has_warm_pool: bool,
    pub suspended: Vec<String>,
    pub rebalances: bool,
    pub desired: usize,
    /// Number of instances that were replaced in the last hour.
    pub replaced: usize,
}

/// Data from EC2 that may confirm the notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    SpotRequest {
        status: String,
        updated: Timestamp,
    },
    /// Codes of the instance's scheduled events that have not ended.
    ScheduledEvents(Vec<String>),
}

/// Returns `true` if the tags of an instance or a group contain [`TAG`].
pub fn is_tagged(tags: &BTreeMap<String, String>) -> bool {
    tags.get(TAG.0).is_some_and(|value| value == TAG.1)
}

/// Returns `true` if the instance has [`TAG`], and if the settings allow a replacement for this kind of notice.
pub fn takes_part(notice: &Notice, instance: &Instance, settings: &Settings) -> bool {
    let reboots = notice.maintenance.as_ref().is_some_and(|maintenance| maintenance.reboots);
    let is_named = match notice.kind {
        Kind::Spot => settings.replace.spot,
        Kind::Maintenance => settings.replace.maintenance && !reboots,
        _ => false,
    };
    is_named && is_tagged(&instance.tags)
}

/// Checks the settings, the claim and the node's owner, without a call to AWS.
pub fn before_calls(
    notice: &Notice,
    instance: &Instance,
    managed_by: ManagedBy,
    claim: &Claim,
    settings: &Settings,
) -> Result<(), NotRequested> {
    let family = if notice.kind == Kind::Spot { NoticeFamily::Spot } else { NoticeFamily::Maintenance };
    let is_drained = |family| settings.policy(family) == Policy::Drain;
    let refusals = [
        (settings.dry_run || !is_drained(family), NotRequested::NotDrained),
        (!is_drained(NoticeFamily::Terminate), NotRequested::HooksNotHandled),
        (managed_by != ManagedBy::SelfManaged, NotRequested::ManagedByEks),
        (!is_held(claim, &notice.event_id), NotRequested::NoClaim),
        (notice.kind == Kind::Spot && instance.spot_request.is_none(), NotRequested::NoSpotRequest),
    ];
    refusals.into_iter().find(|(is_refused, _)| *is_refused).map_or(Ok(()), |(_, reason)| Err(reason))
}

/// Returns `true` if `claim` is for `event`. A claim by another delivery of `event` does not count.
fn is_held(claim: &Claim, event: &str) -> bool {
    match &claim.how {
        ClaimResult::First | ClaimResult::CordonedByOthers | ClaimResult::Again => true,
        ClaimResult::Denied(_) => false,
        // The claim of a milder notice gave way to this event.
        ClaimResult::Joined { event: joined, .. } => joined != event && claim.holder == event,
    }
}

/// Checks that the Auto Scaling group, and the instance's state in the group, allow a replacement.
pub fn of_group(group: &GroupState, settings: &Settings) -> Result<(), NotRequested> {
    if let Some(obstacle) = obstacles(group, settings).into_iter().next() {
        return Err(obstacle);
    }
    let (state, most) = (group.instance.as_deref().unwrap_or("not known"), limit(group.desired));
    match state {
        "InService" if group.replaced < most => Ok(()),
        "InService" => Err(NotRequested::TooMany { replaced: group.replaced, most }),
        state => Err(NotRequested::NotInService(state.to_owned())),
    }
}

/// Returns the reasons why no instance of the Auto Scaling group can be replaced.
pub fn obstacles(group: &GroupState, settings: &Settings) -> Vec<NotRequested> {
    let lacks = |tag: &&GroupTag| !tag.is_in(&group.tags);
    let suspended: Vec<_> =
        PROCESSES.into_iter().filter(|one| group.suspended.iter().any(|name| name == one)).collect();
    [
        (!is_tagged(&group.tags)).then_some(NotRequested::NoTag),
        (!group.hooks.iter().any(|hook| settings.hooks.contains(hook))).then_some(NotRequested::NoHook),
        settings.hook_group_tag.as_ref().filter(lacks).map(|tag| NotRequested::NoHookGroupTag(tag.to_string())),
        group.has_warm_pool.then_some(NotRequested::WarmPool),
        (!suspended.is_empty()).then(|| NotRequested::Suspended(suspended.join(" and "))),
        group.rebalances.then_some(NotRequested::CapacityRebalancing),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the maximum number of replacements per hour in a group with the desired capacity `desired`.
pub fn limit(desired: usize) -> usize {
    LEAST_LIMIT.max(desired / 2)
}

/// Checks that the status of the Spot request, or the scheduled events of the instance, confirm the notice.
pub fn confirmed(notice: &Notice, confirmation: Confirmation) -> Result<(), NotRequested> {
    match confirmation {
        Confirmation::SpotRequest { status, updated } => {
            let is_recent = updated.duration_since(notice.time).abs() <= APART;
            let is_interrupted = is_recent && INTERRUPTED.contains(&status.as_str());
            if is_interrupted { Ok(()) } else { Err(NotRequested::NotInterrupted { status, updated }) }
        }
        Confirmation::ScheduledEvents(codes) => {
            let is_named = codes.iter().any(|code| ENDS.contains(&code.as_str()));
            if is_named { Ok(()) } else { Err(NotRequested::NotMaintained) }
        }
    }
}

/// Returns the deadline of the Spot notice that may have caused this terminate notice. `None`: the terminate notice keeps its
/// own deadline.
pub fn deadline_of_claim(
    notice: &Notice,
    instance: &Instance,
    claim: &Claim,
    settings: &Settings,
    now: Timestamp,
) -> Option<Timestamp> {
    let ClaimResult::Joined { notice: joined, .. } = &claim.how else { return None };
    let is_of_spot = notice.kind == Kind::Terminate && Kind::named(joined) == Some(Kind::Spot);
    let is_replaced = is_of_spot && settings.replace.spot && is_tagged(&instance.tags);
    claim.until.filter(|until| is_replaced && now < *until)
}

#[cfg(test)]
mod tests;
