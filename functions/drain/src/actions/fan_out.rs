//! A notice of several instances: each gets an invocation of its own, with a receipt and retries of
//! its own, so that one that fails does not stop the others.

use crate::aws::{self, ec2};
use crate::context::Context;
use crate::continuation;
use crate::decision::Reason;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::notice::{Instances, Several};
use crate::receipt::outcome::would_have_fanned_out;
use crate::receipt::record::Record;
use crate::receipt::{Outcome, StepName};

/// Hands the notice on once for each instance.
pub(crate) async fn fan_out(
    context: &Context,
    several: &Several,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let end = invocation.hands_on_until();
    let history = &several.history;
    let each: Vec<_> = match &several.instances {
        Instances::Named(named) => named.iter().map(|(id, entry)| history.for_entry(id, entry)).collect(),
        Instances::OfReservation(reservation) => {
            let members = aws::until(ec2::DESCRIBE, end, || ec2::of_reservation(&context.ec2, reservation)).await?;
            if members.is_empty() {
                return Ok(Outcome::Ignored(Reason::EmptyReservation(reservation.clone())));
            }
            members.iter().map(|id| history.for_instance(id.as_str())).collect()
        }
    };
    if context.settings.dry_run {
        let instances: Vec<_> = each.into_iter().filter_map(|history| history.instance).collect();
        return Ok(would_have_fanned_out(&instances));
    }
    continuation::hand_on(&context.itself, &each, end).await?;
    record.step(StepName::HandedOn, invocation.clock.now());
    Ok(Outcome::OneForEach(each.len()))
}
