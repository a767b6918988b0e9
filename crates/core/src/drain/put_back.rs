//! Pods that their controllers put back on the node, cordoned as it is: because they tolerate the cordon, or because
//! nothing but this node will do. Pure.
//!
//! Each is evicted once more, after a pause: it may find another node by then. One that comes back a second time would come
//! back for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_notice::continued::{OwnersPods, PodsPutBack};

use super::plan::PodUid;
use crate::kube::pod::Pod;

/// How long a pod that has come back is left alone before it is evicted again: kubectl's own pause after a refusal.
pub const PAUSE: Duration = Duration::from_secs(5);
/// A pod that was created so much before the drain saw its node is none that came back. The API server says whole seconds,
/// by a clock of its own.
const CLOCKS_DIFFER_BY: SignedDuration = SignedDuration::from_secs(5);
/// How many more of an owner's pods than have left are reported when they come back. If a kubelet rejects pods that name their
/// node, a controller makes new ones for ever, and each would be in the log, the receipt and the continuation.
const MORE_THAN_LEFT: usize = 10;

/// How often a pod's place on the node has been taken again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// It has not come back.
    None,
    /// It is back for the first time.
    Once,
    /// It has come back again.
    Again,
    /// It has come back again, as so many others of its owner have.
    AsOthers,
}

/// Which pods are of which owner, and which came back.
#[derive(Debug)]
pub struct PutBack {
    since: Timestamp,
    owners: BTreeMap<String, Owned>,
}

/// The pods of an owner: those that were there, and what became of them so far.
#[derive(Debug, Default)]
struct Owned {
    first: BTreeSet<PodUid>,
    so_far: OwnersPods,
}

impl Owned {
    /// How many of those that were there have left, also in earlier invocations.
    fn left(&self, has_left: impl Fn(&PodUid) -> bool) -> usize {
        self.so_far.left + self.first.iter().filter(|first| has_left(first)).count()
    }
}

impl PutBack {
    /// Of a drain with these pods, the claim of which began then: none of them has come back, even if another is leaving
    /// already. Of one that goes on: those of the owners whose pods came back `earlier`, too.
    pub fn of(pods: &[Pod], earlier: Option<&PodsPutBack>, at: Timestamp) -> Self {
        let since = at.saturating_sub(CLOCKS_DIFFER_BY).unwrap_or(Timestamp::MIN);
        let since = earlier.map_or(since, |earlier| earlier.since);
        let earlier = earlier.into_iter().flat_map(|earlier| earlier.owners.clone());
        let owners = earlier.map(|(owner, so_far)| (owner, Owned { first: BTreeSet::new(), so_far })).collect();
        let mut put_back = Self { since, owners };
        for pod in pods {
            if let (Some(owner), Some(uid)) = (owner_of(pod), &pod.metadata.uid)
                && !(put_back.owners.get(owner).is_some_and(|pods| pods.so_far.left > 0) && put_back.is_new(pod))
            {
                put_back.owners.entry(owner.to_owned()).or_default().first.insert(PodUid(uid.clone()));
            }
        }
        put_back
    }

    /// Takes a pod that came while the node was not cordoned, because somebody had uncordoned it: it has not been put back.
    pub fn came_to_uncordoned(&mut self, pod: &Pod) {
        if let (Some(owner), Some(uid)) = (owner_of(pod), &pod.metadata.uid) {
            self.owners.entry(owner.to_owned()).or_default().first.insert(PodUid(uid.clone()));
        }
    }

    /// Takes a pod that is seen for the first time. It is back if its owner's pods have left here before. An owner with
    /// several of them has each come back once before the first comes back again.
    pub fn seen(&mut self, uid: &PodUid, pod: &Pod, has_left: impl Fn(&PodUid) -> bool) -> Return {
        let Some(owner) = owner_of(pod) else { return Return::None };
        let is_new = self.is_new(pod);
        let pods = self.owners.entry(owner.to_owned()).or_default();
        let left = pods.left(has_left);
        if left == 0 || !is_new || pods.first.contains(uid) {
            pods.first.insert(uid.clone());
            return Return::None;
        }
        let OwnersPods { once, again, .. } = &mut pods.so_far;
        if once.contains(&uid.0) {
            Return::Once
        } else if again.contains(&uid.0) {
            Return::Again
        } else if once.len() < left {
            once.push(uid.0.clone());
            Return::Once
        } else if again.len() < left + MORE_THAN_LEFT {
            again.push(uid.0.clone());
            Return::Again
        } else {
            Return::AsOthers
        }
    }

