//! Which pods leave a node, which stay, and why. Pure; kubectl's rules are the reference.
//!
//! Unlike kubectl, one odd pod never stops the others: what becomes of it is decided for each pod.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::do_not_disrupt::{DoNotDisrupt, do_not_disrupt};
use super::tier::{Tier, tier};
use crate::kube::metadata::annotation;
use crate::kube::pod::Pod;

/// A pod is its UID, not its name: a StatefulSet gives the same name to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodUid(pub String);

/// Where a pod is found, for requests and for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A pod, and what becomes of it in the drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub uid: PodUid,
    pub name: PodName,
    /// What it asked for to shut down cleanly.
    pub grace: Duration,
    pub tier: Tier,
    /// Nothing of it runs any more.
    pub has_finished: bool,
    pub disposition: Disposition,
}

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// It is left alone.
    Stays(Stays),
    /// It is evicted with its tier.
    Leaves,
    /// It is evicted when its annotation no longer says otherwise, or cannot be respected any longer.
    DoNotDisrupt(DoNotDisrupt),
    /// It is being deleted already, should have stopped by then, and is waited for. It was given that grace, by whomever.
    Leaving { by: Timestamp, given: Option<Duration> },
    /// It has stopped; only finalizers keep its object.
    Stopped,
}

/// Why a pod is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// The kubelet runs it from a file; the API server only mirrors it.
    Mirror,
    /// Its DaemonSet would put it back at once.
    DaemonSet,
    /// Its annotation counts it as a DaemonSet's.
    LikeDaemonSet,
    /// It serves a volume to other pods of the node, and its CSI driver would put it back.
    Mount,
    /// Its annotation says so.
    Skipped,
}

impl Stays {
    /// The reason in plain words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mirror => "a static pod of the node",
            Self::DaemonSet => "a DaemonSet's pod",
            Self::LikeDaemonSet => "its annotation cluster-autoscaler.kubernetes.io/daemonset-pod=true",
            Self::Mount => "it serves a volume to pods of the node",
            Self::Skipped => "its annotation spillway/drain=skip",
        }
    }
}

/// Kubernetes' default `terminationGracePeriodSeconds`.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Plans a pod. `None` for an object without a name or UID, which no API server sends.
pub fn plan(pod: &Pod) -> Option<Planned> {
    let metadata = &pod.metadata;
    Some(Planned {
        uid: PodUid(metadata.uid.clone()?),
        name: PodName { namespace: metadata.namespace.clone()?, name: metadata.name.clone()? },
        grace: grace(pod),
        tier: tier(pod),
        has_finished: has_finished(pod),
        disposition: disposition(pod),
    })
}

fn disposition(pod: &Pod) -> Disposition {
    if has_mirror_annotation(pod) {
        Disposition::Stays(Stays::Mirror)
    } else if let Some(why) = stays_like_daemon_set(pod).filter(|_| !has_finished(pod)) {
        Disposition::Stays(why)
    } else if is_skipped(pod) {
        Disposition::Stays(Stays::Skipped)
    } else if let Some(by) = &pod.metadata.deletion_timestamp {
        let given = pod.metadata.deletion_grace_period_seconds.map(whole_seconds);
        if given == Some(Duration::ZERO) { Disposition::Stopped } else { Disposition::Leaving { by: by.0, given } }
    } else {
        let do_not_disrupt = do_not_disrupt(pod).filter(|_| !has_finished(pod));
        do_not_disrupt.map_or(Disposition::Leaves, Disposition::DoNotDisrupt)
    }
}

/// Of these pods those that have to leave.
pub fn that_leave(pods: &[Pod]) -> Vec<PodName> {
    pods.iter().filter_map(plan).filter(Planned::has_to_leave).map(|pod| pod.name).collect()
}

impl Planned {
    /// Returns `true` if the pod does not stay on its node.
    pub fn has_to_leave(&self) -> bool {
        match self.disposition {
            Disposition::Leaves | Disposition::DoNotDisrupt(_) | Disposition::Leaving { .. } => true,
            Disposition::Stays(_) | Disposition::Stopped => false,
        }
    }
}

fn has_mirror_annotation(pod: &Pod) -> bool {
    pod.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(annotation::MIRROR))
}

fn is_skipped(pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(annotation::DRAIN)).is_some_and(|asks| asks == "skip")
}

