//! Maintenance that was found, when its time has come: EC2 is asked again, because no notice will tell that it is called off or
//! moved.

use spillway_core::decision::Reason;
use spillway_core::instance::{Instance, InstanceState};
use spillway_notice::{Notice, continued, payload};

use crate::aws;
use crate::aws::ec2::{DESCRIBE_STATUS, scheduled_events};
use crate::context::{Attempt, Context};
use crate::failure::Failure;
use crate::later::Later;

/// Why maintenance that EC2 had named is not to be drained for by now, if it is not. What was moved is handed on. Without an
/// answer of EC2 it is drained for.
pub(crate) async fn over(
    context: &Context,
    attempt: &Attempt<'_>,
    instance: &Instance,
) -> Result<Option<Reason>, Failure> {
    let Attempt { notice, invocation, .. } = attempt;
    let Notice { maintenance: Some(maintenance), event_id, .. } = notice else { return Ok(None) };
    if !maintenance.is_found() || instance.state != InstanceState::Up {
        return Ok(None);
    }
    let end = attempt.window().end;
    let named = aws::until(DESCRIBE_STATUS, end, || scheduled_events(&context.ec2, Some(&instance.id))).await?;
    let id = instance.id.to_string();
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
