//! Counts the pods of a drain by fate.

use crate::{Earlier, Fate, PodRecord};

/// Numbers of pods of one drain, by fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Number of pods that left the node.
    pub moved: usize,
    /// Number of pods that were still on the node when the drain ended.
    pub lost: usize,
    /// Number of pods whose fate is `unconfirmed`.
    pub unconfirmed: usize,
}

impl Counts {
    /// Counts the pods of this invocation. Adds the pods that left in earlier invocations.
    #[must_use]
    pub fn of(pods: &[PodRecord], earlier: &[Earlier]) -> Self {
        let count = |fate| pods.iter().filter(|pod| pod.fate == fate).count();
        let all = |fate| earlier.iter().map(|earlier| earlier.count(fate)).fold(count(fate), usize::saturating_add);
        Self {
            moved: [Fate::Clean, Fate::Clamped, Fate::Forced].map(all).into_iter().fold(0, usize::saturating_add),
            lost: count(Fate::Lost),
            unconfirmed: count(Fate::Unconfirmed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier(pods: &[(Fate, usize)]) -> Earlier {
        Earlier {
            request_id: String::new(),
            from: jiff::Timestamp::UNIX_EPOCH,
            to: jiff::Timestamp::UNIX_EPOCH,
            node: None,
            pods: pods.iter().map(|(fate, count)| (fate.as_str().to_owned(), *count)).collect(),
        }
    }

    /// Pods that an earlier invocation left behind are among the pods of this one.
    #[test]
    fn earlier_invocations_add_moved_pods_but_no_lost_ones() {
        let pods = [Fate::Clean, Fate::Forced, Fate::Lost, Fate::Unconfirmed, Fate::Stayed]
            .map(|fate| PodRecord::sample("shop/web-0", fate, 0));
        let before = [
            earlier(&[(Fate::Clean, 3), (Fate::Clamped, 2), (Fate::Remaining, 9)]),
            earlier(&[(Fate::Clean, 1), (Fate::Lost, 5)]),
        ];
        assert_eq!(Counts::of(&pods, &before), Counts { moved: 8, lost: 1, unconfirmed: 1 });
        let many = [earlier(&[(Fate::Clean, usize::MAX), (Fate::Forced, 1)]), earlier(&[(Fate::Clean, 1)])];
        assert_eq!(Counts::of(&[], &many).moved, usize::MAX, "saturates");
    }
}
