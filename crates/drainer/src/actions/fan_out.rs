//! Invokes the function once for each instance of a notice, so that each instance has its own retries and receipt.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use spillway_core::decision::{self, Reason};
use spillway_core::invocation::Invocation;
use spillway_core::outcome::{Outcome, would_have_fanned_out};
use spillway_notice::{Deadline, Instances, Several, continued, payload};

use crate::aws::{self, ec2};
use crate::context::Context;
use crate::failure::Failure;
use crate::later::Later;
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// Maximum number of instances that are handled for one notice: the default concurrency limit of Lambda in an account.
const MOST_INSTANCES: usize = 1_000;
/// Maximum number of concurrent calls to Lambda, enough to start hundreds of invocations a second.
const AT_ONCE: usize = 10;

/// Invokes the function once for each instance of the notice.
pub(crate) async fn fan_out(
    context: &Context,
    several: &Several,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let (end, now) = (invocation.continues_by(), invocation.clock.started());
    if let Some(reason) = decision::implausible(several.kind, several.time, Deadline::Open, now) {
        return Ok(Outcome::Ignored(reason));
    }
    let history = &several.history;
    let mut each: Vec<_> = match &several.instances {
        Instances::Named(named) => named.iter().map(|(id, entry)| history.for_entry(id, entry)).collect(),
        Instances::OfReservation(reservation) => {
            let members = aws::until(ec2::DESCRIBE, end, || ec2::of_reservation(&context.ec2, reservation)).await?;
            if members.is_empty() {
                return Ok(Outcome::Ignored(Reason::EmptyReservation(reservation.clone())));
            }
            members.iter().map(|id| history.for_instance(id.as_str())).collect()
        }
    };
    let left_out = each.len().saturating_sub(MOST_INSTANCES);
    if left_out > 0 {
        tracing::error!("the notice names {} instances; handling only the first {MOST_INSTANCES}", each.len());
        each.truncate(MOST_INSTANCES);
    }
    if context.settings.dry_run {
        let instances: Vec<_> = each.into_iter().filter_map(|history| history.instance).collect();
        return Ok(would_have_fanned_out(&instances));
    }
    let sent = stream::iter(&each).map(|history| async move {
        context.send(&payload(continued::KEY, history), Later::Now, invocation.clock, end).await
    });
    sent.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    record.step(StepName::HandedOn, invocation.clock.now());
    Ok(Outcome::OneForEach { instances: each.len(), left_out })
}
