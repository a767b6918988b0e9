//! A notice of several instances: each gets an invocation of its own, with a receipt and retries of
//! its own, so that one that fails does not stop the others.

use crate::aws;
use crate::aws::instance;
use crate::continuation;
use crate::decision::Reason;
use crate::handler::Spillway;
use crate::invocation::Invocation;
use crate::notice::{Instances, Several};
use crate::receipt::ending::{self, Outcome, ignored};
use crate::receipt::{Receipt, StepName};

impl Spillway {
    /// Hands the notice on once for each instance.
    pub(crate) async fn several(&self, several: &Several, invocation: &Invocation, receipt: &mut Receipt) -> Outcome {
        receipt.step(StepName::Begun, invocation.clock.started());
        let end = invocation.hands_on_until();
        let history = &several.history;
        let each: Vec<_> = match &several.instances {
            Instances::Named(named) => named.iter().map(|(id, entry)| history.for_entry(id, entry)).collect(),
            Instances::OfReservation(reservation) => {
                let members =
                    aws::until(instance::DESCRIBE, end, || instance::of_reservation(&self.ec2, reservation)).await?;
                if members.is_empty() {
                    return Ok(ignored(&Reason::EmptyReservation(reservation.clone())));
                }
                members.iter().map(|id| history.for_instance(id.as_str())).collect()
            }
        };
        if self.settings.dry_run {
            let instances: Vec<_> = each.into_iter().filter_map(|history| history.instance).collect();
            return Ok(ending::would_have_told(&instances));
        }
        continuation::hand_on(&self.eventbridge, &each, end).await?;
        receipt.step(StepName::HandedOn, invocation.clock.now());
        Ok(ending::one_for_each(each.len()))
    }
}
