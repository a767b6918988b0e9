//! Volumes of pods, which are attached to their nodes while they run; and what becomes of a namespace that is deleted.

use serde_json::json;

use super::pods::{Pod, namespace};
use super::store::Resource;
use super::{Cluster, ClusterEvent};

impl Cluster {
    /// A pod comes to a node, and its volume with it.
    pub(super) fn attach(&mut self, app: usize, pod: &str, node: &str) {
        let app = &self.plan.apps[app];
        if !app.has_volume {
            return;
        }
        let (key, volume) = (attachment(pod), format!("volume-{pod}"));
        let claim = json!({"name": pod, "namespace": namespace(app.namespace)});
        let persistent = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
            "spec": {"accessModes": ["ReadWriteOnce"], "claimRef": claim}});
        self.store.put(Resource::PersistentVolume, &volume, &persistent);
        let attached = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": key},
            "spec": {"attacher": "ebs.csi.aws.com", "nodeName": node, "source": {"persistentVolumeName": volume}},
            "status": {"attached": true}});
        self.store.put(Resource::VolumeAttachment, &key, &attached);
    }

    /// A pod has gone, and its volume is detached a while later.
    pub(super) fn have_detached(&mut self, pod: &Pod) {
        if self.plan.apps[pod.app].has_volume && pod.node.is_some() {
            let after = self.dice.ms(500..20_000);
            self.effects.after(after, ClusterEvent::Detached { pod: pod.name.clone() });
        }
    }

    /// The volume of a pod is detached, unless another pod of the name has it again.
    pub(super) fn detach(&mut self, pod: &str) {
        let key = attachment(pod);
        let is_used = self.pods.values().any(|there| there.name == pod && there.node.is_some());
        if let Some(attached) = self.store.get(Resource::VolumeAttachment, &key).filter(|_| !is_used) {
            let attached = serde_json::from_str(attached).unwrap_or_default();
            self.store.drop(Resource::VolumeAttachment, &key, &attached);
        }
    }

    /// Whether a namespace is being deleted.
    pub(super) fn is_ending(&self, namespace: usize) -> bool {
        self.ending == Some(namespace)
    }

    /// A namespace is deleted: its controller deletes what is in it.
    pub(super) fn end_namespace(&mut self, namespace: usize) {
        self.ending = Some(namespace);
        let in_it = self.pods.values().filter(|pod| self.plan.apps[pod.app].namespace == namespace);
        let in_it: Vec<_> = in_it.map(|pod| pod.uid.clone()).collect();
        for uid in in_it {
            self.begin_deletion(&uid, None);
        }
    }
}

fn attachment(pod: &str) -> String {
    format!("attachment-{pod}")
}
