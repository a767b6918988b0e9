//! Shortens a receipt that is too long for an event. Lost pods are removed last.

use crate::{Fate, Pod, Receipt};

/// Maximum bytes that the field `pods_cut` adds to a receipt.
const PODS_CUT: usize = 24;

/// Number of characters of `reason` that are kept if the receipt is too long even without pods.
const REASON: usize = 1_000;

/// Order of the pods in a receipt. Pods at the end are removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Lost,
    Forced,
    Clamped,
    Unconfirmed,
    Remaining,
    Blocked,
    Rest,
}

impl Rank {
    fn of(pod: &Pod) -> Self {
        let Some(pod) = pod.record() else { return Self::Rest };
        match pod.fate {
            Fate::Lost => Self::Lost,
            Fate::Forced => Self::Forced,
            Fate::Clamped => Self::Clamped,
            Fate::Unconfirmed => Self::Unconfirmed,
            Fate::Remaining => Self::Remaining,
            Fate::WouldBeBlocked => Self::Blocked,
            Fate::Clean | Fate::Stayed | Fate::Returned | Fate::WouldLeave if pod.refusals() > 0 => Self::Blocked,
            Fate::Clean | Fate::Stayed | Fate::Returned | Fate::WouldLeave => Self::Rest,
        }
    }
}

impl Receipt {
    /// Sorts the pods by rank. Shortens the JSON by `bytes`: removes the last pods and, if necessary, cuts `reason`.
    pub fn shorten(&mut self, bytes: usize) {
        self.pods.sort_by_key(Rank::of);
        if bytes == 0 {
            return;
        }
        let (all, mut saved) = (self.pods.len(), 0);
        while saved < bytes + PODS_CUT
            && let Some(pod) = self.pods.pop()
        {
            saved += json_bytes(&pod) + ",".len();
        }
        self.pods_cut = Some(all - self.pods.len()).filter(|cut| *cut > 0);
        if saved < bytes
            && let Some((end, _)) = self.reason.char_indices().nth(REASON)
        {
            self.reason.replace_range(end.., "…");
        }
    }
}

fn json_bytes(pod: &Pod) -> usize {
    serde_json::to_string(pod).expect("pods in a receipt are plain data").len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PodRecord;

    fn sample(pod: &str, fate: Fate, refusals: u32) -> Pod {
        Pod::Full(PodRecord::sample(pod, fate, refusals))
    }

    fn receipt(pods: Vec<Pod>) -> Receipt {
        Receipt { pods, ..Receipt::default() }
    }

    fn length(receipt: &Receipt) -> usize {
        serde_json::to_string(receipt).expect("plain data").len()
    }

    fn names(receipt: &Receipt) -> Vec<&str> {
        receipt.pods.iter().map(Pod::name).collect()
    }

    #[test]
    fn worst_fate_is_kept_longest() {
        let mut pods: Vec<_> = Fate::ALL.iter().map(|fate| sample(fate.as_str(), *fate, 0)).collect();
        pods.push(sample("clean, and was blocked", Fate::Clean, 1));
        let mut receipt = receipt(pods);
        let mut kept_longest = Vec::new();
        while !receipt.pods.is_empty() {
            let before = receipt.clone();
            // Smaller than any pod: each call removes one.
            receipt.shorten(1);
            let gone = names(&before).into_iter().find(|name| !names(&receipt).contains(name)).map(str::to_owned);
            kept_longest.splice(..0, gone);
        }
        assert_eq!(
            kept_longest,
            [
                "lost",
                "forced",
                "clamped",
                "unconfirmed",
                "remaining",
                "would-be-blocked",
                "clean, and was blocked",
                "clean",
                "stayed",
                "returned",
                "would-leave"
            ]
        );
    }

    #[test]
    fn short_receipt_keeps_every_pod_and_sorts_lost_first() {
        let mut whole = receipt(vec![sample("a", Fate::Clean, 0), sample("b", Fate::Lost, 0)]);
        whole.shorten(0);
        assert_eq!((names(&whole), whole.pods_cut), (vec!["b", "a"], None));
    }

    #[test]
    fn long_reason_is_cut_after_the_pods() {
        let reason = "é".repeat(200_000);
        let mut long = Receipt { reason: reason.clone(), ..receipt(vec![sample("a", Fate::Lost, 0)]) };
        long.shorten(10);
        assert_eq!((long.pods.len(), &long.reason), (0, &reason), "the pod was enough");
        long.shorten(300_000);
        assert!(long.reason.ends_with("é…") && length(&long) < 10_000, "{}", length(&long));
        let mut without_pods = Receipt { reason, ..receipt(Vec::new()) };
        without_pods.shorten(10);
        assert_eq!((without_pods.pods_cut, without_pods.reason.chars().count()), (None, REASON + 1));
    }

    /// Kept pods fit, rank before the cut ones, and no other pod would fit.
    #[test]
    fn cut_is_ordered_and_minimal() {
        let name = |n: usize| format!("{n}/{}", "\"é\\a".repeat(n * 7 % 13));
        let fate = |n: usize| Fate::ALL[n * 3 % Fate::ALL.len()];
        let pods: Vec<_> = (0..60).zip(0_u32..).map(|(n, count)| sample(&name(n), fate(n), count % 3)).collect();
        let whole = receipt(pods.clone());
        for bytes in (1..length(&whole)).step_by(97) {
            let mut cut = whole.clone();
            let wanted = length(&cut) - bytes;
            cut.shorten(bytes);

            let gone: Vec<_> = pods.iter().filter(|pod| !names(&cut).contains(&pod.name())).collect();
            assert_eq!((gone.len(), gone.len() + cut.pods.len()), (cut.pods_cut.unwrap_or(0), pods.len()));
            assert!(length(&cut) <= wanted || cut.pods.is_empty());
            let last_kept = cut.pods.iter().map(Rank::of).max();
            let first_gone = gone.iter().map(|pod| Rank::of(pod)).min();
            assert!(last_kept.zip(first_gone).is_none_or(|(kept, gone)| kept <= gone));
            let next = gone.iter().filter(|pod| Some(Rank::of(pod)) == first_gone).map(|pod| json_bytes(pod)).max();
            assert!(next.is_none_or(|pod| length(&cut) + pod + ",".len() + PODS_CUT > wanted));
        }
    }
}
