//! Objects of one kind: listed once, then watched without a gap, whatever happens to the
//! connection.
//!
//! A pod that tolerates the cordon and comes later is seen; so is one that goes while the watch is being renewed.

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

/// The API server ends a watch after this time; kube refuses 295 s and more.
const WATCH_SECONDS: u32 = 240;
/// A watch that lasted this long was well. One that ends sooner is renewed after a growing pause: a
/// busy API server ends watches whose reader does not keep up with a burst of changes.
const HEALTHY: Duration = Duration::from_secs(5);
/// The shortest pause after a watch that the API server ended too soon. A reader that still takes in what happened before
/// it began, while more than ten changes wait for it, is let go (apiserver, `watch_cache.go`, `suggestedWatchChannelSize`).
/// This happens when a full node's pods all go at once, for half a second. Renewed after 100 ms, a watch was ended again in 2
/// of 11 drains.
const AFTER_A_BURST: Duration = Duration::from_millis(300);
/// The API server begins its answer to a watch at once, or within the 3 s that it waits for its cache to
/// come up to date (apiserver, `watch_cache.go`). Shorter than [`HEALTHY`]: one that never begins was not well.
const BEGINS_WITHIN: Duration = Duration::from_secs(4);
const _: () = assert!(BEGINS_WITHIN.as_secs() < HEALTHY.as_secs());
/// More changes than a node has pods: a slow reader never loses one, the watch only waits.
const CHANGES_QUEUED: usize = 256;
/// The status of an API server that has too much to do.
const BUSY: u16 = 429;
/// How often a watch that such a one refuses, or begins too late, goes on from where it was. Then the objects are listed before it is tried again. In a storm
/// the lists are what keeps the API server busy: it may read all pods of the cluster for each.
const GOES_ON_TIMES: u32 = 5;

#[derive(Debug)]
pub(crate) enum WatchEvent<K> {
    Changed(Change<K>),
    /// The API server reports changes from here on: the watch begins, or goes on where it was.
    Begun,
    /// The API server cannot be watched for the moment, and why. The watch goes on trying.
    Interrupted(ApiError),
}

#[derive(Debug, Clone)]
pub(crate) struct Selection<K> {
    pub(crate) api: Api<K>,
    /// All, if there is none.
    pub(crate) field_selector: Option<String>,
}

/// The objects as they were listed, and where a watch goes on from there.
#[derive(Debug)]
pub(crate) struct Listed<K> {
    pub(crate) items: Vec<K>,
    pub(crate) resource_version: String,
}

/// Longer labels, and selectors of them, are let go: nobody writes so many, and an object may have 1.5 MB.
const LONGEST_LABELS: usize = 4 << 10;

pub(crate) trait Watched: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static {
    /// Lets go of what nobody looks at who watches.
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
    /// Lists the objects. Without a resource version, so that the answer is not a stale one.
    pub(crate) async fn list(&self) -> Result<Listed<K>, ApiError> {
        self.list_within(CALL_TIMEOUT).await
    }

    /// The same, given up when nothing comes for this long.
    pub(crate) async fn list_within(&self, patience: Duration) -> Result<Listed<K>, ApiError> {
        let params = ListParams { field_selector: self.field_selector.clone(), ..ListParams::default() };
        let request = Request::new(self.api.resource_url()).list(&params);
        let mut items = Vec::new();
        let client = self.api.clone().into_client();
        let list = list::each_within(patience, &client, request, |item: K| items.push(item.slim())).await?;
        Ok(Listed { items, resource_version: list.resource_version.unwrap_or_default() })
    }

    /// Watches from where a list ended; without one, from a list that it makes itself.
    pub(crate) fn watch(self, resource_version: Option<String>) -> Watch<K> {
        let (sender, events) = mpsc::channel(CHANGES_QUEUED);
        let watcher = Watcher { selection: self, resource_version, sender };
        let mut task = JoinSet::new();
        task.spawn(watcher.run());
        Watch { events, _task: task }
    }
}

/// A watch that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch<K> {
    events: mpsc::Receiver<WatchEvent<K>>,
    _task: JoinSet<()>,
}

impl<K> Watch<K> {
    /// The next event. Can be cancelled without losing one.
    pub(crate) async fn next(&mut self) -> WatchEvent<K> {
        self.events.recv().await.expect("the watcher runs as long as the watch")
    }
}

struct Watcher<K> {
    selection: Selection<K>,
    /// Where to go on from; `None` when that has to be found out.
    resource_version: Option<String>,
    sender: mpsc::Sender<WatchEvent<K>>,
}

