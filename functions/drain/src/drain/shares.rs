//! How many pods of one owner are asked for at once. Pure.
//!
//! If a budget is behind one of them it is behind them all, and of evictions that find the same room in it one is granted:
//! each other one waits in the API server for half a second (kubernetes, `eviction.go`, `EvictionsRetry`). Were all pods asked
//! for at once, none would be left to ask for when the next replacement is ready meanwhile. So a few are kept back, and
//! asked for as the others are answered.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::Window;
use super::evict::Method;
use super::plan::OwnerUid;
use super::pod::{PodState, Tracked};

/// Enough for the half second: with replacements that are ready at once a budget has room about ten times a second, because
/// each eviction has the API server read budgets no older than itself, for which it asks etcd that often. Twenty pods left
/// in 1.7 s with five kept back, in 1.8 s with half of them, and in 2.2 s with none.
const KEPT_BACK: usize = 5;
/// So many are asked for at once in any case: few owners have more on a node, and these few would all have to wait.
const FEW: usize = 4;
/// A pod is not kept back for longer: an admission webhook may need many seconds for each answer.
const KEPT_BACK_FOR: Duration = Duration::from_secs(1);

/// Each owner's pods.
#[derive(Debug)]
pub(super) struct Shares(HashMap<OwnerUid, Share>);

#[derive(Debug, Default)]
struct Share {
    pods: usize,
    under_way: usize,
}

impl Shares {
    /// As they stand.
    pub(super) fn of<'a>(pods: impl Iterator<Item = &'a Tracked>) -> Self {
        let mut shares = HashMap::<OwnerUid, Share>::new();
        for pod in pods {
            let Some(owner) = &pod.owner else { continue };
            let share = shares.entry(owner.clone()).or_default();
            share.pods += 1;
            share.under_way += usize::from(pod.state == PodState::Asked);
        }
        Self(shares)
    }

    /// When a pod that is due then is told to leave: later, if it has not been asked for yet and its owner's share is under
    /// way, but not past its last safe moment. Nor is a deletion put off.
    pub(super) fn not_before(&self, pod: &Tracked, (at, way): (Instant, Method), window: Window) -> Instant {
        let share = pod.owner.as_ref().and_then(|owner| self.0.get(owner));
        let is_taken = share.is_some_and(|share| share.under_way >= share.pods.saturating_sub(KEPT_BACK).max(FEW));
        if !is_taken || way == Method::Delete || pod.told.is_some() {
            return at;
        }
        let later = at + KEPT_BACK_FOR;
        window.last_safe_moment(pod.grace).map_or(later, |moment| later.min(moment)).max(at)
    }

    /// Notes that the pod is being asked for.
    pub(super) fn asked(&mut self, pod: &Tracked) {
        if let Some(share) = pod.owner.as_ref().and_then(|owner| self.0.get_mut(owner)) {
            share.under_way += 1;
        }
    }
}
