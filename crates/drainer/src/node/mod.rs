//! Finds, claims, patches and watches an instance's node. The module `node` of the core crate makes the decisions.

mod claim;
mod cordon_again;
mod find;
pub(crate) mod node_claim;
pub(crate) mod out_of_service;
pub(crate) mod pace;
mod patch;
mod search;
pub(crate) mod uncordon;
mod watch;

use kube::Client;
use spillway_core::node::claimant::Claim;
use spillway_core::node::unclaimed::Unclaimed;

use crate::kube::{ApiError, Contention};
pub use claim::{Rehearsed, rehearse};
pub(crate) use claim::{claim, observe_without_claiming};
pub(crate) use cordon_again::cordon_again;
pub(crate) use find::{by_likely_names, find, is_of};
pub(crate) use search::search;
pub(crate) use watch::{NodeWatch, ObservedNodeChange, until_unclaimed};

pub(crate) struct ClaimedNode {
    pub(crate) claim: Claim,
    pub(crate) client: Client,
}

#[derive(Debug)]
pub(crate) enum NodeError {
    Unclaimed(Unclaimed),
    Api(ApiError),
}

impl NodeError {
    /// Returns [`Unclaimed`] as `Ok(Err(…))`, so that only errors of the API server are retried.
    pub(crate) fn settled<T>(done: Result<T, Self>) -> Result<Result<T, Unclaimed>, ApiError> {
        match done {
            Ok(done) => Ok(Ok(done)),
            Err(Self::Unclaimed(why)) => Ok(Err(why)),
            Err(Self::Api(error)) => Err(error),
        }
    }
}

impl From<Unclaimed> for NodeError {
    fn from(why: Unclaimed) -> Self {
        Self::Unclaimed(why)
    }
}

impl From<ApiError> for NodeError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl Contention for NodeError {
    fn is_contention(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_contention())
    }
}
