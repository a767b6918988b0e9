//! Whether a drain is scheduled for all maintenance that EC2 names. The check hands missing maintenance to the function.
//!
//! It is missing if AWS announced it before the stack was deployed or while `maintenance` was switched off, or if its notice was
//! lost.

use jiff::{SignedDuration, Timestamp};
use spillway_core::cluster::ClusterName;
use spillway_core::decision::{self, Decision, WhoseCluster};
use spillway_core::instance::{Instance, managed_by};
use spillway_core::invocation::Invocation;
use spillway_drainer::aws::ec2::{DESCRIBE, DESCRIBE_STATUS, instances, scheduled_events};
use spillway_drainer::aws::{self, itself};
use spillway_drainer::{Context, Failure};
use spillway_notice::{Incoming, Kind, ScheduledEvent, continued, payload};
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, counted};

const ID: CheckId = CheckId::Maintenance;
/// How far apart EC2 and AWS Health may say that one maintenance starts.
const APART: SignedDuration = SignedDuration::from_hours(1);

/// The check of the nodes of these clusters, until `end`.
pub(super) async fn look(context: &Context, clusters: &[ClusterName], invocation: &Invocation, end: Instant) -> Check {
    let settings = &context.settings;
    if settings.dry_run || !decision::is_wanted(Kind::Maintenance, settings) {
        return Check::skipped(ID, "the settings do not want that scheduled maintenance is drained for");
    }
    match hand_over_missing(context, clusters, invocation, end).await {
        Ok(Found { named, handed_over }) => {
            let what =
                format!("EC2 names {} of nodes in these clusters", counted(named, "scheduled maintenance event"));
            Check::made(ID, what, handed_over.iter().map(finding).collect())
        }
        Err(failure) => Check::unknown(ID, format!("cannot compare the schedules with EC2: {}", failure.text())),
    }
}

/// What EC2 names, and what of it was not scheduled.
struct Found {
    named: usize,
    handed_over: Vec<ScheduledEvent>,
}

async fn hand_over_missing(
    context: &Context,
    clusters: &[ClusterName],
    invocation: &Invocation,
    end: Instant,
) -> Result<Found, Failure> {
    let Context { ec2, itself, .. } = context;
    let now = invocation.clock.now();
    let events = aws::until(DESCRIBE_STATUS, asked_until(end), || scheduled_events(ec2, None)).await?;
    let ahead: Vec<_> = events.into_iter().filter(|event| !event.is_over()).collect();
    let affected = aws::until(DESCRIBE, asked_until(end), || instances(ec2, &ahead)).await?;
    let mut found = Found { named: 0, handed_over: Vec::new() };
    for event in ahead {
        let Some(instance) = affected.iter().find(|instance| instance.id == event.instance) else { continue };
        let notice = payload(continued::KEY, &event.as_notice(&invocation.home, now));
        let Some(begins) = begins(context, clusters, invocation, &notice, instance) else { continue };
        found.named += 1;
        let scheduled = context.scheduled_for(&event.instance, asked_until(end)).await?;
        if scheduled.iter().all(|at| APART < at.duration_since(begins).abs()) {
            aws::until(itself::INVOKE, asked_until(end), || itself.invoke(&notice)).await?;
            found.handed_over.push(event);
        }
    }
    Ok(found)
}

/// When the drain for that notice begins; `None`: it does not, because the instance is no node of these clusters, or is left to
/// others.
fn begins(
    context: &Context,
    clusters: &[ClusterName],
    invocation: &Invocation,
    notice: &str,
    instance: &Instance,
) -> Option<Timestamp> {
    let now = invocation.clock.now();
    let settings = &context.settings;
    let read = spillway_notice::read(serde_json::from_str(notice).ok()?, &invocation.home).ok()?;
    let Incoming::Notice { notice, .. } = read.at(now) else { return None };
    let is_ours =
        matches!(decision::cluster_of(instance, settings), WhoseCluster::Ours(name) if clusters.contains(&name));
    match decision::decide(&notice, instance, managed_by(&instance.tags), settings, now) {
        Decision::Ignore(_) => None,
        _ => is_ours.then(|| decision::begins(&notice, settings)),
    }
}

fn finding(event: &ScheduledEvent) -> Finding {
    let ScheduledEvent { instance, code, starts, .. } = event;
    let what = format!(
        "EC2 announces {code} at {starts}, and no drain was scheduled for it. It has been handed to the function now, which \
         schedules its drain"
    );
    let to_do = "nothing, unless it was announced while the stack was there: see then in the failure queue whether its notice failed";
    Finding::new(FindingId::MaintenanceFound, Severity::Info, format!("instance {instance}"), what, to_do)
}
