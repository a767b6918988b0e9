//! A notice of several instances: each gets an invocation of its own, with a receipt and retries of
//! its own, so that one that fails does not stop the others.

use tokio::time::Instant;

use crate::aws;
use crate::ending::{self, Outcome};
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::instance;
use crate::interruption::{InstanceId, NoticeError, Several, Which};
use crate::invocation::Invocation;
use crate::later;
use crate::receipt::{Receipt, StepName};

impl Spillway {
    /// Hands the notice on once for each instance; what cannot be read fails when all others are on their way.
    pub(crate) async fn several(&self, several: &Several, invocation: &Invocation, receipt: &mut Receipt) -> Outcome {
        receipt.step(StepName::Begun, invocation.clock.started());
        let end = invocation.hands_on_until();
        let (instances, unreadable) = self.instances(&several.which, end).await?;
        let histories: Vec<_> = instances.iter().map(|instance| several.history.for_instance(instance)).collect();
        later::hand_on(&self.eventbridge, &histories, end).await?;
        receipt.step(StepName::HandedOn, invocation.clock.now());
        if unreadable.is_empty() {
            Ok(ending::one_for_each(&instances))
        } else {
            Err(Failure::Notice(NoticeError::Instances { read: instances.len(), unreadable: unreadable.to_vec() }))
        }
    }

    async fn instances<'a>(&self, which: &'a Which, end: Instant) -> Result<(Vec<InstanceId>, &'a [String]), Failure> {
        match which {
            Which::These { instances, unreadable } => Ok((instances.clone(), unreadable)),
            Which::OfReservation(reservation) => {
                let members =
                    aws::until(instance::DESCRIBE, end, || instance::of_reservation(&self.ec2, reservation)).await?;
                Ok((members, &[]))
            }
        }
    }
}
