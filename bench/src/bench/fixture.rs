//! A world with a function, an API server as far away as asked for, and nodes to drain.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::WatchParams;
use serde_json::Value;
use spillway_bed::audit::AuditLog;
use spillway_bed::lambda::{Lambda, LambdaOptions};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Proxy;
use spillway_bed::watch::{Objects, until};
use spillway_bed::{BedError, NodeOptions, TestNode, World};

use super::programs::Programs;
use crate::measure;
use crate::measure::machine::Rests;

/// The role of the function, and of the baseline: the same rights for both.
pub(super) const ROLE: &str = "spillway-drain";
const NAMESPACE: &str = "bench";
const LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(super) struct BenchFixture {
    pub(super) world: World,
    pub(super) lambda: Lambda,
    /// Between the function and the API server.
    pub(super) proxy: Proxy,
    /// What the function asked.
    pub(super) audit: AuditLog,
    /// The bare loop.
    pub(super) baseline: PathBuf,
    nodes: usize,
    pub(super) rests: Rests,
}

/// A node and the pods that were put on it.
#[derive(Debug)]
pub(super) struct FullNode {
    pub(super) node: TestNode,
    pub(super) pods: Vec<Pod>,
}

impl BenchFixture {
    pub(super) async fn start(programs: &Programs) -> Result<Self, BedError> {
        let world = World::start_with(measure::world_options()).await?;
        pods::create_namespace(&world.admin(), NAMESPACE).await?;
        let options = LambdaOptions { binary: programs.drain.clone(), ..LambdaOptions::default() };
        let session = options.function_name.clone();
        let lambda = Lambda::start(&world, options).await?;
        let proxy = world.proxy()?;
        let aws = world.aws_side();
        aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&proxy.url()), None).await?;
        let audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/{ROLE}/{session}"));
        let baseline = programs.baseline.clone();
        Ok(Self { world, lambda, proxy, audit, baseline, nodes: 0, rests: Rests::default() })
    }

    /// A node that nobody has touched, with this many pods that exit as soon as they are asked to, and a machine at rest.
    /// The pods have one owner, which puts none back: only the drain keeps the API server busy.
    pub(super) async fn full_node(&mut self, count: usize) -> Result<FullNode, BedError> {
        self.nodes += 1;
        let node = self.world.add_node(NodeOptions { spot: true, ..NodeOptions::default() }).await?;
        let (name, client) = (format!("pod-{}", self.nodes), self.world.admin());
        let shape = PodShape::default().with(measure::of_one_owner(&client, &node.name).await?);
        let pods = pods::fill_node(&client, NAMESPACE, &node.name, &name, count, &shape).await?;
        if count > 0 {
            self.rests.wait().await;
        }
        Ok(FullNode { node, pods })
    }

    /// A spot notice for the node, as the function's rule delivers it.
    pub(super) async fn notice(&self, node: &FullNode) -> Result<Value, BedError> {
        let id = format!("bench-{}", self.nodes);
        self.world.aws_side().spot_notice(&id, &node.node.instance_id).await
    }

    /// Waits until the node's pods have gone.
    pub(super) async fn until_empty(&self, node: &FullNode) -> Result<(), BedError> {
        let name = &node.node.name;
        let bound = WatchParams::default().fields(&format!("spec.nodeName={name}"));
        let pods = Api::<Pod>::all(self.world.admin());
        until(&pods, &bound, &format!("node {name} to be empty"), LIMIT, |pods: &Objects<Pod>| {
            if pods.is_empty() { Ok(()) } else { Err(format!("{} pods", pods.len())) }
        })
        .await
    }
}
