//! When a drain is over: no pod has to leave any more, and none was bound late.

use std::time::Duration;

use tokio::time::Instant;

use super::report::DrainEnd;

/// How long the pods are watched after the claim, though none has to leave: the scheduler may have bound one just before it
/// saw the cordon. It sees that by a watch of its own, which is behind by a second or so.
const LATE_PODS: Duration = Duration::from_secs(5);

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
    /// Of a drain whose node was claimed then.
    pub fn after_claim(at: Instant) -> Self {
        Self { late_until: at + LATE_PODS, over: None }
    }

    /// Takes how the drain would end now; `None`: pods still have to leave.
    pub fn observe(&mut self, end: Option<DrainEnd>, now: Instant) {
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
        let mut ending = Ending::after_claim(claimed);
        ending.observe(Some(DrainEnd::Empty), claimed);
        assert_eq!(ending.reached(claimed + CLAIM_IS_SEEN_WITHIN), None);
        assert_eq!(ending.reached(ending.due().unwrap()), Some(DrainEnd::Empty));
    }

    #[test]
    fn a_node_that_does_not_answer_is_not_watched_for_late_pods() {
        let claimed = Instant::now();
        let mut ending = Ending::after_claim(claimed);
        ending.observe(Some(DrainEnd::Silent), claimed);
        assert_eq!(ending.reached(claimed), Some(DrainEnd::Silent));
    }

    #[test]
    fn a_late_pod_begins_the_drain_again() {
        let (claimed, second) = (Instant::now(), Duration::from_secs(1));
        let mut ending = Ending::after_claim(claimed);
        ending.observe(Some(DrainEnd::Empty), claimed);
        ending.observe(Some(DrainEnd::Empty), claimed + second);
        assert_eq!(ending.since(), Some(claimed), "what was over before is over since then");
        ending.observe(None, claimed + 2 * second);
        assert_eq!((ending.end(), ending.due()), (None, None));
        ending.observe(Some(DrainEnd::Empty), claimed + 9 * second);
        assert_eq!(ending.since(), Some(claimed + 9 * second));
        assert_eq!(ending.reached(claimed + 9 * second), Some(DrainEnd::Empty));
    }
}
