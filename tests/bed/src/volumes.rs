//! Volumes and attachments, as a CSI driver and the attach-detach controller make them. Neither runs in the bed: a test
//! attaches and detaches.

use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::error::BedError;
use crate::pods::PodShape;

const DRIVER: &str = "ebs.csi.aws.com";

/// A persistent volume that is attached to a node.
#[derive(Debug)]
pub struct AttachedVolume {
    attachments: Api<VolumeAttachment>,
    name: String,
}

impl AttachedVolume {
    /// Creates a `ReadWriteOnce` volume of a claim and attaches it to a node.
    pub async fn create(client: &Client, (namespace, claim): (&str, &str), node: &str) -> Result<Self, BedError> {
        let name = format!("pv-{namespace}-{claim}");
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                "claimRef": {"namespace": namespace, "name": claim},
                "csi": {"driver": DRIVER, "volumeHandle": name}},
        });
        let hash = digest(&SHA256, format!("{name}{DRIVER}{node}").as_bytes());
        let attachment_name = hash.as_ref().iter().fold("csi-".to_owned(), |name, byte| format!("{name}{byte:02x}"));
        let attachment = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": attachment_name},
            "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": name}},
        });
        let (volumes, attachments) = (Api::<PersistentVolume>::all(client.clone()), Api::all(client.clone()));
        let (volume, attachment) = (serde_json::from_value(volume), serde_json::from_value(attachment));
        let params = PostParams::default();
        let creating = || BedError::kubernetes(format!("attach volume {name}"));
        volumes.create(&params, &volume.expect("a volume")).await.map_err(creating())?;
        attachments.create(&params, &attachment.expect("an attachment")).await.map_err(creating())?;
        // The attach-detach controller's report.
        let volume = json!({"name": format!("kubernetes.io/csi/{DRIVER}^{name}"), "devicePath": ""});
        let patch = Patch::Strategic(json!({"status": {"volumesAttached": [volume]}}));
        let nodes = Api::<Node>::all(client.clone());
        nodes.patch_status(node, &PatchParams::default(), &patch).await.map_err(creating())?;
        Ok(Self { attachments, name: attachment_name })
    }

    pub async fn detach(&self) -> Result<(), BedError> {
        let detaching = BedError::kubernetes(format!("detach volume {}", self.name));
        self.attachments.delete(&self.name, &DeleteParams::default()).await.map(drop).map_err(detaching)
    }
}

/// Adds a volume of a claim to pods.
pub fn with_claim(shape: PodShape, claim: &str) -> PodShape {
    let volume = json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
    shape.with(json!({"spec": {"volumes": [volume]}}))
}
