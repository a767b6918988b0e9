//! What pods come to, by their fates. Pure.

use crate::{Earlier, Fate, PodRecord};

/// The pods of a drain, counted by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Those that have gone, in this invocation and in those before it.
    pub moved: usize,
    /// Those that were there at the end.
    pub lost: usize,
    /// Those that were shutting down when their node stopped answering, or were stuck in Terminating.
    pub unconfirmed: usize,
}

impl Counts {
    /// Counts the pods of this invocation, and those that went in earlier ones.
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

    #[test]
    fn pods_that_went_in_earlier_invocations_count_and_those_that_are_lost_only_once() {
        let pods = [Fate::Clean, Fate::Forced, Fate::Lost, Fate::Unconfirmed, Fate::Stayed]
            .map(|fate| PodRecord::sample("shop/web-0", fate, 0));
        let before = [
            earlier(&[(Fate::Clean, 3), (Fate::Clamped, 2), (Fate::Remaining, 9)]),
            earlier(&[(Fate::Clean, 1), (Fate::Lost, 5)]),
        ];
        assert_eq!(Counts::of(&pods, &before), Counts { moved: 8, lost: 1, unconfirmed: 1 });
    }

    #[test]
    fn more_pods_than_a_number_holds_are_as_many_as_it_holds() {
        let before = [earlier(&[(Fate::Clean, usize::MAX), (Fate::Forced, 1)]), earlier(&[(Fate::Clean, 1)])];
        assert_eq!(Counts::of(&[], &before).moved, usize::MAX);
    }
}
