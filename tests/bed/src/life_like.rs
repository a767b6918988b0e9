//! A small cluster with each kind of workload that a drain meets.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Client;
use serde_json::json;

use crate::aws::Hook;
use crate::error::BedError;
use crate::nodes::{NodeOptions, TestNode};
use crate::pods::{self, PodShape};
use crate::world::World;

/// Three nodes of one Auto Scaling group, the first a spot instance, in three zones.
#[derive(Debug, Clone)]
pub struct LifeLike {
    pub nodes: [TestNode; 3],
}

const GROUP: &str = "workers";
const SHOP: &str = "shop";
const SYSTEM: &str = "kube-system";

/// Fills a cluster. Each node gets two `web` pods under a budget, one of `orders`, a log agent and a critical pod; the first
/// node also gets the bare pod and the finished job.
pub async fn life_like_cluster(world: &World) -> Result<LifeLike, BedError> {
    let client = world.admin();
    // As in docs/install.md, with the cluster's tag.
    let hook = Hook { default_result: "CONTINUE".to_owned(), ..Hook::terminate("spillway") };
    let of_cluster = format!("kubernetes.io/cluster/{}", world.cluster);
    world.aws_side().put_tagged_group(GROUP, &[hook], &[(of_cluster.as_str(), "owned")]).await?;
    let node = |zone: &str, spot| {
        let options =
            NodeOptions { zone: zone.to_owned(), group: Some(GROUP.to_owned()), spot, ..NodeOptions::default() };
        world.add_node(options)
    };
    let (first, second, third) =
        futures_util::future::try_join3(node("us-east-1a", true), node("us-east-1b", false), node("us-east-1c", false))
            .await?;
    let nodes = [first, second, third];
    fill(&client, &nodes[0].name).await?;
    Ok(LifeLike { nodes })
}

async fn fill(client: &Client, first: &str) -> Result<(), BedError> {
    let seconds = Duration::from_secs;
    pods::create_namespace(client, SHOP).await?;

    // First: the scheduler spreads the other pods over all nodes only if each has a pod.
    let agent = PodShape::default().priority_class("system-node-critical");
    pods::create(client, &pods::daemon_set(SYSTEM, "log-agent", &agent)).await?;
    pods::until_running_of(client, SYSTEM, "log-agent", 3).await?;

    let web = PodShape::default().exits_after(seconds(2)).ready_after(seconds(2));
    pods::create(client, &pods::deployment(SHOP, "web", 6, &web)).await?;
    let orders = PodShape::default().exits_after(seconds(4)).ready_after(seconds(1));
    let spec = json!({"replicas": 3, "serviceName": "orders", "podManagementPolicy": "Parallel"});
    pods::create(client, &pods::workload::<StatefulSet>(SHOP, "orders", spec, &orders)).await?;
    let dns = PodShape::default().priority_class("system-cluster-critical").exits_after(seconds(1));
    pods::create(client, &pods::deployment(SYSTEM, "dns", 3, &dns)).await?;
    let shell = PodShape::default().exits_after(seconds(1)).on_node(first);
    pods::create(client, &pods::bare_pod(SHOP, "debug-shell", &shell)).await?;
    let migrate = PodShape::default().completes_after(Duration::ZERO).on_node(first);
    pods::create(client, &pods::job(SHOP, "migrate", &migrate)).await?;

    until_replicas_run(client).await?;
    pods::until_running_of(client, SHOP, "debug-shell", 1).await?;
    pods::until_succeeded(client, SHOP, "migrate").await?;
    pods::create_budget(client, &pods::budget(SHOP, "web", 5), 6).await
}

/// Waits until all replicas run, on any node.
pub async fn until_replicas_run(client: &Client) -> Result<(), BedError> {
    for (namespace, name, count) in [(SHOP, "web", 6), (SHOP, "orders", 3), (SYSTEM, "dns", 3)] {
        pods::until_running_of(client, namespace, name, count).await?;
    }
    Ok(())
}
