//! What a drain costs, in a small cluster and in a large one: requests, bytes, memory.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;

use crate::audit::{AuditLog, Request};
use crate::error::BedError;
use crate::filler::Filler;
use crate::lambda::{Lambda, LambdaOptions};
use crate::nodes::NodeOptions;
use crate::pods::{self, PodShape};
use crate::world::World;

/// Pods of the node that is drained.
pub const PODS: usize = 20;
/// A name that no guess hits, and the last of all: the search has to look at every node.
const LAST_NAME: &str = "zz-named-by-hand";
/// The API server writes a request down when it has answered it.
const WRITTEN_DOWN: Duration = Duration::from_secs(10);

/// What the same drain costs in a small cluster and in a large one.
#[derive(Debug)]
pub struct Load {
    /// All nodes of the large one.
    pub nodes: usize,
    /// In the small cluster.
    pub small: Cost,
    /// In the large one, when the first guess at the node's name is right.
    pub large: Cost,
    /// In the large one, when all guesses are wrong.
    pub searched: Cost,
}

/// What a function that is cold asked the API server and carried, and the memory it needed.
#[derive(Debug)]
pub struct Cost {
    /// How often each request was made, such as `list nodes` or `create pods/eviction`.
    pub requests: BTreeMap<String, usize>,
    /// Through the connection to the API server, both ways, as TLS has them.
    pub bytes: u64,
    /// In bytes.
    pub peak_memory: u64,
}

impl Cost {
    /// How often a request was made.
    #[must_use]
    pub fn count(&self, request: &str) -> usize {
        self.requests.get(request).copied().unwrap_or(0)
    }
}

/// Drains a node of a small cluster, makes the cluster large, and drains two more.
pub async fn measure(world: &World, filler: Filler) -> Result<Load, BedError> {
    let small = of_drain(world, "load-small", NodeOptions::default()).await?;
    filler.pour(&world.admin()).await?;
    let large = of_drain(world, "load-large", NodeOptions::default()).await?;
    let named_by_hand = NodeOptions { name: Some(LAST_NAME.to_owned()), ..NodeOptions::default() };
    let searched = of_drain(world, "load-searched", named_by_hand).await?;
    Ok(Load { nodes: nodes(world).await?, small, large, searched })
}

/// Drains a new node, by a function of its own.
async fn of_drain(world: &World, name: &str, node: NodeOptions) -> Result<Cost, BedError> {
    let client = world.admin();
    pods::create_namespace(&client, name).await?;
    let node = world.add_node(node).await?;
    pods::fill_node(&client, name, &node.name, "pod", PODS, &PodShape::default()).await?;
    let lambda =
        Lambda::start(world, LambdaOptions { function_name: name.to_owned(), ..LambdaOptions::default() }).await?;
    let proxy = world.proxy()?;
    let aws = world.aws_side();
    aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&proxy.url()), None).await?;
    let mut audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/spillway-drain/{name}"));

    let outcome = lambda.invoke(aws.spot_notice(name, &node.instance_id).await?).await;

    outcome.drained()?;
    let is_eviction = |request: &&Request| request.subresource == "eviction" && request.done.is_some();
    let requests = audit
        .wait_until("the evictions", WRITTEN_DOWN, |requests| requests.iter().filter(is_eviction).count() >= PODS)
        .await?;
    Ok(Cost {
        requests: counted(&requests),
        bytes: proxy.bytes(),
        peak_memory: lambda.peak_memory().map_err(BedError::io("read the function's memory"))?,
    })
}

async fn nodes(world: &World) -> Result<usize, BedError> {
    let nodes = Api::<Node>::all(world.admin());
    let listed = nodes.list_metadata(&ListParams::default()).await.map_err(BedError::kubernetes("list the nodes"))?;
    Ok(listed.items.len())
}

fn counted(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for Request { verb, resource, subresource, .. } in requests {
        let slash = if subresource.is_empty() { "" } else { "/" };
        *counts.entry(format!("{verb} {resource}{slash}{subresource}")).or_default() += 1;
    }
    counts
}
