//! When a drain is over: no pod has to leave any more, and none is bound late.

use std::time::Duration;

use tokio::time::Instant;

use super::report::DrainEnd;

/// Time after the cordon in which the scheduler may bind a pod: its watch of nodes is behind by a second or so.
const LATE_PODS: Duration = Duration::from_secs(5);
/// Time after a pod that was bound late in which the next one may come. The scheduler has decided about a backlog then, which it
/// binds with 50 requests a second: of a burst of 300 pods the last came 3.4 s after the cordon, and a storm has thousands.
const BACKLOG: Duration = Duration::from_secs(15);

/// Whether a drain is over, and since when.
#[derive(Debug)]
pub struct Ending {
    late_until: Instant,
    over: Option<Over>,
}

#[derive(Debug, Clone, Copy)]
struct Over {
    end: DrainEnd,
    since: Instant,
}

impl Ending {
    /// Ending of a drain whose node was cordoned at `at`.
    pub fn after_cordon(at: Instant) -> Self {
        Self { late_until: at + LATE_PODS, over: None }
    }

    /// Takes how the drain would end now, and when the last pod came that was bound late. Without an end, pods still have to leave.
    pub fn observe(&mut self, end: Option<DrainEnd>, late: Option<Instant>, now: Instant) {
        self.late_until = late.map_or(self.late_until, |late| self.late_until.max(late + BACKLOG));
        let since = self.since().unwrap_or(now);
        self.over = end.map(|end| Over { end, since });
    }

    /// How the drain ends, if it does now. No pod is bound to a node that does not answer, so nothing is waited for there.
    pub fn reached(&self, now: Instant) -> Option<DrainEnd> {
        self.end().filter(|end| *end == DrainEnd::Silent || self.late_until <= now)
    }

    /// How the drain would end, as it stands.
    pub fn end(&self) -> Option<DrainEnd> {
        self.over.map(|over| over.end)
    }

    /// Since when no pod has to leave.
    pub fn since(&self) -> Option<Instant> {
        self.over.map(|over| over.since)
    }

    /// When it is [`reached`](Self::reached), if no pod comes before.
    pub fn due(&self) -> Option<Instant> {
        self.over.map(|_| self.late_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM_IS_SEEN_WITHIN: Duration = Duration::from_secs(1);

    #[test]
    fn an_empty_node_is_watched_until_a_pod_that_was_bound_late_would_have_come() {
        let claimed = Instant::now();
        let mut ending = Ending::after_cordon(claimed);
        ending.observe(Some(DrainEnd::Empty), None, claimed);
        assert_eq!(ending.reached(claimed + CLAIM_IS_SEEN_WITHIN), None);
        assert_eq!(ending.reached(ending.due().unwrap()), Some(DrainEnd::Empty));
    }

    #[test]
    fn a_node_that_does_not_answer_is_not_watched_for_late_pods() {
        let claimed = Instant::now();
        let mut ending = Ending::after_cordon(claimed);
        ending.observe(Some(DrainEnd::Silent), None, claimed);
        assert_eq!(ending.reached(claimed), Some(DrainEnd::Silent));
    }

    #[test]
    fn a_late_pod_begins_the_drain_again() {
        let (claimed, second) = (Instant::now(), Duration::from_secs(1));
        let mut ending = Ending::after_cordon(claimed);
        ending.observe(Some(DrainEnd::Empty), None, claimed);
        ending.observe(Some(DrainEnd::Empty), None, claimed + second);
        assert_eq!(ending.since(), Some(claimed), "what was over before is over since then");
        let late = Some(claimed + 2 * second);
        ending.observe(None, late, claimed + 2 * second);
        assert_eq!((ending.end(), ending.due()), (None, None));
        ending.observe(Some(DrainEnd::Empty), late, claimed + 9 * second);
        assert_eq!(ending.since(), Some(claimed + 9 * second));
        assert_eq!(ending.reached(claimed + 16 * second), None, "the scheduler has a backlog");
        assert_eq!(ending.reached(claimed + 17 * second), Some(DrainEnd::Empty));
    }

    #[test]
    fn node_cordoned_long_before_is_not_watched_for_late_pods() {
        let cordoned = Instant::now();
        let now = cordoned + Duration::from_secs(6);
        let mut ending = Ending::after_cordon(cordoned);
        ending.observe(Some(DrainEnd::Empty), None, now);
        assert_eq!(ending.reached(now), Some(DrainEnd::Empty));
    }
}
