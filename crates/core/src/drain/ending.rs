//! Decides when a drain has ended: no pod has to leave, and no late pod is expected.
//!
//! A late pod is a pod that comes after the cordon, and was assigned before the scheduler observed the cordon.

use std::time::Duration;

use tokio::time::Instant;

use super::report::DrainEnd;

/// Maximum time from the cordon to the first late pod. The scheduler assigns late pods before it observes the cordon.
const FIRST_LATE_POD: Duration = Duration::from_secs(5);
/// Maximum time from one late pod to the next. The scheduler assigns late pods before it observes the cordon.
const NEXT_LATE_POD: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct DrainEnding {
    late_until: Instant,
    over: Option<Over>,
}

#[derive(Debug, Clone, Copy)]
struct Over {
    end: DrainEnd,
    since: Instant,
}

impl DrainEnding {
    /// Creates the state at the start of a drain whose node was cordoned at `at`.
    pub fn after_cordon(at: Instant) -> Self {
        Self { late_until: at + FIRST_LATE_POD, over: None }
    }

    /// Records the state at `now`. `end` is the result of the drain if it ended now; `None`: pods still have to leave. `late` is
    /// the time of the last late pod.
    pub fn observe(&mut self, end: Option<DrainEnd>, late: Option<Instant>, now: Instant) {
        self.late_until = late.map_or(self.late_until, |late| self.late_until.max(late + NEXT_LATE_POD));
        let since = self.since().unwrap_or(now);
        self.over = end.map(|end| Over { end, since });
    }

    /// Returns the drain's result if no pod has to leave and no late pod is expected. A node with a silent kubelet
    /// gets no late pods.
    pub fn reached(&self, now: Instant) -> Option<DrainEnd> {
        self.end().filter(|end| *end == DrainEnd::Silent || self.late_until <= now)
    }

    /// Returns the result that was recorded last, even if a late pod may still come.
    pub fn end(&self) -> Option<DrainEnd> {
        self.over.map(|over| over.end)
    }

    /// Returns the time since which no pod has to leave. `None`: pods have to leave.
    pub fn since(&self) -> Option<Instant> {
        self.over.map(|over| over.since)
    }

    /// Returns the time at which the drain ends if no new pod comes. `None`: pods have to leave.
    pub fn due(&self) -> Option<Instant> {
        self.over.map(|_| self.late_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emptied(end: DrainEnd, cordoned: Instant, now: Instant) -> DrainEnding {
        let mut ending = DrainEnding::after_cordon(cordoned);
        ending.observe(Some(end), None, now);
        ending
    }

    #[test]
    fn empty_node_is_watched_for_late_pods_unless_silent() {
        let (claimed, second) = (Instant::now(), Duration::from_secs(1));
        let ending = emptied(DrainEnd::Empty, claimed, claimed);
        assert_eq!(ending.reached(claimed + second), None, "the claim is observed within a second");
        assert_eq!(ending.reached(ending.due().unwrap()), Some(DrainEnd::Empty));
        assert_eq!(emptied(DrainEnd::Silent, claimed, claimed).reached(claimed), Some(DrainEnd::Silent));
        let later = claimed + 6 * second;
        assert_eq!(
            emptied(DrainEnd::Empty, claimed, later).reached(later),
            Some(DrainEnd::Empty),
            "long after the cordon"
        );
    }

    #[test]
    fn late_pod_restarts_the_drain() {
        let (claimed, second) = (Instant::now(), Duration::from_secs(1));
        let mut ending = emptied(DrainEnd::Empty, claimed, claimed);
        ending.observe(Some(DrainEnd::Empty), None, claimed + second);
        assert_eq!(ending.since(), Some(claimed), "the first time counts");
        let late = Some(claimed + 2 * second);
        ending.observe(None, late, claimed + 2 * second);
        assert_eq!((ending.end(), ending.due()), (None, None));
        ending.observe(Some(DrainEnd::Empty), late, claimed + 9 * second);
        assert_eq!(ending.since(), Some(claimed + 9 * second));
        assert_eq!(ending.reached(claimed + 16 * second), None, "the scheduler has a backlog");
        assert_eq!(ending.reached(claimed + 17 * second), Some(DrainEnd::Empty));
    }
}
