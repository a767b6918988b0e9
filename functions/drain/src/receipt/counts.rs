//! What the pods of a receipt come to, by their fates. Pure.

use std::collections::BTreeMap;

use jiff::{Timestamp, Unit};

use super::{Ending, Fate, Receipt};
use crate::notice::continued::Earlier;

impl Receipt {
    /// This receipt in short, for those of the invocations that go on with it.
    pub(crate) fn in_short(&self, from: Timestamp, to: Timestamp) -> Earlier {
        let mut pods = BTreeMap::new();
        for pod in &self.pods {
            *pods.entry(pod.fate.as_str().to_owned()).or_default() += 1;
        }
        let second = |at: Timestamp| at.round(Unit::Second).unwrap_or(at);
        let (request_id, node) = (self.request_id.clone(), self.claimed.clone());
        Earlier { request_id, from: second(from), to: second(to), node, pods }
    }

    /// How many pods are left that no later invocation goes on with.
    pub(crate) fn left_for_good(&self) -> usize {
        if self.ending == Some(Ending::Continued) { 0 } else { self.count(Fate::Left) }
    }

    /// How many pods have gone, in this invocation and in those before it.
    pub(crate) fn moved(&self) -> usize {
        let gone = [Fate::Clean, Fate::Clamped, Fate::Forced];
        let before =
            self.earlier.iter().flat_map(|earlier| gone.iter().filter_map(|fate| earlier.pods.get(fate.as_str())));
        gone.iter().map(|fate| self.count(*fate)).sum::<usize>() + before.sum::<usize>()
    }

    /// How many pods came to such an end.
    pub(crate) fn count(&self, fate: Fate) -> usize {
        self.pods.iter().filter(|pod| pod.fate == fate).count()
    }
}
