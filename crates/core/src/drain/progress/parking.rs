//! Whether a drain merely waits, so that it may be parked.

use tokio::time::Instant;

use super::Progress;
use crate::drain::kubelet::Kubelet;
use crate::drain::pod::{PodState, Tracked};
use crate::drain::report::Parked;

impl Progress {
    /// What a later invocation has to know of a drain that only waits: each pod is leaving or blocked. `None`: there is something
    /// to do, or the node does not answer and has to be watched.
    pub fn parked(&self, now: Instant) -> Option<Parked> {
        let merely_waits = |pod: &Tracked| matches!(pod.state, PodState::Leaving { .. }) || pod.is_blocked();
        let mut left = self.pods.values().filter(|pod| pod.has_to_leave()).peekable();
        let answers = match self.kubelet {
            Some(kubelet) => kubelet == Kubelet::Answers,
            None => !self.is_node_watched && !self.is_node_watch_due(now),
        };
        (left.peek().is_some() && left.all(merely_waits) && answers && self.in_flight.all() == 0)
            .then(|| Parked { blocked_since: self.blockage.since(), forced_from: self.first_forced() })
    }

    /// From when on the first of the blocked pods is forced.
    fn first_forced(&self) -> Option<Instant> {
        let blocked = self.pods.values().filter(|pod| pod.is_blocked());
        blocked.filter_map(|pod| pod.blocked_until(self.window)).min()
    }
}
