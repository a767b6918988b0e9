//! Cordons a node without draining the node.

use spillway_core::outcome::Outcome;
use spillway_settings::LifecycleResult;

use super::claim::{Claiming, Purpose, claim};
use super::{Next, lifecycle, undo_check};
use crate::context::{Context, Target};
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::receipt::record::Record;

/// Cordons the target's node without evicting pods, and completes a waiting lifecycle action.
pub(crate) async fn cordon(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Next, Failure> {
    let claim = match claim(context, target, Purpose::Cordon, record).await? {
        Claiming::Claimed(node) => node.claim,
        Claiming::Ended(next) => return Ok(next),
    };
    if let Some(status) = claim.denied() {
        let error = ApiError::Refused(Box::new(status.clone()));
        let doing = format!("cordon node {}", claim.node);
        return Err(Failure::Kubernetes { doing, cluster: target.cluster.clone(), error });
    }
    let arranged = undo_check::schedule_first_check(context, target.attempt, &claim).await;
    lifecycle::complete(target.attempt, LifecycleResult::Continue, record).await?;
    arranged.map(|()| Outcome::Cordoned { node: claim.node }.into())
}
