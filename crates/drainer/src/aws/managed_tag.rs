//! Restricts Spillway to instances that have the tag from the setting `ManagedTag`.

use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::types::Filter;
use spillway_core::instance::Instance;
use spillway_settings::ManagedTag;
use tokio::time::Instant;

use crate::aws::{self, CallError};

const DESCRIBE: &str = "autoscaling:DescribeTags";

/// Returns `true` if the instance or its Auto Scaling group has this `tag`.
pub(crate) async fn is_managed(
    autoscaling: &Client,
    instance: &Instance,
    tag: &ManagedTag,
    end: Instant,
) -> Result<bool, CallError> {
    if instance.tags.get(&tag.key).is_some_and(|value| tag.allows(value)) {
        return Ok(true);
    }
    match instance.group() {
        Some(group) => aws::until(DESCRIBE, end, || group_has(autoscaling, group, tag)).await,
        None => Ok(false),
    }
}

async fn group_has(autoscaling: &Client, group: &str, tag: &ManagedTag) -> Result<bool, CallError> {
    let filter = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
    let described = autoscaling
        .describe_tags()
        .filters(filter("auto-scaling-group", group))
        .filters(filter("key", &tag.key))
        .send()
        .await
        .map_err(|error| CallError::new(DESCRIBE, error))?;
    Ok(described.tags().iter().any(|found| tag.allows(found.value().unwrap_or_default())))
}
