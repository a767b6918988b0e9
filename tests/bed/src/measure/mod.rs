//! What `bench`, `load`, `peers` and `faults` share: a far-away API server, pods to evict, the notice, goals, reading
//! the machine, and the page.

pub(crate) mod bare;
pub(crate) mod build;
pub(crate) mod goal;
pub(crate) mod machine;
pub(crate) mod page;
pub(crate) mod statistics;
pub(crate) mod usage;

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::{Timestamp, Unit};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use serde_json::{Value, json};

use crate::error::BedError;
use crate::pods::{self, PodShape};
use crate::proxy::Proxy;
use crate::world::{World, WorldOptions};

/// How long EKS's API server believes a token that it has checked.
const TOKEN_CACHE: Duration = Duration::from_mins(2);

/// A world where drains are measured. Filling nodes makes garbage, and the API server collected it for a fifth of the time,
/// 300 to 1,300 ms at a stretch on two cores, so that two drains in five met it: which ones was chance. With 500 it collects
/// a fifth as often, and has grown to 3 GB after four hundred full nodes.
///
/// What answers a drain goes before what hears of it. In a cluster kubelets have machines of their own, which the
/// controllers and the scheduler need not have. Here the three took a quarter of the processors' time while a full node was
/// evicted, from an API server that had nothing left.
pub(crate) fn world_options() -> WorldOptions {
    WorldOptions { token_cache: TOKEN_CACHE, gogc: 500, controllers_nice: 10, ..WorldOptions::default() }
}

/// Pods that are created at a time.
const CREATED_AT_ONCE: usize = 8;

/// A proxy in front of the world's API server.
pub(crate) fn proxy(world: &World) -> Result<Proxy, BedError> {
    let address = world.api_server.trim_start_matches("https://").parse().expect("an address and a port");
    Proxy::start(address).map_err(BedError::io("start a proxy"))
}

/// Puts pods on a node. Nothing puts them back, so that only the drain keeps the API server busy.
pub(crate) async fn fill(
    client: &Client,
    namespace: &str,
    node: &str,
    name: &str,
    count: usize,
    shape: &PodShape,
) -> Result<Vec<Pod>, BedError> {
    let shape = shape.clone().on_node(node);
    let creations = (0..count).map(|number| {
        let pod = pods::bare_pod(namespace, &format!("{name}-{number}"), &shape);
        async move { pods::create(client, &pod).await }
    });
    let creations = futures_util::stream::iter(creations).buffer_unordered(CREATED_AT_ONCE);
    creations.try_collect::<Vec<Pod>>().await?;
    pods::until_running_on(client, node, count).await
}

/// A spot notice for an instance, as the function's rule delivers it.
pub(crate) async fn spot_notice(world: &World, id: &str, instance_id: &str) -> Result<Value, BedError> {
    let mut event: Value = serde_json::from_str(include_str!("../../../../events/spot-interruption.json"))
        .expect("the sample is JSON: a test of the product reads it");
    let now = Timestamp::now();
    event["id"] = json!(id);
    event["time"] = json!(now.round(Unit::Second).unwrap_or(now).to_string());
    event["detail"]["instance-id"] = json!(instance_id);
    let delivered = world.aws_side().send_notice(&event).await?;
    let nobody = || BedError::NotMeasured { wanted: "a drain".to_owned(), seen: format!("no rule for {event}") };
    delivered.into_iter().next().map(|delivered| delivered.event).ok_or_else(nobody)
}