enum WatchEnd {
    /// The API server's time limit; go on from the last version.
    Renew,
    /// The version is too old to go on from (410).
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
            let is_busy = |error: &ApiError| error.code() == Some(BUSY) || matches!(error, ApiError::Timeout(_));
            let is_refused = is_short && matches!(&end, WatchEnd::Failed(error) if is_busy(error));
            refused = if is_refused { refused + 1 } else { 0 };
            match end {
                WatchEnd::Renew => {}
                WatchEnd::Expired => self.resource_version = None,
                WatchEnd::Failed(error) => {
                    let goes_on = is_refused && refused <= GOES_ON_TIMES;
                    // What cannot be watched for now is looked at all the same, as often as it is tried.
                    if is_short && error.is_transient() && !goes_on {
                        self.resource_version = None;
                    }
                    self.send(WatchEvent::Interrupted(error)).await;
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Watches until the connection or the API server ends it.
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

    /// Nobody listens any more only while the watch is being dropped, and this task with it.
    async fn send(&self, event: WatchEvent<K>) {
        let _ = self.sender.send(event).await;
    }
}

/// How long to wait before a watch is renewed that lasted so long.
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

    /// What is asked first of an API server that refuses all so.
    async fn asked_first(code: u16, times: usize) -> Vec<&'static str> {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let answer = move |request: http::Request<Body>| {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
            log.lock().unwrap().push(if is_watch { "watch" } else { "list" });
            async move {
                let status =
                    json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "Busy", "code": code});
                let body = Body::from(status.to_string().into_bytes());
                Ok::<_, BoxError>(Response::builder().status(code).body(body)?)
            }
        };
        let client = kube::Client::new(service_fn(answer), "default");
        let selection = Selection::<Node> { api: Api::all(client), field_selector: None };
        let mut watch = selection.watch(Some("1".to_owned()));
        while asked.lock().unwrap().len() < times {
            watch.next().await;
        }
        asked.lock().unwrap()[..times].to_vec()
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_a_busy_api_server_refuses_goes_on_from_where_it_was_before_it_lists() {
        assert_eq!(asked_first(500, 2).await, ["watch", "list"]);
        assert_eq!(asked_first(429, 7).await, ["watch", "watch", "watch", "watch", "watch", "watch", "list"]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_may_not_watch_does_not_list_instead() {
        assert_eq!(asked_first(403, 3).await, ["watch", "watch", "watch"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_server_is_told_when_to_end_a_watch() {
        let begins = call("GET /api/v1/nodes").with("watch=true").with("timeoutSeconds=240").streams(&[]);
        let context = TestContext::new(&[], [begins], []);
        let selection = Selection::<Node> { api: Api::all(client(&context).await), field_selector: None };
        let begun = selection.watch(Some("7".to_owned())).next().await;
        assert!(matches!(begun, WatchEvent::Begun), "{begun:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn watch_that_begins_late_continues_without_a_list() {
        let late = || call("GET /api/v1/nodes").with("watch=true").with("resourceVersion=7");
        let goes_on = late().streams(&[]);
        let (context, began) = (TestContext::new(&[], [late(), goes_on], []), Instant::now());
        let selection = Selection::<Node> { api: Api::all(client(&context).await), field_selector: None };
        let mut watch = selection.watch(Some("7".to_owned()));
        let event = watch.next().await;
        assert!(matches!(event, WatchEvent::Interrupted(ApiError::Timeout(_))), "{event:?}");
        assert_eq!(began.elapsed().as_secs(), 4);
        assert!(matches!(watch.next().await, WatchEvent::Begun));
    }

    const SOON: Duration = Duration::from_millis(130);

    #[test]
    fn of_labels_and_selectors_only_those_that_nobody_writes_are_let_go() {
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
    fn a_watch_that_was_ended_in_a_burst_is_renewed_when_the_burst_is_over() {
        let mut backoff = Backoff::new();
        let pauses = [(); 4].map(|()| pause_after(&WatchEnd::Renew, SOON, &mut backoff).as_millis());
        assert_eq!(pauses, [300, 300, 400, 800]);
    }

    #[test]
    fn a_watch_that_lasted_or_that_lost_its_place_is_renewed_at_once() {
        let mut backoff = Backoff::new();
        let lost = pause_after(&WatchEnd::Expired, SOON, &mut backoff);
        pause_after(&WatchEnd::Renew, SOON, &mut backoff);
        assert_eq!(pause_after(&WatchEnd::Renew, Duration::from_millis(4_900), &mut backoff).as_millis(), 400);
        let lasted = pause_after(&WatchEnd::Renew, Duration::from_secs(5), &mut backoff);
        assert_eq!([lost, lasted], [Backoff::new().next_pause(); 2]);
    }
}
