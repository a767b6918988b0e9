//! The pods of one node: listed once, then watched without a gap, whatever happens to the
//! connection.
//!
//! A pod that was bound to the node between the list and the cordon, or that tolerates the
//! cordon and comes later, is seen; so is one that goes while the watch is being renewed.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::plan::PodUid;
use crate::backoff::Backoff;
use crate::kubernetes::{ApiError, call};

/// The API server ends a watch after this time; kube refuses 295 s and more.
const WATCH_SECONDS: u32 = 240;
/// A watch that lasted this long was well. One that ends sooner is renewed after a growing pause: a
/// busy API server ends watches whose reader does not keep up with a burst of changes.
const HEALTHY: Duration = Duration::from_secs(5);
/// More changes than a node has pods: a slow reader never loses one, the watch only waits.
const CHANGES_QUEUED: usize = 256;

/// What happened to the node's pods.
#[derive(Debug)]
pub(crate) enum Change {
    /// A pod is there, new or changed.
    Seen(Box<Pod>),
    /// A pod has gone.
    Gone(PodUid),
    /// These pods are there, and no others: the watch had lost its place.
    OnlyThese(Vec<Pod>),
    /// The API server cannot be watched for the moment, and why. The watch goes on trying.
    Interrupted(ApiError),
}

/// The pods as they were listed, and where a watch goes on from there.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) pods: Vec<Pod>,
    pub(crate) resource_version: String,
}

/// Lists the node's pods. Without a resource version, so that the answer is not a stale one.
pub(crate) async fn list(client: &Client, node: &str) -> Result<Listed, ApiError> {
    let pods: Api<Pod> = Api::all(client.clone());
    let answer = call(pods.list(&ListParams::default().fields(&on_node(node)))).await?;
    Ok(Listed { pods: answer.items, resource_version: answer.metadata.resource_version.unwrap_or_default() })
}

fn on_node(node: &str) -> String {
    format!("spec.nodeName={node}")
}

/// A watch that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    changes: mpsc::Receiver<Change>,
    _task: JoinSet<()>,
}

impl Watch {
    /// Watches from where a list ended.
    pub(crate) fn start(client: Client, node: &str, resource_version: String) -> Self {
        let (sender, changes) = mpsc::channel(CHANGES_QUEUED);
        let watcher = Watcher { client, node: node.to_owned(), resource_version, sender };
        let mut task = JoinSet::new();
        task.spawn(watcher.run());
        Self { changes, _task: task }
    }

    /// The next change. Can be cancelled without losing one.
    pub(crate) async fn next(&mut self) -> Change {
        self.changes.recv().await.expect("the watcher runs as long as the watch")
    }
}

struct Watcher {
    client: Client,
    node: String,
    resource_version: String,
    sender: mpsc::Sender<Change>,
}

/// Why a watch came to its end.
enum End {
    /// The API server's time limit; go on from the last version.
    Renew,
    /// The version is too old to go on from (410).
    Expired,
    Failed(ApiError),
}

impl Watcher {
    async fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let begun = Instant::now();
            let end = self.watch().await;
            if begun.elapsed() >= HEALTHY {
                backoff = Backoff::new();
            }
            let failure = match end {
                End::Renew => None,
                End::Expired => self.list_anew().await.err(),
                End::Failed(error) => Some(error),
            };
            if let Some(error) = failure {
                self.send(Change::Interrupted(error)).await;
            }
            tokio::time::sleep(backoff.next_pause()).await;
        }
    }

    /// Watches until the connection or the API server ends it.
    async fn watch(&mut self) -> End {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let params = WatchParams::default().fields(&on_node(&self.node)).timeout(WATCH_SECONDS);
        let stream = match call(pods.watch(&params, &self.resource_version)).await {
            Ok(stream) => stream,
            Err(error) => return end_of(error),
        };
        let mut stream = std::pin::pin!(stream);
        loop {
            match stream.try_next().await {
                Ok(Some(event)) => {
                    if let Some(end) = self.take(event).await {
                        return end;
                    }
                }
                Ok(None) => return End::Renew,
                Err(error) => return end_of(error.into()),
            }
        }
    }

    async fn take(&mut self, event: WatchEvent<Pod>) -> Option<End> {
        let change = match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                self.resource_version = pod.metadata.resource_version.clone()?;
                Change::Seen(Box::new(pod))
            }
            WatchEvent::Deleted(pod) => {
                self.resource_version = pod.metadata.resource_version.clone()?;
                Change::Gone(PodUid(pod.metadata.uid?))
            }
            WatchEvent::Bookmark(bookmark) => {
                self.resource_version = bookmark.metadata.resource_version;
                return None;
            }
            WatchEvent::Error(status) => return Some(end_of(ApiError::Refused(status))),
        };
        self.send(change).await;
        None
    }

    async fn list_anew(&mut self) -> Result<(), ApiError> {
        let listed = list(&self.client, &self.node).await?;
        self.resource_version = listed.resource_version;
        self.send(Change::OnlyThese(listed.pods)).await;
        Ok(())
    }

    /// Nobody listens any more only while the watch is being dropped, and this task with it.
    async fn send(&self, change: Change) {
        let _ = self.sender.send(change).await;
    }
}

fn end_of(error: ApiError) -> End {
    if error.code() == Some(410) { End::Expired } else { End::Failed(error) }
}
