//! Parses lists as a stream, with only one object in memory at a time.
//!
//! An object may have 1.5 MB, so a whole list may not fit in the function's memory.

use std::io;
use std::time::Duration;

use futures_util::io::{AsyncBufRead as _, AsyncBufReadExt as _};
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{ApiError, CALL_TIMEOUT, call_within};

/// Requests a list and passes each object to `see`. Returns the list's metadata. Fails if no data comes for [`CALL_TIMEOUT`].
pub async fn each<K: DeserializeOwned>(
    client: &Client,
    request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    see: impl FnMut(K),
) -> Result<ListMeta, ApiError> {
    each_within(CALL_TIMEOUT, client, request, see).await
}

/// Works as [`each`], but waits at most `patience` for the next data.
pub(super) async fn each_within<K: DeserializeOwned>(
    patience: Duration,
    client: &Client,
    request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    mut see: impl FnMut(K),
) -> Result<ListMeta, ApiError> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    let body = call_within(patience, client.request_stream(request)).await?;
    let mut body = std::pin::pin!(body);
    let mut splitter = Splitter::default();
    loop {
        let came = timeout(patience, body.fill_buf()).await.map_err(|_| ApiError::Timeout(patience))?;
        let chunk = came.map_err(|error: io::Error| ApiError::NoAnswer(Box::new(error)))?;
        if chunk.is_empty() {
            break;
        }
        let read = splitter.take(chunk, |item| serde_json::from_slice(item).map(&mut see));
        read.map_err(|error| ApiError::NoAnswer(Box::new(error)))?;
        let length = chunk.len();
        body.as_mut().consume(length);
    }
    let list = serde_json::from_slice::<ListHead>(&splitter.envelope);
    list.map(|list| list.metadata).map_err(|error| ApiError::NoAnswer(Box::new(error)))
}

#[derive(Deserialize)]
struct ListHead {
    metadata: ListMeta,
}

/// Splits the JSON of a list into its items and the rest, chunk by chunk. Assumes that `items` is the only top-level array.
#[derive(Debug, Default)]
struct Splitter {
    /// Number of open JSON objects and arrays.
    depth: usize,
    in_items: bool,
    in_string: bool,
    after_backslash: bool,
    envelope: Vec<u8>,
    /// Bytes of an item that is not yet complete.
    item: Vec<u8>,
}

/// Nesting depth inside the array `items`, between two of its objects.
const BETWEEN: usize = 2;

impl Splitter {
    fn take<E>(&mut self, chunk: &[u8], mut see: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        // Start of the bytes to keep.
        let mut from = 0;
        for (at, byte) in chunk.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.after_backslash => self.after_backslash = false,
                    b'\\' => self.after_backslash = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'[' | b'{' => {
                    self.depth += 1;
                    if self.depth == BETWEEN && *byte == b'[' {
                        self.in_items = true;
                        self.envelope.extend_from_slice(&chunk[from..=at]);
                    } else if self.in_items && self.depth == BETWEEN + 1 {
                        from = at;
                    }
                }
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.in_items && self.depth == BETWEEN {
                        self.item.extend_from_slice(&chunk[from..=at]);
                        see(&self.item)?;
                        self.item.clear();
                    } else if self.in_items && self.depth < BETWEEN {
                        self.in_items = false;
                        from = at;
                    }
                }
                _ => {}
            }
        }
        match (self.in_items, self.depth) {
            (false, _) => self.envelope.extend_from_slice(&chunk[from..]),
            (true, BETWEEN) => {}
            (true, _) => self.item.extend_from_slice(&chunk[from..]),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Items and envelope of a list that comes in pieces of this length.
    fn split(list: &Value, piece: usize) -> (Vec<Value>, Value) {
        let (mut splitter, mut items) = (Splitter::default(), Vec::new());
        for chunk in list.to_string().as_bytes().chunks(piece) {
            splitter.take(chunk, |item| serde_json::from_slice(item).map(|item| items.push(item))).unwrap();
        }
        (items, serde_json::from_slice(&splitter.envelope).unwrap())
    }

    #[test]
    fn list_is_split_at_any_chunk_length() {
        let items = [
            json!({"metadata": {"name": "a", "annotations": {"odd": "\\\"}],[{\\"}}, "spec": {"containers": [{"a": [{}]}]}}),
            json!({}),
            json!({"metadata": {"name": "\\"}}),
        ];
        let list =
            |items: &Value| json!({"kind": "PodList", "items": items, "metadata": {"continue": "[{", "a": {"b": []}}});
        for piece in 1..80 {
            assert_eq!(split(&list(&json!(items)), piece), (items.to_vec(), list(&json!([]))), "{piece}");
        }
        assert_eq!(split(&list(&json!(null)), 7).0, Vec::<Value>::new());
    }

    proptest! {
        #[test]
        fn items_with_any_text_come_whole(text in "[\\PC\"\\\\{}\\[\\],:]{0,40}", count in 0..4_usize, piece in 1..30_usize) {
            let items = vec![json!({"text": text, "in": [{"it": text}]}); count];
            let list = json!({"items": items, "metadata": {"continue": text}});
            let around = json!({"items": [], "metadata": {"continue": text}});
            prop_assert_eq!(split(&list, piece), (items, around));
        }
    }
}