/// The label of a pod in which Mountpoint for Amazon S3 runs, for the pods of its node (mountpoint-s3-csi-driver, `mppod`).
const MOUNTPOINT_S3: &str = "s3.csi.aws.com/mountpoint-version";
/// The label and its value of a pod in which the client of `JuiceFS` runs (juicefs-csi-driver, `pkg/common`).
const JUICEFS: (&str, &str) = ("app.kubernetes.io/name", "juicefs-mount");

/// Why a pod stays that would be put back at once. A mount pod serves to the end: the kubelet unmounts a volume before it
/// reports the pod gone that used it.
fn stays_like_daemon_set(pod: &Pod) -> Option<Stays> {
    let says = |annotation| pod.metadata.annotations.as_ref()?.get(annotation).map(String::as_str);
    let label = |name| pod.metadata.labels.as_ref()?.get(name).map(String::as_str);
    if is_of_daemon_set(pod) {
        Some(Stays::DaemonSet)
    } else if label(MOUNTPOINT_S3).is_some() || label(JUICEFS.0) == Some(JUICEFS.1) {
        Some(Stays::Mount)
    } else if says(annotation::DAEMON_SET_POD) == Some("true") {
        Some(Stays::LikeDaemonSet)
    } else {
        None
    }
}

/// By kind and group: other groups have kinds called DaemonSet whose pods do leave.
fn is_of_daemon_set(pod: &Pod) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        owner.controller == Some(true) && owner.kind == "DaemonSet" && owner.api_version.starts_with("apps/")
    })
}

