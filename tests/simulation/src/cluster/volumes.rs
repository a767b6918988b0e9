//! Volumes: attached to the node of their pod, detached some time after its end.

use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::answers::{self, ApiAnswer};
use super::pods::Pod;
use super::store::Resource;
use super::{Cluster, ClusterEvent};
use crate::plan::App;

const DRIVER: &str = "ebs.csi.aws.com";
/// Time after which a volume is detached without a report of its kubelet (kube-controller-manager, `maxWaitForUnmountDuration`).
const DETACHED_BY_FORCE: Duration = Duration::from_mins(6);

impl Cluster {
    /// Attaches the volume of a pod.
    pub(super) fn attach(&mut self, pod: &Pod) {
        let (app, Some(node)) = (&self.plan.apps[pod.app], &pod.node) else { return };
        if !app.has_volume {
            return;
        }
        let volume = pod.volume(app);
        let claim = json!({"namespace": app.namespace(), "name": pod.claim()});
        let persistent = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
            "spec": {"accessModes": ["ReadWriteOnce"], "claimRef": claim}});
        let hash = digest(&SHA256, format!("{volume}{DRIVER}{node}").as_bytes());
        let name = hash.as_ref().iter().fold("csi-".to_owned(), |name, byte| format!("{name}{byte:02x}"));
        let attachment = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "metadata": {"name": name}, "status": {"attached": true},
            "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}}});
        self.store.put(Resource::PersistentVolume, &volume, &persistent);
        self.store.put(Resource::VolumeAttachment, &pod.uid, &attachment);
        self.attachments.insert(pod.uid.clone(), attachment);
    }

    /// Unmounts the volume of a stopped pod, after a while.
    pub(super) fn release_volume(&mut self, pod: &Pod) {
        let (pod, Some(node)) = (pod.uid.clone(), pod.node.clone()) else { return };
        if self.attachments.contains_key(&pod) {
            let after = self.dice.ms(500..20_000);
            self.later(after, ClusterEvent::VolumeReleased { pod, node });
        }
    }

    /// Detaches a volume, at once if a kubelet reports the unmount.
    pub(super) fn release(&mut self, pod: String, node: &str) {
        let after = if self.kubelet_runs(node) { Duration::ZERO } else { DETACHED_BY_FORCE };
        self.later(after, ClusterEvent::VolumeDetached { pod });
    }

    pub(super) fn detach(&mut self, pod: &str) {
        if let Some(attachment) = self.attachments.remove(pod) {
            self.store.drop(Resource::VolumeAttachment, pod, &attachment);
        }
    }

    pub(super) fn get_volume(&self, name: &str) -> ApiAnswer {
        let volume = self.store.get(Resource::PersistentVolume, name);
        volume
            .map_or_else(|| answers::not_found("persistentvolumes", name), |json| ApiAnswer::Says(200, json.to_owned()))
    }

    pub(super) fn get_attachment(&self, name: &str) -> ApiAnswer {
        let attachment = self.attachments.values().find(|attachment| attachment["metadata"]["name"] == *name);
        attachment.map_or_else(
            || answers::not_found("volumeattachments", name),
            |attachment| ApiAnswer::Says(200, attachment.to_string()),
        )
    }

    /// Returns `status.volumesAttached` of a node.
    pub(super) fn volumes_attached(&self, node: &str) -> Vec<Value> {
        let attached = self.attachments.values().filter(|attachment| attachment["spec"]["nodeName"] == *node);
        let volumes = attached.filter_map(|attachment| attachment["spec"]["source"]["persistentVolumeName"].as_str());
        volumes
            .map(|volume| json!({"name": format!("kubernetes.io/csi/{DRIVER}^{volume}"), "devicePath": ""}))
            .collect()
    }

    /// Returns `true` if a volume is attached to a node that no pod there uses.
    pub(super) fn keeps_volumes(&self, node: &str) -> bool {
        let running = self.pods_on(node).filter(|pod| !pod.has_stopped);
        let in_use: Vec<_> = running.map(|pod| pod.volume(&self.plan.apps[pod.app])).collect();
        let mut attached = self.attachments.values().filter(|attachment| attachment["spec"]["nodeName"] == *node);
        attached.any(|attachment| {
            in_use.iter().all(|volume| attachment["spec"]["source"]["persistentVolumeName"] != **volume)
        })
    }
}

impl Pod {
    /// Name of the claim of its volume.
    pub(super) fn claim(&self) -> String {
        format!("data-{}", self.name)
    }

    fn volume(&self, app: &App) -> String {
        format!("volume-{}-{}", app.namespace(), self.name)
    }
}
