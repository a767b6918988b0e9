//! Request to an Auto Scaling group to replace an instance at the notice, before AWS takes the instance. Pure.
//!
//! The group terminates the instance without decrementing its desired capacity, and launches another instance. Meanwhile a
//! terminate hook of Spillway holds the first instance, and the hook's notice joins the drain. The request is made if
//! [`takes_part`], [`before_calls`], [`of_group`] and [`confirmed`] agree.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use spillway_notice::{Kind, Notice};
use spillway_settings::{GroupTag, NoticeFamily, Policy, Settings};

use crate::instance::{Instance, ManagedBy};
use crate::node::claimant::{Claim, ClaimResult};

/// Tag of the groups that take part. Groups propagate the tag to their instances.
pub const TAG: (&str, &str) = ("spillway:replace", "true");
/// Statuses of a spot request whose instance EC2 takes back (EC2 user guide, "Spot request status"). If EC2 needs the capacity,
/// EC2 sets one of the last two at once, although the instance still runs for two minutes.
const INTERRUPTED: [&str; 3] =
    ["marked-for-termination", "instance-terminated-by-price", "instance-terminated-no-capacity"];
/// Codes of scheduled events that stop the instance or end it. A reboot needs no replacement.
const ENDS: [&str; 2] = ["instance-retirement", "instance-stop"];
/// Maximum time between the notice and the change of the spot request's status.
const APART: SignedDuration = SignedDuration::from_mins(5);
/// Scaling processes of a group that a replacement needs.
const PROCESSES: [&str; 2] = ["Launch", "Terminate"];
/// Minimum of the hourly limit of replacements, for small groups.
const LEAST_LIMIT: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replacement {
    /// The group took the request at this time.
    Requested(Timestamp),
    NotRequested(NotRequested),
}

impl Replacement {
    /// Text for the receipt. Times count from the notice.
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
    /// Names of the terminate hooks.
    pub hooks: Vec<String>,
    /// Lifecycle state of the instance; absent if the group does not have the instance.
    pub instance: Option<String>,
    pub has_warm_pool: bool,
    pub suspended: Vec<String>,
    pub rebalances: bool,
    pub desired: usize,
    /// Number of instances that were replaced in the last hour, by requests without a decrement.
    pub replaced: usize,
}

/// EC2's own record of what the notice announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    SpotRequest {
        status: String,
        updated: Timestamp,
    },
    /// Codes of the scheduled events that are not over.
    ScheduledEvents(Vec<String>),
}

/// Returns `true` if an instance or a group has [`TAG`].
pub fn is_tagged(tags: &BTreeMap<String, String>) -> bool {
    tags.get(TAG.0).is_some_and(|value| value == TAG.1)
}

/// Returns `true` if the settings allow a replacement for the notice and the instance has [`TAG`].
pub fn takes_part(notice: &Notice, instance: &Instance, settings: &Settings) -> bool {
    let reboots = notice.maintenance.as_ref().is_some_and(|maintenance| maintenance.reboots);
    let is_named = match notice.kind {
        Kind::Spot => settings.replace.spot,
        Kind::Maintenance => settings.replace.maintenance && !reboots,
        _ => false,
    };
    is_named && is_tagged(&instance.tags)
}

/// Checks without a call to AWS: the settings, the claim and the owner of the node.
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

/// Returns `true` if this delivery of the event holds the claim. Of several notices and deliveries for a node, only one holds the
/// claim.
fn is_held(claim: &Claim, event: &str) -> bool {
    match &claim.how {
        ClaimResult::First | ClaimResult::CordonedByOthers | ClaimResult::Again => true,
        ClaimResult::Denied(_) => false,
        // The claim of a milder notice gave way to this event.
        ClaimResult::Joined { event: joined, .. } => joined != event && claim.holder == event,
    }
}

/// Checks the state of the group and of the instance in it.
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

/// Properties of the group that prevent every replacement.
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

/// Maximum number of replacements of a group in an hour.
pub fn limit(desired: usize) -> usize {
    LEAST_LIMIT.max(desired / 2)
}

/// Checks EC2's own record of the interruption or the maintenance.
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

/// Deadline of a terminate hook's notice that has joined the claim of a spot notice: the deadline of this claim. `None`: the
/// hook's own deadline applies, for example because the claim's deadline has passed.
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
