//! Reads long lists from the API server page by page.

use std::marker::PhantomData;
use std::time::Duration;

use kube::api::ListParams;
use kube::core::Request;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use spillway_drainer::kube::{ApiError, list, until};
use spillway_startup::logs::chain;
use tokio::time::Instant;

/// Maximum number of objects on a page. A page of pods has about 2 MB.
const PAGE: u32 = 250;
/// Time after which a failing page is no longer retried.
const RETRY_PERIOD: Duration = Duration::from_secs(60);

/// Paged list of objects, parsed as `K`.
pub(super) struct Pages<'a, K> {
    client: &'a Client,
    request: Request,
    /// Parameters of the next request; `None` after the last page.
    next: Option<ListParams>,
    end: Instant,
    object: PhantomData<K>,
}

impl<'a, K: DeserializeOwned> Pages<'a, K> {
    /// Prepares a list of the objects of kind `R` that match `selection`. The list covers all namespaces.
    pub(super) fn of<R: Resource<DynamicType = ()>>(client: &'a Client, selection: ListParams, end: Instant) -> Self {
        let request = Request::new(R::url_path(&(), None));
        Self { client, request, next: Some(selection.limit(PAGE)), end, object: PhantomData }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Vec<K>>, ApiError> {
        let Some(page) = self.next.take() else { return Ok(None) };
        let retrying = |error: &ApiError| tracing::warn!(error = chain(error), "cannot list a page; trying again");
        let read = async || {
            let mut objects = Vec::new();
            match list::each(self.client, self.request.list(&page), |object| objects.push(object)).await {
                // The version of the list has been compacted: a retry cannot succeed.
                Err(error) if error.code() == Some(410) => Ok(Err(error)),
                listed => listed.map(|list| Ok((objects, list.continue_))),
            }
        };
        let (objects, token) = until(self.end.min(Instant::now() + RETRY_PERIOD), read, retrying).await??;
        self.next = token.filter(|token| !token.is_empty()).map(|token| page.continue_token(&token));
        Ok(Some(objects))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use spillway_core::cluster::ClusterName;
    use spillway_core::kube::pod::Pod;
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::{TestContext, status};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failed_page_is_read_again() {
        let page = |names: &[&str], token: Value| {
            let pods: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
            json!({"kind": "PodList", "items": pods, "metadata": {"continue": token}})
        };
        let pods = || call("GET /api/v1/pods").with("limit=250").with("fieldSelector=spec.nodeName");
        let api = [
            pods().without("continue").says(200, page(&["a", "b"], json!("more"))),
            pods().with("continue=more").says(500, status(500, "InternalError", "pods")),
            pods().with("continue=more").says(200, page(&["c"], json!(""))),
        ];
        let context = TestContext::new(&[], api, []);
        let end = Instant::now() + Duration::from_secs(60);
        let connection = context.access.connect(&ClusterName::new("prod"), end).await.unwrap();
        let selection = ListParams::default().fields("spec.nodeName!=");
        let mut pages = Pages::<Pod>::of::<Pod>(&connection.client, selection, end);
        let mut names = Vec::new();
        while let Some(page) = pages.next().await.unwrap() {
            names.push(page.into_iter().filter_map(|pod| pod.metadata.name).collect::<Vec<_>>().join(" "));
        }
        assert_eq!(names, ["a b", "c"]);
    }
}