    /// What a later invocation has to know: the owners of which a pod came back.
    pub fn so_far(&self, has_left: impl Fn(&PodUid) -> bool) -> Option<PodsPutBack> {
        let came_back = self.owners.iter().filter(|(_, pods)| !pods.so_far.once.is_empty());
        let owners: BTreeMap<_, _> = came_back
            .map(|(owner, pods)| (owner.clone(), OwnersPods { left: pods.left(&has_left), ..pods.so_far.clone() }))
            .collect();
        (!owners.is_empty()).then_some(PodsPutBack { since: self.since, owners })
    }

    fn is_new(&self, pod: &Pod) -> bool {
        pod.metadata.creation_timestamp.as_ref().is_some_and(|created| created.0 >= self.since)
    }
}

/// The UID of what puts the pod back when it is gone. Not of one that was leaving before it was seen: its replacement comes
/// whatever is done here.
fn owner_of(pod: &Pod) -> Option<&str> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut references = pod.metadata.owner_references.iter().flatten();
    references.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

#[cfg(test)]
mod tests {
    use kube_core::ObjectMeta;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const BEGIN: &str = "2026-11-21T03:12:00Z";
    const AFTER: &str = "2026-11-21T03:12:03Z";
    const FIVE_SECONDS_BEFORE: &str = "2026-11-21T03:11:55Z";
    const SIX_SECONDS_BEFORE: &str = "2026-11-21T03:11:54Z";
    const LONG_BEFORE: &str = "2026-11-21T03:11:00Z";

    fn put_back(pods: &[Pod]) -> PutBack {
        PutBack::of(pods, None, BEGIN.parse().unwrap())
    }

    fn uid(n: usize) -> PodUid {
        PodUid(format!("u-{n}"))
    }

