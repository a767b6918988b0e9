//! Checks in EC2 that maintenance is still planned. The check runs for maintenance that Spillway found in EC2, and after an
//! invocation has slept until the drain.

use std::time::Duration;

use jiff::SignedDuration;
use spillway_core::decision::{Reason, planned_start};
use spillway_core::instance::{Instance, InstanceState};
use spillway_notice::{Notice, ScheduledEvent, continued, payload};
use tokio::time::Instant;

use crate::aws;
use crate::aws::ec2::{DESCRIBE_STATUS, scheduled_events};
use crate::context::{Attempt, Context};
use crate::failure::Failure;
use crate::later::Later;

/// Maximum difference between the start times that EC2 and AWS Health report for the same maintenance.
pub(super) const APART: SignedDuration = SignedDuration::from_hours(1);
/// Maximum wait for EC2's answer before the drain. Without an answer, the drain begins.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(5);

/// Returns a reason to ignore the notice if EC2 reports the maintenance as over. Returns `None` if EC2 does not list the
/// maintenance or does not answer.
pub(crate) async fn called_off(context: &Context, attempt: &Attempt<'_>) -> Option<Reason> {
    let (starts, id) = (planned_start(attempt.notice)?, &attempt.notice.instance);
    let named =
        aws::until(DESCRIBE_STATUS, Instant::now() + DESCRIBED_WITHIN, || scheduled_events(&context.ec2, Some(id)));
    let named = named.await.ok()?;
    let mut same = named.iter().filter(|event| event.starts.duration_since(starts).abs() <= APART).peekable();
    same.peek()?;
    same.all(ScheduledEvent::is_over).then(|| Reason::NoLongerNamed(id.clone()))
}

/// Returns a reason to ignore the notice if EC2 reports the maintenance as over or moved. If the maintenance has moved, a new
/// invocation handles the new start.
pub(crate) async fn over_or_moved(
    context: &Context,
    attempt: &Attempt<'_>,
    instance: &Instance,
) -> Result<Option<Reason>, Failure> {
    let Attempt { notice, invocation, .. } = attempt;
    let Notice { maintenance: Some(maintenance), event_id, .. } = notice else { return Ok(None) };
    if !maintenance.is_found() || instance.state != InstanceState::Up {
        return Ok(None);
    }
    let end = attempt.window.end;
    let named = aws::until(DESCRIBE_STATUS, end, || scheduled_events(&context.ec2, Some(&instance.id))).await?;
    let id = instance.id.clone();
    match named.into_iter().find(|event| event.id == *event_id) {
        None => Ok(Some(Reason::NoLongerNamed(id))),
        Some(event) if event.is_over() => Ok(Some(Reason::NoLongerNamed(id))),
        Some(event) if Some(event.starts) != maintenance.starts => {
            let moved = payload(continued::KEY, &event.as_notice(&invocation.home, invocation.clock.now()));
            context.send(&moved, Later::Now, invocation.clock, invocation.continues_by()).await?;
            Ok(Some(Reason::Moved { instance: id, starts: event.starts }))
        }
        Some(_) => Ok(None),
    }
}
