//! Waits until the volumes of an empty node are detached.
//!
//! If the instance terminates with volumes attached, Kubernetes waits six minutes before it attaches the volumes to another node
//! (kube-controller-manager, `maxWaitForUnmountDuration`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, Client};
use ring::digest::{SHA256, digest};
use spillway_core::drain::report::{DrainReport, StopReason};
use spillway_core::drain::volumes::{ClaimName, claims_in_use, is_awaited};
use spillway_retry::{Backoff, Transient as _};
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep, timeout_at};

use crate::kube::{ApiError, call, if_found, until};

/// Maximum number of objects that are read concurrently.
const READ_AT_ONCE: usize = 10;
/// `VolumeAttachment` names, each with the name of the attached `PersistentVolume`.
type Attached = BTreeMap<String, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detached {
    pub(crate) waited: Duration,
    /// Number of volumes that are still attached. `None` if the API server did not answer.
    pub(crate) left: Option<usize>,
}

/// Waits until the node's volumes are detached, at most until `end`. Returns `None` if no volume was attached, a read was
/// refused, or `stop` completed first.
pub(crate) async fn until_detached(
    client: &Client,
    node: &str,
    report: &DrainReport,
    end: Instant,
    stop: impl Future<Output = StopReason>,
) -> Option<Detached> {
    let begin = Instant::now();
    let in_use = claims_in_use(&report.pods);
    let left = tokio::select! {
        biased;
        left = until_none(client, node, &in_use, end) => left,
        _ = stop => return None,
    };
    match left {
        Ok(None) => None,
        Ok(Some(left)) => {
            if !left.is_empty() {
                let volumes: Vec<_> = left.values().map(String::as_str).collect();
                let volumes = volumes.join(", ");
                tracing::warn!(
                    node.name = node,
                    "volumes {volumes} are still attached to node {node}; no longer waiting for them"
                );
            }
            Some(Detached { waited: begin.elapsed(), left: Some(left.len()) })
        }
        Err(error) if error.is_transient() => {
            let error = chain(&error);
            tracing::warn!(
                node.name = node,
                error,
                "cannot see whether the volumes of node {node} are detached; no longer waiting for them"
            );
            Some(Detached { waited: begin.elapsed(), left: None })
        }
        Err(error) => {
            let to_do = if error.code() == Some(403) { " (apply deploy/rbac.yaml)" } else { "" };
            tracing::warn!(
                node.name = node,
                error = chain(&error),
                "cannot see whether the volumes of node {node} are detached{to_do}; not waiting for them"
            );
            None
        }
    }
}

/// Waits until the volumes from [`awaited`] are detached, at most until `end`. Returns the volumes that are still attached.
/// Returns `None` if no volume was attached at the start.
async fn until_none(
    client: &Client,
    node: &str,
    in_use: &BTreeSet<ClaimName>,
    end: Instant,
) -> Result<Option<Attached>, ApiError> {
    let mut left = until(end, async || awaited(client, node, in_use).await, failed).await?;
    if left.is_empty() {
        return Ok(None);
    }
    let mut backoff = Backoff::new();
    while !left.is_empty() && timeout_at(end, sleep(backoff.next_pause())).await.is_ok() {
        left = until(end, async || still_attached(client, left.keys().cloned()).await, failed).await?;
    }
    Ok(Some(left))
}

fn failed(error: &ApiError) {
    tracing::warn!(error = chain(error), "cannot look at VolumeAttachments; trying again");
}

/// Reads the node's attachments of volumes that allow one node at a time. Leaves out volumes whose
/// `PersistentVolumeClaim` is in `in_use`.
async fn awaited(client: &Client, node: &str, in_use: &BTreeSet<ClaimName>) -> Result<Attached, ApiError> {
    let read = if_found(call(Api::<Node>::all(client.clone()).get(node)).await, "nodes")?;
    let status = read.and_then(|node| node.status);
    let unique_names = status.and_then(|status| status.volumes_attached).unwrap_or_default();
    let names = unique_names.iter().filter_map(|volume| attachment_name(&volume.name, node));
    let attached = still_attached(client, names).await?;
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let read = stream::iter(attached).map(async |(name, volume)| {
        let read = call(volumes.get_opt(&volume)).await?;
        Ok::<_, ApiError>(read.is_some_and(|read| is_awaited(&read, in_use)).then_some((name, volume)))
    });
    let awaited = read.buffer_unordered(READ_AT_ONCE).try_collect::<Vec<_>>().await?;
    Ok(awaited.into_iter().flatten().collect())
}

/// Reads the attachments with these `names`. Leaves out attachments that no longer exist.
async fn still_attached(client: &Client, names: impl Iterator<Item = String>) -> Result<Attached, ApiError> {
    let api = Api::<VolumeAttachment>::all(client.clone());
    let read = stream::iter(names.collect::<Vec<_>>()).map(async |name| {
        let read = if_found(call(api.get(&name)).await, "volumeattachments")?;
        let volume = read.and_then(|attachment| attachment.spec.source.persistent_volume_name);
        Ok::<_, ApiError>(volume.map(|volume| (name, volume)))
    });
    let there = read.buffer_unordered(READ_AT_ONCE).try_collect::<Vec<_>>().await?;
    Ok(there.into_iter().flatten().collect())
}

/// Computes the name of a `VolumeAttachment` as Kubernetes does (`pkg/volume/csi/csi_attacher.go`, `getAttachmentName`).
/// `unique_name` is the volume's name in the node's status. `None` if the volume has no CSI driver.
fn attachment_name(unique_name: &str, node: &str) -> Option<String> {
    let (driver, handle) = unique_name.strip_prefix("kubernetes.io/csi/")?.split_once('^')?;
    let hash = digest(&SHA256, format!("{handle}{driver}{node}").as_bytes());
    Some(hash.as_ref().iter().fold("csi-".to_owned(), |name, byte| format!("{name}{byte:02x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with Python's hashlib from `vol-0abc`, `ebs.csi.aws.com` and `ip-10-0-0-1.ec2.internal`.
    #[test]
    fn attachment_name_equals_that_of_kubernetes() {
        let name = attachment_name("kubernetes.io/csi/ebs.csi.aws.com^vol-0abc", "ip-10-0-0-1.ec2.internal");
        assert_eq!(name.as_deref(), Some("csi-d34f1e2932e3736c2023dc94be57bbbb636feeba00aeb091165af5a4bb9263b6"));
        assert_eq!(attachment_name("kubernetes.io/nfs/server:/share", "n"), None);
    }
}