    fn pod(owner: &str, created: &str, controls: bool) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "creationTimestamp": created, "ownerReferences": [
            {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "o", "uid": owner, "controller": controls}]}}))
        .unwrap()
    }

    #[test]
    fn a_pod_of_an_owner_whose_pod_has_left_here_is_back_and_the_next_one_again() {
        let mut put_back = put_back(&[]);
        let mut see = |n, pod: &Pod| put_back.seen(&uid(n), pod, |_| true);
        assert_eq!(see(0, &pod("web", LONG_BEFORE, true)), Return::None);
        assert_eq!(see(1, &pod("web", FIVE_SECONDS_BEFORE, true)), Return::Once, "its clock may be behind");
        assert_eq!(see(2, &pod("web", AFTER, true)), Return::Again);
        assert_eq!(see(3, &pod("other", AFTER, true)), Return::None);
    }

    #[test]
    fn what_only_looks_like_a_return_is_none() {
        let mut put_back = put_back(&[]);
        put_back.seen(&uid(0), &pod("web", LONG_BEFORE, true), |_| true);
        assert_eq!(
            put_back.seen(&uid(1), &pod("web", SIX_SECONDS_BEFORE, true), |_| true),
            Return::None,
            "it was bound late"
        );
        assert_eq!(put_back.seen(&uid(2), &pod("web", AFTER, true), |_| false), Return::None, "none has left");
        assert_eq!(put_back.seen(&uid(3), &pod("web", AFTER, false), |_| true), Return::None, "nobody puts it back");
    }

    #[test]
    fn what_came_while_the_node_was_uncordoned_is_not_back() {
        let mut put_back = put_back(&[]);
        put_back.seen(&uid(0), &pod("web", LONG_BEFORE, true), |_| true);
        for n in 1..3 {
            let mut came = pod("web", AFTER, true);
            came.metadata.uid = Some(uid(n).0);
            put_back.came_to_uncordoned(&came);
            assert_eq!(put_back.seen(&uid(n), &came, |_| true), Return::None);
        }
        let back = pod("web", AFTER, true);
        let returns = (3..7).map(|n| put_back.seen(&uid(n), &back, |_| true));
        assert_eq!(returns.collect::<Vec<_>>(), [Return::Once, Return::Once, Return::Once, Return::Again]);
    }

    #[test]
    fn no_pod_that_was_there_at_the_beginning_is_back_although_another_is_leaving_already() {
        let mut pods = [pod("web", AFTER, true), pod("web", AFTER, true)];
        for (n, pod) in pods.iter_mut().enumerate() {
            pod.metadata.uid = Some(uid(n).0);
        }
        let mut put_back = put_back(&pods);
        assert_eq!(put_back.seen(&uid(1), &pods[1], |left| *left == uid(0)), Return::None);
        assert_eq!(put_back.seen(&uid(2), &pod("web", AFTER, true), |left| *left == uid(0)), Return::Once);
    }

    #[test]
    fn who_goes_on_with_a_drain_knows_which_pods_came_back_before() {
        let of = |n: usize, created| Pod {
            metadata: ObjectMeta { uid: Some(uid(n).0), ..pod("web", created, true).metadata },
            ..Pod::default()
        };
        let pods = [of(0, LONG_BEFORE), of(1, AFTER), of(2, AFTER)];
        let mut first = put_back(&pods[..1]);
        assert_eq!(first.so_far(|_| true), None, "nothing came back");
        first.seen(&uid(0), &pods[0], |_| true);
        assert_eq!(first.seen(&uid(1), &pods[1], |_| true), Return::Once);
        assert_eq!(first.seen(&uid(2), &pods[2], |_| true), Return::Again);

        let continued = first.so_far(|_| true);
        let mut next = PutBack::of(&pods[1..], continued.as_ref(), "2026-11-21T03:27:00Z".parse().unwrap());

        assert_eq!(next.seen(&uid(1), &pods[1], |_| false), Return::Once, "it may not have been evicted yet");
        assert_eq!(next.seen(&uid(2), &pods[2], |_| false), Return::Again);
        assert_eq!(next.seen(&uid(3), &of(3, AFTER), |_| true), Return::Again, "whose first return was long ago");
        assert_eq!(next.so_far(|_| false).map(|pods| pods.owners["web"].left), Some(1));
    }

    #[test]
    fn the_replacement_of_a_pod_that_was_leaving_before_takes_no_place_of_another() {
        let leaving = |n| {
            let mut pod = pod("web", LONG_BEFORE, true);
            pod.metadata.uid = Some(uid(n).0);
            pod.metadata.deletion_timestamp = pod.metadata.creation_timestamp.clone();
            pod
        };
        let mut put_back = put_back(&[leaving(0), leaving(1)]);
        put_back.seen(&uid(2), &pod("web", LONG_BEFORE, true), |_| true);
        assert_eq!(put_back.seen(&uid(3), &pod("web", AFTER, true), |_| true), Return::Once);
        assert_eq!(put_back.seen(&uid(4), &pod("web", AFTER, true), |_| true), Return::Again);
    }

    proptest! {
        #[test]
        fn however_many_pods_an_owner_has_each_comes_back_once_before_one_comes_back_again(
            pods in 1..20_usize, returns in 1..100_usize,
        ) {
            let mut put_back = put_back(&[]);
            for n in 0..pods {
                prop_assert_eq!(put_back.seen(&uid(n), &pod("web", LONG_BEFORE, true), |_| false), Return::None);
            }
            for n in 0..returns {
                let is = put_back.seen(&uid(pods + n), &pod("web", AFTER, true), |_| true);
                let as_others = 2 * pods + 10;
                prop_assert_eq!(is, match n {
                    n if n < pods => Return::Once,
                    n if n < as_others => Return::Again,
                    _ => Return::AsOthers,
                });
            }
        }
    }
}
