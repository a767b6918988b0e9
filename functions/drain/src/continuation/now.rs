//! At once: an event on the bus that a rule of the template routes back to the function.

use std::cell::Cell;

use aws_sdk_eventbridge::Client;
use tokio::time::Instant;

use crate::aws::events::{self, MOST_BYTES, MOST_ENTRIES, PUT_EVENTS};
use crate::aws::{self, CallError};
use crate::notice::continued::{DETAIL_TYPE, History};

/// Puts an event of this stack for each history. Tried until `end`; what EventBridge has taken is not put again.
pub(crate) async fn hand_on(
    client: &Client,
    stack: &str,
    histories: &[History],
    end: Instant,
) -> Result<(), CallError> {
    let details = histories.iter().map(|history| events::detail(stack, history));
    for batch in batches(details.collect()) {
        let left = Cell::new(batch);
        aws::until(PUT_EVENTS, end, || events::put(client, DETAIL_TYPE, &left)).await?;
    }
    Ok(())
}

/// As many in each as one call takes.
fn batches(details: Vec<String>) -> Vec<Vec<String>> {
    let (mut batches, mut bytes): (Vec<Vec<String>>, _) = (Vec::new(), 0);
    for detail in details {
        bytes += detail.len();
        match batches.last_mut() {
            Some(batch) if batch.len() < MOST_ENTRIES && bytes <= MOST_BYTES => batch.push(detail),
            _ => {
                bytes = detail.len();
                batches.push(vec![detail]);
            }
        }
    }
    batches
}