/// The garbage collector calls an orphan *Failed* whose containers may still run.
fn has_finished(pod: &Pod) -> bool {
    !pod.status.conditions.is_collected && matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

fn grace(pod: &Pod) -> Duration {
    pod.spec.termination_grace_period_seconds.map_or(DEFAULT_GRACE, whole_seconds)
}

/// A negative grace period, which old API servers let through, means one second there.
fn whole_seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn disposition_of(changes: Value) -> Disposition {
        planned(changes).disposition
    }

    fn planned(changes: Value) -> Planned {
        let mut pod = json!({"metadata": {"name": "web-0", "namespace": "shop", "uid": "u-1"}});
        merge(&mut pod, changes);
        plan(&serde_json::from_value(pod).unwrap()).unwrap()
    }

    fn merge(into: &mut Value, from: Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, from) => *into = from,
        }
    }

    fn owned_by(kind: &str, api_version: &str) -> Value {
        json!({"metadata": {"ownerReferences":
            [{"kind": kind, "apiVersion": api_version, "name": "o", "uid": "o-1", "controller": true}]}})
    }

    #[test]
    fn a_daemon_sets_pod_stays() {
        assert_eq!(disposition_of(owned_by("DaemonSet", "apps/v1")), Disposition::Stays(Stays::DaemonSet));
    }

    #[test]
    fn a_pod_of_another_groups_daemon_set_leaves() {
        assert_eq!(disposition_of(owned_by("DaemonSet", "apps.kruise.io/v1alpha1")), Disposition::Leaves);
        assert_eq!(disposition_of(owned_by("ReplicaSet", "apps/v1")), Disposition::Leaves);
    }

    #[test]
    fn mount_pod_stays_whatever_its_class() {
        for labels in [
            json!({"s3.csi.aws.com/mountpoint-version": "1.20.0", "s3.csi.aws.com/volume-name": "pv"}),
            json!({"app.kubernetes.io/name": "juicefs-mount"}),
        ] {
            for class in [None, Some("mount-s3-critical"), Some("system-node-critical")] {
                let pod = json!({"metadata": {"labels": labels}, "spec": {"priorityClassName": class}});
                assert_eq!(disposition_of(pod), Disposition::Stays(Stays::Mount), "{labels}");
            }
        }
        let driver = json!({"metadata": {"labels": {"app.kubernetes.io/name": "juicefs-csi-driver"}}});
        assert_eq!(disposition_of(driver), Disposition::Leaves);
    }

    #[test]
    fn pod_annotated_as_a_daemon_sets_stays() {
        let annotated = |value: &str| {
            let mut pod = owned_by("DaemonSet", "apps.kruise.io/v1alpha1");
            merge(&mut pod, json!({"metadata": {"annotations": {annotation::DAEMON_SET_POD: value}}}));
            disposition_of(pod)
        };
        assert_eq!(annotated("true"), Disposition::Stays(Stays::LikeDaemonSet));
        assert_eq!(annotated("false"), Disposition::Leaves);
    }

    #[test]
    fn a_finished_pod_leaves_even_a_daemon_sets() {
        let mount = json!({"metadata": {"labels": {"app.kubernetes.io/name": "juicefs-mount"}}});
        for phase in ["Succeeded", "Failed"] {
            for mut pod in [owned_by("DaemonSet", "apps/v1"), mount.clone()] {
                merge(&mut pod, json!({"status": {"phase": phase}}));
                assert_eq!(disposition_of(pod), Disposition::Leaves);
            }
        }
    }

    #[test]
    fn a_static_pod_stays() {
        let pod = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "hash"}}});
        assert_eq!(disposition_of(pod), Disposition::Stays(Stays::Mirror));
    }

    #[test]
    fn a_pod_that_asks_to_be_skipped_stays_and_is_not_waited_for() {
        let mut pod = json!({"metadata": {"annotations": {"spillway/drain": "skip"}}});
        assert_eq!(disposition_of(pod.clone()), Disposition::Stays(Stays::Skipped));
        merge(&mut pod, json!({"metadata": {"deletionTimestamp": "2026-11-21T03:12:00Z"}}));
        assert_eq!(disposition_of(pod), Disposition::Stays(Stays::Skipped));
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_only_waited_for() {
        let by = "2026-11-21T03:12:00Z";
        let pod = json!({"metadata": {"deletionTimestamp": by, "deletionGracePeriodSeconds": 30}});
        let given = Some(Duration::from_secs(30));
        assert_eq!(disposition_of(pod), Disposition::Leaving { by: by.parse().unwrap(), given });
    }

    #[test]
    fn a_pod_that_only_its_finalizers_keep_has_stopped() {
        let pod = json!({"metadata": {"deletionTimestamp": "2026-11-21T03:12:00Z", "deletionGracePeriodSeconds": 0,
            "finalizers": ["example.test/kept"]}});
        assert_eq!(disposition_of(pod), Disposition::Stopped);
    }

    #[test]
    fn a_pod_that_is_not_to_be_disrupted_may_be_when_it_has_finished() {
        let mut pod = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        assert!(matches!(disposition_of(pod.clone()), Disposition::DoNotDisrupt(_)));
        merge(&mut pod, json!({"status": {"phase": "Succeeded"}}));
        assert_eq!(disposition_of(pod), Disposition::Leaves);
    }

    #[test]
    fn the_pods_that_have_to_leave_are_those_that_are_evicted_or_waited_for() {
        let pods = json!([
            {"metadata": {"name": "web-0"}},
            {"metadata": {"name": "batch-0", "annotations": {"karpenter.sh/do-not-disrupt": "true"}}},
            {"metadata": {"name": "leaving", "deletionTimestamp": "2026-11-21T03:12:00Z", "deletionGracePeriodSeconds": 30}},
            {"metadata": {"name": "stopped", "deletionTimestamp": "2026-11-21T03:12:00Z", "deletionGracePeriodSeconds": 0}},
            {"metadata": {"name": "static", "annotations": {"kubernetes.io/config.mirror": "hash"}}},
        ]);
        let mut pods: Vec<Pod> = serde_json::from_value(pods).unwrap();
        for pod in &mut pods {
            pod.metadata.namespace = Some("shop".to_owned());
            pod.metadata.uid.clone_from(&pod.metadata.name);
        }
        let leave: Vec<_> = that_leave(&pods).iter().map(ToString::to_string).collect();
        assert_eq!(leave, ["shop/web-0", "shop/batch-0", "shop/leaving"]);
    }

    #[test]
    fn absurd_grace_periods_are_read_without_a_panic() {
        let grace = |seconds: Value| {
            planned(json!({"spec": {"containers": [], "terminationGracePeriodSeconds": seconds}})).grace
        };
        assert_eq!(grace(json!(null)), DEFAULT_GRACE);
        assert_eq!(grace(json!(0)), Duration::ZERO);
        assert_eq!(grace(json!(-1)), Duration::from_secs(1));
        assert_eq!(grace(json!(2_147_483_648_i64)), Duration::from_secs(2_147_483_648));
        assert_eq!(grace(json!(i64::MAX)), Duration::from_secs(i64::MAX.unsigned_abs()));
    }
}
