//! Lists objects of one kind once, then watches them. Resumes broken watches without missing a change.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{ListParams, WatchEvent as ServerEvent, WatchParams};
use kube::core::Request;
use kube::{Api, Resource};
use spillway_core::kube::budget::DisruptionBudget;
use spillway_core::kube::change::Change;
use spillway_core::kube::pod::Pod;
use spillway_retry::{Backoff, Transient as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::kube::{ApiError, CALL_TIMEOUT, list};

/// Requested duration of a watch. kube refuses 295 s and more.
const WATCH_SECONDS: u32 = 240;
/// Minimum duration of a healthy watch. After a shorter watch, the pause before the next watch grows.
const HEALTHY: Duration = Duration::from_secs(5);
/// Minimum pause after a watch that the API server ended within [`HEALTHY`]. The API server ends a new watch during a burst of
/// changes, for example while all pods of a full node leave (apiserver, `watch_cache.go`, `suggestedWatchChannelSize`). A pause
/// of 100 ms was too short in 2 of 11 drains.
const AFTER_A_BURST: Duration = Duration::from_millis(300);
/// Timeout for the start of a watch. Longer than the API server's wait of 3 s for its cache (apiserver, `watch_cache.go`).
/// Shorter than [`HEALTHY`], so a watch that never starts is unhealthy.
const BEGINS_WITHIN: Duration = Duration::from_secs(4);
const _: () = assert!(BEGINS_WITHIN.as_secs() < HEALTHY.as_secs());
/// Capacity of the event queue, larger than the number of pods on a node. While the queue is full, the watch waits.
const CHANGES_QUEUED: usize = 256;
const TOO_MANY_REQUESTS: u16 = 429;
/// Maximum number of attempts to resume a watch while the API server is busy. After the last attempt, the objects are listed.
const MAX_RESUMES_WHILE_BUSY: u32 = 5;

#[derive(Debug)]
pub(crate) enum WatchEvent<K> {
    Changed(Change<K>),
    Begun,
    /// The watch broke and is being restarted.
    Interrupted(ApiError),
}

#[derive(Debug, Clone)]
pub(crate) struct Selection<K> {
    pub(crate) api: Api<K>,
    /// `None` selects all objects.
    pub(crate) field_selector: Option<String>,
}

/// Listed objects, and the resource version from which a watch continues.
#[derive(Debug)]
pub(crate) struct Listed<K> {
    pub(crate) items: Vec<K>,
    pub(crate) resource_version: String,
}

/// Maximum size of an object's labels or selector in bytes. Larger labels or selectors are dropped to save memory.
const LONGEST_LABELS: usize = 4 << 10;

pub(crate) trait Watched: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static {
    /// Drops oversized or unused fields to save memory.
    fn slim(self) -> Self {
        self
    }
}

impl Watched for Node {}

impl Watched for VolumeAttachment {}

impl Watched for Pod {
    fn slim(mut self) -> Self {
        let length = |labels: &BTreeMap<String, String>| {
            labels.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
        };
        self.metadata.labels = self.metadata.labels.filter(|labels| length(labels) <= LONGEST_LABELS);
        self
    }
}

impl Watched for DisruptionBudget {
    fn slim(mut self) -> Self {
        self.metadata.labels = None;
        let length = |selector: &LabelSelector| serde_json::to_vec(selector).map_or(usize::MAX, |json| json.len());
        self.spec.selector = self.spec.selector.filter(|selector| length(selector) <= LONGEST_LABELS);
        self
    }
}

impl<K: Watched> Selection<K> {
    /// Lists the objects with a consistent read.
    pub(crate) async fn list(&self) -> Result<Listed<K>, ApiError> {
        self.list_within(CALL_TIMEOUT).await
    }

    /// Lists the objects as [`Self::list`] does, but waits at most `patience` for the next data.
    pub(crate) async fn list_within(&self, patience: Duration) -> Result<Listed<K>, ApiError> {
        let params = ListParams { field_selector: self.field_selector.clone(), ..ListParams::default() };
        let request = Request::new(self.api.resource_url()).list(&params);
        let mut items = Vec::new();
        let client = self.api.clone().into_client();
        let list = list::each_within(patience, &client, request, |item: K| items.push(item.slim())).await?;
        Ok(Listed { items, resource_version: list.resource_version.unwrap_or_default() })
    }

    /// Watches the objects from `resource_version`. If `None`, lists the objects first.
    pub(crate) fn watch(self, resource_version: Option<String>) -> Watch<K> {
        let (sender, events) = mpsc::channel(CHANGES_QUEUED);
        let watcher = Watcher { selection: self, resource_version, sender };
        let mut task = JoinSet::new();
        task.spawn(watcher.run());
        Watch { events, _task: task }
    }
}

/// Running watch. The watch ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Watch<K> {
    events: mpsc::Receiver<WatchEvent<K>>,
    _task: JoinSet<()>,
}

