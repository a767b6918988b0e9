//! Lists of any length, a page at a time: of each object only what is needed is kept.

use spillway_startup::logs::chain;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::kube::{ApiError, list, until};

/// How many objects come in one request: of pods some 2 MB as a rule.
const PAGE: u32 = 250;
/// For how long one page is asked for: the API server takes a second or two for one when it is busy.
const ASKED_FOR: Duration = Duration::from_secs(60);

/// Hands on what is kept of one object after the other, until there are no more. A page that fails half way is seen once.
pub(super) async fn each<K: DeserializeOwned, T>(
    client: &Client,
    list: impl Fn(&ListParams) -> Result<Request<Vec<u8>>, kube::core::request::Error>,
    (selection, end): (ListParams, Instant),
    keep: impl Fn(K) -> T,
    mut see: impl FnMut(T),
) -> Result<(), ApiError> {
    let mut page = selection.limit(PAGE);
    loop {
        let tell = |error: &ApiError| tracing::warn!(error = chain(&error), "cannot list a page; trying again");
        let end = end.min(Instant::now() + ASKED_FOR);
        let ask = async || {
            let mut kept = Vec::new();
            let answer = list::each(client, list(&page), |object| kept.push(keep(object))).await?;
            Ok((kept, answer))
        };
        let (kept, answer) = until(end, ask, tell).await?;
        kept.into_iter().for_each(&mut see);
        match answer.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}
