//! Waits for a state of the cluster, by list and watch.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error::BedError;

/// Selected objects by `namespace/name` (`/name` without a namespace).
pub type Objects<K> = BTreeMap<String, K>;

/// Waits until `found` returns an answer. The last error of `found` is the observation in the error after `limit`.
pub async fn until<K, T>(
    api: &Api<K>,
    selector: &WatchParams,
    what: &str,
    limit: Duration,
    mut found: impl FnMut(&Objects<K>) -> Result<T, String>,
) -> Result<T, BedError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut last = "nothing".to_owned();
    let waited = timeout(limit, async {
        loop {
            if let Some(answer) = list_and_watch(api, selector, &mut found, &mut last).await? {
                return Ok::<T, kube::Error>(answer);
            }
        }
    });
    match waited.await {
        Ok(answer) => answer.map_err(BedError::kubernetes(format!("watch for {what}"))),
        Err(_) => Err(BedError::Waited { what: what.to_owned(), waited_s: limit.as_secs(), last }),
    }
}

/// A list and the watch after it. `None` if the watch ends first, as every watch does at times.
async fn list_and_watch<K, T>(
    api: &Api<K>,
    selector: &WatchParams,
    found: &mut impl FnMut(&Objects<K>) -> Result<T, String>,
    last: &mut String,
) -> kube::Result<Option<T>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let selection = ListParams {
        label_selector: selector.label_selector.clone(),
        field_selector: selector.field_selector.clone(),
        ..ListParams::default()
    };
    let listed = api.list(&selection).await?;
    let version = listed.metadata.resource_version.unwrap_or_default();
    let mut objects: Objects<K> = listed.items.into_iter().map(|object| (key(&object), object)).collect();
    let events = api.watch(selector, &version).await?;
    let mut events = std::pin::pin!(events);
    loop {
        match found(&objects) {
            Ok(answer) => return Ok(Some(answer)),
            Err(observation) => *last = observation,
        }
        match events.try_next().await? {
            Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                objects.insert(key(&object), object);
            }
            Some(WatchEvent::Deleted(object)) => {
                objects.remove(&key(&object));
            }
            Some(WatchEvent::Bookmark(_)) => {}
            Some(WatchEvent::Error(_)) | None => return Ok(None),
        }
    }
}

fn key(object: &impl Resource) -> String {
    format!("{}/{}", object.meta().namespace.as_deref().unwrap_or_default(), object.name_any())
}
