//! What pods come to, by their fates. Pure.

use crate::{Earlier, Fate, PodRecord};

/// The pods of a drain, counted by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Those that have gone, in this invocation and in those before it.
    pub moved: usize,
    /// Those that were there at the end.
    pub lost: usize,
    /// Those that were shutting down when their node stopped answering.
    pub unconfirmed: usize,
}

impl Counts {
    /// Counts the pods of this invocation, and those that went in earlier ones.
    #[must_use]
    pub fn of(pods: &[PodRecord], earlier: &[Earlier]) -> Self {
        let count = |fate| pods.iter().filter(|pod| pod.fate == fate).count();
        let all = |fate| count(fate) + earlier.iter().map(|earlier| earlier.count(fate)).sum::<usize>();
        Self {
            moved: [Fate::Clean, Fate::Clamped, Fate::Forced].map(all).iter().sum(),
            lost: count(Fate::Lost),
            unconfirmed: count(Fate::Unconfirmed),
        }
    }
}
