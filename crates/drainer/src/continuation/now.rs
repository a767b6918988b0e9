//! At once: the function invokes itself.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use spillway_notice::continued::{self, History};
use spillway_notice::payload;
use tokio::time::Instant;

use crate::aws::itself::{INVOKE, Itself};
use crate::aws::{self, CallError};

/// Of a notice of many instances so many at a time: hundreds are on their way within a second.
const AT_ONCE: usize = 10;

/// Has an invocation begin for each history. Tried until `end`.
pub(crate) async fn invoke_next(itself: &Itself, histories: &[History], end: Instant) -> Result<(), CallError> {
    let each = stream::iter(histories).map(|history| async move {
        let payload = payload(continued::KEY, history);
        aws::until(INVOKE, end, || itself.invoke(&payload)).await
    });
    each.buffer_unordered(AT_ONCE).try_collect().await
}
