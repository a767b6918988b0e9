//! Decides for each pod of a node whether the drain evicts the pod or leaves it alone. Pure.
//!
//! The rules are those of `kubectl drain`, but pods without a controller and pods with local data are evicted too.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::do_not_disrupt::{DoNotDisrupt, do_not_disrupt};
use super::tier::{Tier, tier};
use crate::kube::metadata::annotation;
use crate::kube::pod::Pod;

/// UID of a pod. A name does not identify a pod, because a StatefulSet reuses pod names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodUid(pub String);

/// Namespace and name of a pod, for requests and messages.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub uid: PodUid,
    pub name: PodName,
    /// The pod's `terminationGracePeriodSeconds`, or the default of Kubernetes.
    pub grace: Duration,
    pub tier: Tier,
    /// No container of the pod runs any more.
    pub has_finished: bool,
    pub disposition: Disposition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The drain does not evict the pod.
    Stays(Stays),
    /// The pod is evicted when it is the turn of the pod's [`Tier`].
    Leaves,
    /// The pod has a do-not-disrupt annotation, and is evicted when the annotation expires or is no longer respected.
    DoNotDisrupt(DoNotDisrupt),
    /// The pod is terminating, and its grace period ends at `by`. `given` is the length of the grace period, if known.
    Leaving { by: Timestamp, given: Option<Duration> },
    /// The pod has stopped, but finalizers keep the pod's object.
    Stopped,
}

/// Reason why the drain does not evict a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// Static pod, which the kubelet runs from a file.
    Mirror,
    /// Pod of a DaemonSet, which would recreate an evicted pod at once.
    DaemonSet,
    /// Pod with the annotation `cluster-autoscaler.kubernetes.io/daemonset-pod=true`.
    LikeDaemonSet,
    /// Pod that mounts a volume for other pods of the node, and has to outlast these pods.
    Mount,
    /// Pod with the annotation `spillway/drain=skip`.
    Skipped,
}

impl Stays {
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

/// Default of `terminationGracePeriodSeconds` in Kubernetes.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Decides what the drain does with the pod. `None`: the object has no UID, namespace or name.
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

pub fn pods_to_move(pods: &[Pod]) -> Vec<PodName> {
    pods.iter().filter_map(plan).filter(Planned::has_to_leave).map(|pod| pod.name).collect()
}

impl Planned {
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
    annotations.and_then(|annotations| annotations.get(annotation::DRAIN)).is_some_and(|value| value == "skip")
}

/// Label of pods that run Mountpoint for Amazon S3 for other pods (mountpoint-s3-csi-driver, `mppod`).
const MOUNTPOINT_S3: &str = "s3.csi.aws.com/mountpoint-version";
/// Label of pods that run the `JuiceFS` client for other pods (juicefs-csi-driver, `pkg/common`).
const JUICEFS: (&str, &str) = ("app.kubernetes.io/name", "juicefs-mount");

/// Returns the reason not to evict a pod: its controller would recreate the pod on the node, or other pods use its mount.
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

/// Returns `true` if a DaemonSet of the API group `apps` controls the pod.
fn is_of_daemon_set(pod: &Pod) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        owner.controller == Some(true) && owner.kind == "DaemonSet" && owner.api_version.starts_with("apps/")
    })
}

/// Returns `true` if the pod's containers have ended. The phase `Failed` is no proof, because the pod garbage collector
/// sets it for running pods, too.
fn has_finished(pod: &Pod) -> bool {
    !pod.status.conditions.is_collected && matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

fn grace(pod: &Pod) -> Duration {
    pod.spec.termination_grace_period_seconds.map_or(DEFAULT_GRACE, whole_seconds)
}

/// Converts a grace period. A negative value counts as one second, as in old API servers.
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
    fn daemon_set_pods_stay_but_not_those_of_other_groups() {
        assert_eq!(disposition_of(owned_by("DaemonSet", "apps/v1")), Disposition::Stays(Stays::DaemonSet));
        assert_eq!(disposition_of(owned_by("DaemonSet", "apps.kruise.io/v1alpha1")), Disposition::Leaves);
        assert_eq!(disposition_of(owned_by("ReplicaSet", "apps/v1")), Disposition::Leaves);
    }

    #[test]
    fn mount_pod_of_any_priority_class_stays() {
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
    fn finished_pod_leaves_also_if_it_would_have_stayed() {
        let mount = json!({"metadata": {"labels": {"app.kubernetes.io/name": "juicefs-mount"}}});
        for phase in ["Succeeded", "Failed"] {
            for mut pod in [owned_by("DaemonSet", "apps/v1"), mount.clone()] {
                merge(&mut pod, json!({"status": {"phase": phase}}));
                assert_eq!(disposition_of(pod), Disposition::Leaves);
            }
        }
    }

    #[test]
    fn static_and_skipped_pods_stay() {
        let annotated = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
        assert_eq!(disposition_of(annotated(annotation::MIRROR, "hash")), Disposition::Stays(Stays::Mirror));
        let mut pod = annotated("spillway/drain", "skip");
        assert_eq!(disposition_of(pod.clone()), Disposition::Stays(Stays::Skipped));
        merge(&mut pod, json!({"metadata": {"deletionTimestamp": "2026-11-21T03:12:00Z"}}));
        assert_eq!(disposition_of(pod), Disposition::Stays(Stays::Skipped));
    }

    #[test]
    fn deleted_pod_is_leaving_until_only_finalizers_keep_it() {
        let by = "2026-11-21T03:12:00Z";
        let deleted = |grace_s| json!({"metadata": {"deletionTimestamp": by, "deletionGracePeriodSeconds": grace_s}});
        let given = Some(Duration::from_secs(30));
        assert_eq!(disposition_of(deleted(30)), Disposition::Leaving { by: by.parse().unwrap(), given });
        assert_eq!(disposition_of(deleted(0)), Disposition::Stopped);
    }

    #[test]
    fn do_not_disrupt_pod_leaves_once_it_has_finished() {
        let mut pod = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        assert!(matches!(disposition_of(pod.clone()), Disposition::DoNotDisrupt(_)));
        merge(&mut pod, json!({"status": {"phase": "Succeeded"}}));
        assert_eq!(disposition_of(pod), Disposition::Leaves);
    }

    #[test]
    fn evicted_and_terminating_pods_have_to_leave() {
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
        let leave: Vec<_> = pods_to_move(&pods).iter().map(ToString::to_string).collect();
        assert_eq!(leave, ["shop/web-0", "shop/batch-0", "shop/leaving"]);
    }

    #[test]
    fn absurd_grace_periods_do_not_panic() {
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
