//! Lists of any length, a page at a time: of each page only what is needed is kept.

use spillway_startup::logs::chain;
use std::time::Duration;

use kube::api::{ListParams, ObjectList};
use tokio::time::Instant;

use crate::kube::{ApiError, call, until};

/// How many objects come in one request. A pod is some 5 to 10 KB, and an answer is in memory twice: 5 MB, whatever
/// the size of the cluster.
const PAGE: u32 = 250;
/// For how long one page is asked for: the API server takes a second or two for one when it is busy.
const ASKED_FOR: Duration = Duration::from_secs(60);

/// Hands on one object after the other, until there are no more.
pub(super) async fn each<K: Clone>(
    list: impl AsyncFn(&ListParams) -> kube::Result<ObjectList<K>>,
    selection: ListParams,
    end: Instant,
    mut see: impl FnMut(K),
) -> Result<(), ApiError> {
    let mut page = selection.limit(PAGE);
    loop {
        let tell = |error: &ApiError| tracing::warn!(error = chain(&error), "cannot list a page; trying again");
        let end = end.min(Instant::now() + ASKED_FOR);
        let answer = until(end, async || call(list(&page)).await, tell).await?;
        answer.items.into_iter().for_each(&mut see);
        match answer.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}
