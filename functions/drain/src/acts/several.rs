//! A notice of several instances: each gets an invocation of its own, with a receipt and retries of
//! its own, so that one that fails does not stop the others.

use crate::aws;
use crate::decision::Reason;
use crate::ending::{self, Outcome, ignored};
use crate::handler::Spillway;
use crate::instance;
use crate::interruption::{Instances, Several};
use crate::invocation::Invocation;
use crate::later;
use crate::receipt::{Receipt, StepName};

impl Spillway {
    /// Hands the notice on once for each instance.
    pub(crate) async fn several(&self, several: &Several, invocation: &Invocation, receipt: &mut Receipt) -> Outcome {
        receipt.step(StepName::Begun, invocation.clock.started());
        let end = invocation.hands_on_until();
        let instances = match &several.instances {
            Instances::Named(named) => named.clone(),
            Instances::OfReservation(reservation) => {
                let members =
                    aws::until(instance::DESCRIBE, end, || instance::of_reservation(&self.ec2, reservation)).await?;
                if members.is_empty() {
                    return Ok(ignored(&Reason::EmptyReservation(reservation.clone())));
                }
                members.iter().map(ToString::to_string).collect()
            }
        };
        if self.settings.dry_run {
            return Ok(ending::would_have_told(&instances));
        }
        let histories: Vec<_> = instances.iter().map(|instance| several.history.for_instance(instance)).collect();
        later::hand_on(&self.eventbridge, &histories, end).await?;
        receipt.step(StepName::HandedOn, invocation.clock.now());
        Ok(ending::one_for_each(instances.len()))
    }
}
