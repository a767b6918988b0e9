//! How a receipt that is too long is cut: the pods that were lost are kept first. Pure.

use serde::Serialize;

use super::{Fate, PodRecord, Receipt};

/// What `,"pods_cut":123456789012` takes, which a receipt has then.
const PODS_CUT: usize = 24;

/// What is kept before what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Lost,
    Forced,
    Clamped,
    Unconfirmed,
    Blocked,
    Rest,
}

impl Rank {
    fn of(pod: &PodRecord) -> Self {
        match pod.fate {
            Fate::Lost => Self::Lost,
            Fate::Forced => Self::Forced,
            Fate::Clamped => Self::Clamped,
            Fate::Unconfirmed => Self::Unconfirmed,
            Fate::WouldBeBlocked => Self::Blocked,
            Fate::Clean | Fate::Stayed | Fate::WouldLeave if pod.refusals() > 0 => Self::Blocked,
            Fate::Clean | Fate::Stayed | Fate::WouldLeave => Self::Rest,
        }
    }
}

impl Receipt {
    /// Takes pods away, those of the last rank first, until the receipt's JSON is shorter by so many bytes or none is left.
    pub(crate) fn shorten(&mut self, bytes: usize) {
        if bytes > 0 {
            self.pods.sort_by_key(Rank::of);
            self.pods_cut = shorten(&mut self.pods, bytes);
        }
    }
}

/// Takes pods away, the last first, until their JSON is shorter by so many bytes or none is left; says how many.
pub(crate) fn shorten(pods: &mut Vec<impl Serialize>, bytes: usize) -> Option<usize> {
    if bytes == 0 {
        return None;
    }
    let (all, mut saved) = (pods.len(), 0);
    while saved < bytes + PODS_CUT
        && let Some(pod) = pods.pop()
    {
        saved += json_bytes(&pod) + ",".len();
    }
    Some(all - pods.len()).filter(|cut| *cut > 0)
}

fn json_bytes(data: &impl Serialize) -> usize {
    serde_json::to_string(data).expect("pods in a receipt are plain data").len()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::invocation::Invocation;
    use crate::invocation::clock::Clock;
    use crate::receipt::Subject;
    use crate::receipt::record::Record;

    const FATES: [Fate; 8] = [
        Fate::Clean,
        Fate::Clamped,
        Fate::Forced,
        Fate::Stayed,
        Fate::Lost,
        Fate::Unconfirmed,
        Fate::WouldLeave,
        Fate::WouldBeBlocked,
    ];

    fn receipt(pods: Vec<PodRecord>) -> Receipt {
        let invocation = Invocation::until(Timestamp::MAX, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH));
        let (subject, record) = (Subject::Unread { event_id: None }, Record { pods, ..Record::default() });
        Receipt::begun(&invocation, subject, &record, String::new())
    }

    fn length(receipt: &Receipt) -> usize {
        serde_json::to_string(receipt).expect("plain data").len()
    }

    fn names(receipt: &Receipt) -> Vec<&str> {
        receipt.pods.iter().map(|pod| pod.pod.as_str()).collect()
    }

    #[test]
    fn the_lost_are_kept_first_then_the_forced_the_clamped_the_unconfirmed_and_the_blocked() {
        let mut pods: Vec<_> = FATES.iter().map(|fate| PodRecord::sample(fate.as_str(), *fate, 0)).collect();
        pods.push(PodRecord::sample("clean, and was blocked", Fate::Clean, 1));
        let mut receipt = receipt(pods);
        let mut kept_longest = Vec::new();
        while !receipt.pods.is_empty() {
            let before = receipt.clone();
            // Less than any pod takes, so that one goes each time.
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
                "would-be-blocked",
                "clean, and was blocked",
                "clean",
                "stayed",
                "would-leave"
            ]
        );
    }

    #[test]
    fn a_receipt_that_is_short_enough_is_not_touched() {
        let mut whole = receipt(vec![PodRecord::sample("a", Fate::Clean, 0), PodRecord::sample("b", Fate::Lost, 0)]);
        whole.shorten(0);
        assert_eq!((names(&whole), whole.pods_cut), (vec!["a", "b"], None));
    }

    fn any_pods() -> impl Strategy<Value = Vec<PodRecord>> {
        let pod = (0..FATES.len(), 0_u32..3, "[a-z\"\\\\é]{0,60}");
        prop::collection::vec(pod, 0..60).prop_map(|pods| {
            let named = |(n, (fate, refusals, name)): (usize, (usize, u32, String))| {
                PodRecord::sample(&format!("{n}/{name}"), FATES[fate], refusals)
            };
            pods.into_iter().enumerate().map(named).collect()
        })
    }

    proptest! {
        #[test]
        fn what_is_kept_fits_is_worth_more_than_what_is_cut_and_no_other_pod_would_fit(
            pods in any_pods(),
            bytes in 1_usize..8_000,
        ) {
            let mut cut = receipt(pods.clone());
            let wanted = length(&cut).saturating_sub(bytes);
            cut.shorten(bytes);

            let gone: Vec<_> = pods.iter().filter(|pod| !names(&cut).contains(&pod.pod.as_str())).collect();
            prop_assert_eq!(gone.len(), cut.pods_cut.unwrap_or(0));
            prop_assert_eq!(gone.len() + cut.pods.len(), pods.len());
            prop_assert!(length(&cut) <= wanted || cut.pods.is_empty());
            let last_kept = cut.pods.iter().map(Rank::of).max();
            let first_gone = gone.iter().map(|pod| Rank::of(pod)).min();
            prop_assert!(last_kept.zip(first_gone).is_none_or(|(kept, gone)| kept <= gone));
            let next = gone.iter().filter(|pod| Some(Rank::of(pod)) == first_gone).map(json_bytes).max();
            prop_assert!(next.is_none_or(|pod| length(&cut) + pod + ",".len() + PODS_CUT > wanted));
        }
    }
}
