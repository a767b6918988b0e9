//! What pods come to, by their fates. Pure.

use super::{Ending, Fate, PodRecord, Receipt};
use crate::notice::continued::Earlier;

/// The pods of a drain, counted by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Those that have gone, in this invocation and in those before it.
    pub(crate) moved: usize,
    /// Those that were there at the end.
    pub(crate) lost: usize,
    /// Those that were shutting down when their node stopped answering.
    pub(crate) unconfirmed: usize,
}

impl Counts {
    /// Counts the pods of this invocation, and those that went in earlier ones.
    pub(crate) fn of(pods: &[PodRecord], earlier: &[Earlier]) -> Self {
        let count = |fate| pods.iter().filter(|pod| pod.fate == fate).count();
        let gone = [Fate::Clean, Fate::Clamped, Fate::Forced];
        let before = earlier.iter().flat_map(|earlier| gone.iter().filter_map(|fate| earlier.pods.get(fate.as_str())));
        Self {
            moved: gone.into_iter().map(count).sum::<usize>() + before.sum::<usize>(),
            lost: count(Fate::Lost),
            unconfirmed: count(Fate::Unconfirmed),
        }
    }
}

impl Receipt {
    /// How many pods were there at the end, with no later invocation to go on with them.
    pub(crate) fn lost_for_good(&self) -> usize {
        if self.ending == Some(Ending::Continued) { 0 } else { self.count(Fate::Lost) }
    }

    /// How many pods came to such an end.
    pub(crate) fn count(&self, fate: Fate) -> usize {
        self.pods.iter().filter(|pod| pod.fate == fate).count()
    }
}
