//! Volumes and attachments, as a CSI driver and the attach-detach controller make them. Neither runs in the bed: a test
//! attaches and detaches.

use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::error::BedError;
use crate::pods::object;

const DRIVER: &str = "ebs.csi.aws.com";

/// Creates a `ReadWriteOnce` volume of a claim and attaches it to a node. Returns the name of the attachment.
pub async fn attach(client: &Client, (namespace, claim): (&str, &str), node: &str) -> Result<String, BedError> {
    let name = format!("pv-{namespace}-{claim}");
    let volume: PersistentVolume = object(json!({
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "claimRef": {"namespace": namespace, "name": claim}, "csi": {"driver": DRIVER, "volumeHandle": name}},
    }));
    let hash = digest(&SHA256, format!("{name}{DRIVER}{node}").as_bytes());
    let attachment_name = hash.as_ref().iter().fold("csi-".to_owned(), |name, byte| format!("{name}{byte:02x}"));
    let attachment: VolumeAttachment = object(json!({
        "metadata": {"name": attachment_name},
        "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": name}},
    }));
    // The attach-detach controller's report.
    let volumes = json!([{"name": format!("kubernetes.io/csi/{DRIVER}^{name}"), "devicePath": ""}]);
    let report = Patch::Strategic(json!({"status": {"volumesAttached": volumes}}));
    let attaching = || BedError::kubernetes(format!("attach volume {name}"));
    Api::all(client.clone()).create(&PostParams::default(), &volume).await.map_err(attaching())?;
    Api::all(client.clone()).create(&PostParams::default(), &attachment).await.map_err(attaching())?;
    let nodes = Api::<Node>::all(client.clone());
    nodes.patch_status(node, &PatchParams::default(), &report).await.map_err(attaching())?;
    Ok(attachment_name)
}

pub async fn detach(client: &Client, attachment: &str) -> Result<(), BedError> {
    let detaching = BedError::kubernetes(format!("detach {attachment}"));
    let attachments = Api::<VolumeAttachment>::all(client.clone());
    attachments.delete(attachment, &DeleteParams::default()).await.map(drop).map_err(detaching)
}