impl<K> Watch<K> {
    /// Returns the next event. Cancel safe.
    pub(crate) async fn next(&mut self) -> WatchEvent<K> {
        self.events.recv().await.expect("the watcher runs as long as the watch")
    }
}

struct Watcher<K> {
    selection: Selection<K>,
    /// Resource version from which the watch continues. `None` if the objects have to be listed first.
    resource_version: Option<String>,
    sender: mpsc::Sender<WatchEvent<K>>,
}

enum WatchEnd {
    /// The API server ended the watch, usually after [`WATCH_SECONDS`].
    Renew,
    /// The resource version is too old (410).
    Expired,
    Failed(ApiError),
}

impl<K: Watched> Watcher<K> {
    async fn run(mut self) {
        let (mut backoff, mut refused) = (Backoff::new(), 0);
        loop {
            let begun = Instant::now();
            let end = self.watch().await;
            let lasted = begun.elapsed();
            let pause = pause_after(&end, lasted, &mut backoff);
            let is_short = lasted < HEALTHY;
            let is_busy =
                |error: &ApiError| error.code() == Some(TOO_MANY_REQUESTS) || matches!(error, ApiError::Timeout(_));
            let is_refused = is_short && matches!(&end, WatchEnd::Failed(error) if is_busy(error));
            refused = if is_refused { refused + 1 } else { 0 };
            match end {
                WatchEnd::Renew => {}
                WatchEnd::Expired => self.resource_version = None,
                WatchEnd::Failed(error) => {
                    let is_resumed = is_refused && refused <= MAX_RESUMES_WHILE_BUSY;
                    // Lists the objects instead of resuming the watch.
                    if is_short && error.is_transient() && !is_resumed {
                        self.resource_version = None;
                    }
                    self.send(WatchEvent::Interrupted(error)).await;
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Watches until the connection breaks or the API server ends the watch.
    async fn watch(&mut self) -> WatchEnd {
        let resource_version = match &self.resource_version {
            Some(version) => version.clone(),
            None => match self.list().await {
                Ok(version) => version,
                Err(error) => return WatchEnd::Failed(error),
            },
        };
        let Selection { api, field_selector } = self.selection.clone();
        let params = WatchParams { field_selector, timeout: Some(WATCH_SECONDS), ..WatchParams::default() };
        let stream = match timeout(BEGINS_WITHIN, api.watch(&params, &resource_version)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return end_of(error.into()),
            Err(_) => return WatchEnd::Failed(ApiError::Timeout(BEGINS_WITHIN)),
        };
        self.send(WatchEvent::Begun).await;
        let mut stream = std::pin::pin!(stream);
        loop {
            match stream.try_next().await {
                Ok(Some(event)) => {
                    if let Some(end) = self.take(event).await {
                        return end;
                    }
                }
                Ok(None) => return WatchEnd::Renew,
                Err(error) => return end_of(error.into()),
            }
        }
    }

    async fn take(&mut self, event: ServerEvent<K>) -> Option<WatchEnd> {
        let change = match event {
            ServerEvent::Added(object) | ServerEvent::Modified(object) => {
                self.resource_version = Some(object.meta().resource_version.clone()?);
                Change::Applied(Box::new(object.slim()))
            }
            ServerEvent::Deleted(object) => {
                self.resource_version = Some(object.meta().resource_version.clone()?);
                Change::Deleted(Box::new(object.slim()))
            }
            ServerEvent::Bookmark(bookmark) => {
                self.resource_version = Some(bookmark.metadata.resource_version);
                return None;
            }
            ServerEvent::Error(status) => return Some(end_of(ApiError::Refused(status))),
        };
        self.send(WatchEvent::Changed(change)).await;
        None
    }

    async fn list(&mut self) -> Result<String, ApiError> {
        let Listed { items, resource_version } = self.selection.list().await?;
        self.resource_version = Some(resource_version.clone());
        self.send(WatchEvent::Changed(Change::Listed(items))).await;
        Ok(resource_version)
    }

    /// Sends an event. A closed channel is ignored, because the [`Watch`] is being dropped.
    async fn send(&self, event: WatchEvent<K>) {
        let _ = self.sender.send(event).await;
    }
}

/// Returns the pause between the end of a watch and the next watch.
fn pause_after(end: &WatchEnd, lasted: Duration, backoff: &mut Backoff) -> Duration {
    if lasted >= HEALTHY {
        *backoff = Backoff::new();
        return backoff.next_pause();
    }
    let pause = backoff.next_pause();
    match end {
        WatchEnd::Renew => pause.max(AFTER_A_BURST),
        WatchEnd::Expired | WatchEnd::Failed(_) => pause,
    }
}

fn end_of(error: ApiError) -> WatchEnd {
    if error.code() == Some(410) { WatchEnd::Expired } else { WatchEnd::Failed(error) }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Response;
    use kube::client::Body;
    use serde_json::json;
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::test_support::context::{TestContext, client};
    use crate::test_support::script::call;

    /// First requests to an API server that answers each request by its number with a code.
    async fn first_requests(code: fn(usize) -> u16, times: usize) -> Vec<&'static str> {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let answer = move |request: http::Request<Body>| {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
            let mut log = log.lock().unwrap();
            let code = code(log.len());
            log.push(if is_watch { "watch" } else { "list" });
            async move {
                let status =
                    json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "Busy", "code": code});
                let body = if code == 200 { Body::empty() } else { Body::from(status.to_string().into_bytes()) };
                Ok::<_, BoxError>(Response::builder().status(code).body(body)?)
            }
        };
        let client = kube::Client::new(service_fn(answer), "default");
        let selection = Selection::<Node> { api: Api::all(client), field_selector: None };
        let mut watch = selection.watch(Some("1".to_owned()));
        while requests.lock().unwrap().len() < times {
            watch.next().await;
        }
        requests.lock().unwrap()[..times].to_vec()
    }

