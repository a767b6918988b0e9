//! Requests a replacement of the instance from its Auto Scaling group: during a drain for a spot notice, after a drain for
//! maintenance. If a call fails, the drain continues without a replacement.

use std::time::Duration;

use spillway_core::node::claimant::Claim;
use spillway_core::replacement::{NotRequested, Replacement, before_calls, confirmed, of_group, takes_part};
use spillway_notice::Kind;
use spillway_retry::{Backoff, Transient as _, jittered};
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep, timeout_at};

use crate::aws::{CallError, replacement as calls};
use crate::context::{Attempt, Context, Target};

/// Maximum time for all calls of one replacement. EC2 interrupts a Spot instance two minutes after the notice.
const WITHIN: Duration = Duration::from_secs(30);
/// Maximum wait until EC2 confirms the notice. The status of a spot request may change only after the notice.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);
/// Minimum pause between two calls that ask EC2 to confirm the notice.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Requests a replacement if the notice's kind is `wanted`. Returns `None` if the kind differs or replacements are disabled.
pub(super) async fn replace(
    context: &Context,
    target: &Target<'_>,
    claim: &Claim,
    wanted: Kind,
) -> Option<Replacement> {
    let Target { attempt, instance, managed_by, .. } = target;
    let Attempt { notice, invocation, settings, .. } = attempt;
    if notice.kind != wanted || !takes_part(notice, instance, settings) {
        return None;
    }
    let end = if wanted == Kind::Spot { attempt.window.end } else { invocation.completes_until() };
    let end = end.min(Instant::now() + WITHIN);
    let requested = match before_calls(notice, instance, *managed_by, claim, settings) {
        Ok(()) => until_requested(context, target, end).await,
        refused => refused,
    };
    Some(match requested {
        Ok(()) => {
            tracing::info!("the Auto Scaling group replaces instance {}", instance.id);
            Replacement::Requested(invocation.clock.now())
        }
        Err(reason) => {
            tracing::warn!("cannot replace instance {} at the notice: {reason}", instance.id);
            Replacement::NotRequested(reason)
        }
    })
}

/// Requests the replacement, with retries after transient failures. If Auto Scaling's answer was lost, the instance's
/// lifecycle state shows whether the request worked.
async fn until_requested(context: &Context, target: &Target<'_>, end: Instant) -> Result<(), NotRequested> {
    let mut backoff = Backoff::new();
    let mut is_answer_lost = false;
    loop {
        match check(context, target, end).await {
            Err(NotRequested::NotInService(state)) if is_answer_lost && state.starts_with("Terminating") => {
                return Ok(());
            }
            checked => checked?,
        }
        let requested = timeout_at(end, calls::request(&context.autoscaling, &target.instance.id)).await;
        let error = match requested {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => return Err(NotRequested::CallFailed("no answer of Auto Scaling within the time".to_owned())),
        };
        let may_pass = error.is_transient() || calls::is_contended(&error);
        if !may_pass || timeout_at(end, sleep(jittered(backoff.next_pause()))).await.is_err() {
            return Err(failed(&error));
        }
        is_answer_lost |= error.answer().is_empty();
        tracing::warn!(error = chain(&error), "the Auto Scaling group has not taken the request; checking again");
    }
}

/// Checks concurrently that the Auto Scaling group may replace the instance and that EC2 confirms the notice.
async fn check(context: &Context, target: &Target<'_>, end: Instant) -> Result<(), NotRequested> {
    let Target { attempt, instance, .. } = target;
    let (name, now) = (instance.group().unwrap_or("none"), attempt.invocation.clock.now());
    let group = async {
        let state = calls::group_state(&context.autoscaling, name, &instance.id, now, end).await;
        let state = state.map_err(|error| failed(&error))?;
        of_group(&state.ok_or_else(|| NotRequested::NoGroup(name.to_owned()))?, attempt.settings)
    };
    tokio::try_join!(biased; group, confirm(context, target, end)).map(|_| ())
}

/// Polls EC2 until EC2 confirms the notice, for at most [`CONFIRMED_WITHIN`].
async fn confirm(context: &Context, target: &Target<'_>, end: Instant) -> Result<(), NotRequested> {
    let Target { attempt, instance, .. } = target;
    let (ec2, end) = (&context.ec2, end.min(Instant::now() + CONFIRMED_WITHIN));
    let mut refused = None;
    loop {
        let record = match &instance.spot_request {
            Some(id) if attempt.notice.kind == Kind::Spot => calls::spot_request(ec2, id, end).await,
            _ => calls::scheduled(ec2, &instance.id, end).await.map(Some),
        };
        let reason = match record {
            Ok(record) => {
                record.ok_or(NotRequested::NoSpotRequest).and_then(|record| confirmed(attempt.notice, record))
            }
            // An earlier refusal of EC2 says more than a call that was cut off.
            Err(error) => return Err(refused.unwrap_or_else(|| failed(&error))),
        };
        let Err(reason) = reason else { return Ok(()) };
        if timeout_at(end, sleep(LOOK_EVERY + jittered(LOOK_EVERY))).await.is_err() {
            return Err(reason);
        }
        refused = Some(reason);
    }
}

fn failed(error: &CallError) -> NotRequested {
    NotRequested::CallFailed(chain(error))
}
