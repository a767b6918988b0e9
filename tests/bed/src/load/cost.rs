//! What one drain costs: requests, bytes, memory.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::audit::{AuditLog, Request};
use crate::error::BedError;
use crate::lambda::{Lambda, LambdaOptions};
use crate::measure::{fill, proxy, spot_notice};
use crate::nodes::NodeOptions;
use crate::pods::{self, PodShape};
use crate::world::World;

/// The API server writes a request down when it has answered it.
const WRITTEN_DOWN: Duration = Duration::from_secs(10);

/// What a function that is cold asked the API server and carried, and the memory it needed.
#[derive(Debug)]
pub struct Cost {
    /// How often each request was made, such as `list nodes` or `create pods/eviction`.
    pub requests: BTreeMap<String, usize>,
    /// Through the connection to the API server, both ways, as TLS has them.
    pub bytes: u64,
    /// In bytes.
    pub peak_memory: u64,
    /// From the event to the answer.
    pub took: Duration,
}

impl Cost {
    /// How often a request was made.
    #[must_use]
    pub fn count(&self, request: &str) -> usize {
        self.requests.get(request).copied().unwrap_or(0)
    }

    /// All requests.
    #[must_use]
    pub fn all(&self) -> usize {
        self.requests.values().sum()
    }
}

/// Drains a new node of so many pods, by a function of its own.
pub(super) async fn of_drain(world: &World, name: &str, node: NodeOptions, count: usize) -> Result<Cost, BedError> {
    let client = world.admin();
    pods::create_namespace(&client, name).await?;
    let node = world.add_node(node).await?;
    fill(&client, name, &node.name, "pod", count, &PodShape::default()).await?;
    let lambda =
        Lambda::start(world, LambdaOptions { function_name: name.to_owned(), ..LambdaOptions::default() }).await?;
    let proxy = proxy(world)?;
    let aws = world.aws_side();
    aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&proxy.url()), None).await?;
    let mut audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/spillway-drain/{name}"));

    let outcome = lambda.invoke(spot_notice(world, name, &node.instance_id).await?).await;

    let not_drained = |seen| BedError::NotMeasured { wanted: format!("the drain {name}"), seen };
    match &outcome.result {
        Ok(receipt) if receipt["ending"] == "drained" => {}
        Ok(receipt) => return Err(not_drained(receipt.to_string())),
        Err(error) => return Err(not_drained(error.to_string())),
    }
    let is_eviction = |request: &&Request| request.subresource == "eviction" && request.done.is_some();
    let requests = audit
        .wait_until("the evictions", WRITTEN_DOWN, |requests| requests.iter().filter(is_eviction).count() >= count)
        .await?;
    Ok(Cost {
        requests: counted(&requests),
        bytes: proxy.bytes(),
        peak_memory: lambda.peak_memory().map_err(BedError::io("read the function's memory"))?,
        took: outcome.duration,
    })
}

fn counted(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for Request { verb, resource, subresource, .. } in requests {
        let slash = if subresource.is_empty() { "" } else { "/" };
        *counts.entry(format!("{verb} {resource}{slash}{subresource}")).or_default() += 1;
    }
    counts
}
