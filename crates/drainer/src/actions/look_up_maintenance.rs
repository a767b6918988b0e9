//! Finds EC2's scheduled events for which no drain is scheduled, and invokes the function once for each event.
//!
//! AWS sends a notice of maintenance only once. Spillway scheduled no drain for a notice that came before the stack was
//! deployed.

use jiff::Timestamp;
use spillway_core::decision::{self, ClusterOwnership, Decision, Reason};
use spillway_core::instance::{Instance, managed_by};
use spillway_core::invocation::Invocation;
use spillway_core::outcome::{Outcome, would_have_fanned_out};
use spillway_notice::continued::{self, History};
use spillway_notice::{Incoming, Kind, payload};

use super::recheck_maintenance::APART;
use crate::aws::{self, ec2};
use crate::context::Context;
use crate::failure::Failure;
use crate::later::Later;
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// Invokes the function once for each of EC2's scheduled events that has no scheduled drain.
pub(crate) async fn look_up(
    context: &Context,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Context { settings, ec2, .. } = context;
    if !decision::is_enabled(Kind::Maintenance, settings) {
        return Ok(Outcome::Ignored(Reason::SwitchedOff(decision::switch_of(Kind::Maintenance, settings))));
    }
    let (end, now) = (invocation.continues_by(), invocation.clock.now());
    let events = aws::until(ec2::DESCRIBE_STATUS, end, || ec2::scheduled_events(ec2, None)).await?;
    let ahead: Vec<_> = events.into_iter().filter(|event| !event.is_over()).collect();
    let affected = aws::until(ec2::DESCRIBE, end, || ec2::instances(ec2, &ahead)).await?;
    let mut named = 0;
    let (mut missing, mut instances) = (Vec::new(), Vec::new());
    for event in ahead {
        let Some(instance) = affected.iter().find(|instance| instance.id == event.instance) else { continue };
        let notice = event.as_notice(&invocation.home, now);
        let Some(begins) = begins(context, invocation, &notice, instance) else { continue };
        named += 1;
        let scheduled = context.scheduler.times_of(&event.instance, end).await?;
        if scheduled.iter().all(|at| APART < at.duration_since(begins).abs()) {
            missing.push(notice);
            instances.push(event.instance.to_string());
        }
    }
    if settings.dry_run && !missing.is_empty() {
        return Ok(would_have_fanned_out(&instances));
    }
    if !missing.is_empty() {
        for history in &missing {
            context.send(&payload(continued::KEY, history), Later::Now, invocation.clock, end).await?;
        }
        record.step(StepName::HandedOn, invocation.clock.now());
    }
    Ok(Outcome::MaintenanceLookedUp { named, missing: instances })
}

/// Returns the time at which the drain for the notice begins. `None` if Spillway ignores the notice.
fn begins(context: &Context, invocation: &Invocation, notice: &History, instance: &Instance) -> Option<Timestamp> {
    let (settings, now) = (&context.settings, invocation.clock.now());
    let ClusterOwnership::Ours(_) = decision::cluster_of(instance, settings) else { return None };
    let event = serde_json::from_str(&payload(continued::KEY, notice)).ok()?;
    let Incoming::Notice { notice, .. } = spillway_notice::read(event, &invocation.home).ok()?.at(now) else {
        return None;
    };
    match decision::decide(&notice, instance, managed_by(&instance.tags), settings, now) {
        Decision::Ignore(_) => None,
        _ => Some(decision::begins(&notice, settings)),
    }
}