    #[tokio::test(start_paused = true)]
    async fn refused_watch_lists_at_once_or_after_five_resumes() {
        assert_eq!(first_requests(|_| 500, 2).await, ["watch", "list"]);
        assert_eq!(first_requests(|_| 429, 7).await, ["watch", "watch", "watch", "watch", "watch", "watch", "list"]);
        assert_eq!(first_requests(|number| if number == 3 { 200 } else { 429 }, 9).await, ["watch"; 9]);
        assert_eq!(first_requests(|_| 403, 3).await, ["watch", "watch", "watch"], "403 is not transient");
    }

    #[tokio::test(start_paused = true)]
    async fn watch_that_begins_late_continues_without_a_list() {
        let watch =
            || call("GET /api/v1/nodes").with("watch=true").with("resourceVersion=7").with("timeoutSeconds=240");
        let (context, began) = (TestContext::new(&[], [watch(), watch().streams(&[])], []), Instant::now());
        let selection = Selection::<Node> { api: Api::all(client(&context).await), field_selector: None };
        let mut watch = selection.watch(Some("7".to_owned()));
        let event = watch.next().await;
        assert!(matches!(event, WatchEvent::Interrupted(ApiError::Timeout(_))), "{event:?}");
        assert_eq!(began.elapsed().as_secs(), 4);
        assert!(matches!(watch.next().await, WatchEvent::Begun));
    }

    const SOON: Duration = Duration::from_millis(130);

    #[test]
    fn oversized_labels_and_selectors_are_dropped() {
        for (length, is_kept) in [(63, true), (3_700, true), (3_800, false), (100_000, false)] {
            let labels = json!({"k".repeat(317): "x".repeat(length)});
            let pod: Pod = serde_json::from_value(json!({"metadata": {"labels": labels}})).unwrap();
            assert_eq!(pod.slim().metadata.labels.is_some(), is_kept, "{length}");
            let budget = json!({"metadata": {}, "spec": {"selector": {"matchLabels": labels}}});
            let budget: DisruptionBudget = serde_json::from_value(budget).unwrap();
            assert_eq!(budget.slim().spec.selector.is_some(), is_kept, "{length}");
        }
    }

    #[test]
    fn watch_is_renewed_at_once_or_300_ms_after_a_burst() {
        let mut backoff = Backoff::new();
        let pauses = [(); 4].map(|()| pause_after(&WatchEnd::Renew, SOON, &mut backoff).as_millis());
        assert_eq!(pauses, [300, 300, 400, 800]);
        let mut backoff = Backoff::new();
        let expired = pause_after(&WatchEnd::Expired, SOON, &mut backoff);
        pause_after(&WatchEnd::Renew, SOON, &mut backoff);
        assert_eq!(pause_after(&WatchEnd::Renew, Duration::from_millis(4_900), &mut backoff).as_millis(), 400);
        let healthy = pause_after(&WatchEnd::Renew, Duration::from_secs(5), &mut backoff);
        assert_eq!([expired, healthy], [Backoff::new().next_pause(); 2]);
    }
}
