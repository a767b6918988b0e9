//! The volumes that are attached to a node which is empty: waiting until they are detached.
//!
//! Nothing detaches a volume in order once its instance has gone: Kubernetes waits six minutes before it attaches it to
//! another node by force (kube-controller-manager, `maxWaitForUnmountDuration`), and the next pod waits as long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Api, Client, ResourceExt};
use spillway_core::drain::report::{DrainReport, StopReason};
use spillway_core::drain::volumes::{ClaimName, claims_in_use, is_awaited};
use spillway_core::kube::change::Change;
use spillway_retry::{Backoff, Transient as _};
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep, timeout_at};

use crate::kube::watch::{Selection, WatchEvent};
use crate::kube::{ApiError, call, list, until};

/// How many volumes are read at once.
const READ_AT_ONCE: usize = 10;
/// Attachments, by their names, and the names of their volumes.
type Attached = BTreeMap<String, String>;

/// What came of waiting until volumes are detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detached {
    pub(crate) waited: Duration,
    /// How many were attached still. `None`: the API server did not say.
    pub(crate) left: Option<usize>,
}

/// Waits until the volumes that are attached to the node are detached: not past `end`, and not when there is something to
/// `stop` it. `None`: there was none, or they cannot be waited for.
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
                tracing::warn!(node.name = node, "waited long enough: still attached to node {node} are {volumes}");
            }
            Some(Detached { waited: begin.elapsed(), left: Some(left.len()) })
        }
        Err(error) if error.is_transient() => {
            let error = chain(&error);
            tracing::warn!(
                node.name = node,
                error,
                "waited long enough to see whether the volumes of node {node} are detached"
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

/// Waits until none is attached that is awaited, or `end` has come; answers those that are. `None`: none was at first.
async fn until_none(
    client: &Client,
    node: &str,
    in_use: &BTreeSet<ClaimName>,
    end: Instant,
) -> Result<Option<Attached>, ApiError> {
    let api = Api::<VolumeAttachment>::all(client.clone());
    let (mut backoff, mut is_first_look) = (Backoff::new(), true);
    loop {
        let (mut left, version) = until(end, async || awaited(client, &api, node, in_use).await, broke).await?;
        if std::mem::take(&mut is_first_look) && left.is_empty() {
            return Ok(None);
        }
        let mut watch = Selection { api: api.clone(), field_selector: None }.watch(Some(version));
        while !left.is_empty() {
            match timeout_at(end, watch.next()).await {
                Err(_) => return Ok(Some(left)),
                Ok(WatchEvent::Changed(Change::Gone(gone))) => _ = left.remove(&gone.name_any()),
                Ok(WatchEvent::Changed(Change::OnlyThese(all))) => {
                    let there: BTreeSet<_> = all.iter().map(ResourceExt::name_any).collect();
                    left.retain(|name, _| there.contains(name));
                }
                Ok(WatchEvent::Changed(Change::Seen(_)) | WatchEvent::Begun) => {}
                Ok(WatchEvent::Interrupted(error)) if error.is_transient() => {
                    broke(&error);
                    break;
                }
                Ok(WatchEvent::Interrupted(error)) => return Err(error),
            }
        }
        if left.is_empty() || timeout_at(end, sleep(backoff.next_pause())).await.is_err() {
            return Ok(Some(left));
        }
    }
}

fn broke(error: &ApiError) {
    tracing::warn!(error = chain(error), "cannot look at VolumeAttachments; trying again");
}

/// What of the node's attachments is awaited, and from where a watch goes on.
async fn awaited(
    client: &Client,
    api: &Api<VolumeAttachment>,
    node: &str,
    in_use: &BTreeSet<ClaimName>,
) -> Result<(Attached, String), ApiError> {
    let (attached, version) = attached_to(client, api, node).await?;
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let read = stream::iter(attached).map(async |(name, volume)| {
        let read = call(volumes.get_opt(&volume)).await?;
        Ok::<_, ApiError>(read.is_some_and(|read| is_awaited(&read, in_use)).then_some((name, volume)))
    });
    let awaited = read.buffer_unordered(READ_AT_ONCE).try_collect::<Vec<_>>().await?;
    Ok((awaited.into_iter().flatten().collect(), version))
}

/// What is attached to the node. The API server cannot select attachments by that: all of the cluster's come by, and only the
/// node's are kept.
async fn attached_to(client: &Client, api: &Api<VolumeAttachment>, node: &str) -> Result<(Attached, String), ApiError> {
    let request = Request::new(api.resource_url()).list(&ListParams::default());
    let mut attached = Attached::new();
    let list = list::each(client, request, |one: VolumeAttachment| {
        if let (true, Some(name), Some(volume)) =
            (one.spec.node_name == node, one.metadata.name, one.spec.source.persistent_volume_name)
        {
            attached.insert(name, volume);
        }
    });
    let list = list.await?;
    Ok((attached, list.resource_version.unwrap_or_default()))
}
