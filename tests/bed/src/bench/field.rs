//! A world with a function, an API server as far away as asked for, and nodes to drain.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::WatchParams;
use serde_json::Value;

use super::programs::Programs;
use crate::audit::AuditLog;
use crate::error::BedError;
use crate::lambda::{Lambda, LambdaOptions};
use crate::measure;
use crate::measure::machine::Rests;
use crate::nodes::{NodeOptions, TestNode};
use crate::pods::{self, PodShape};
use crate::proxy::Proxy;
use crate::watch::{Objects, until};
use crate::world::World;

/// The role of the function, and of the floor: the same rights for both.
pub(super) const ROLE: &str = "spillway-drain";
const NAMESPACE: &str = "bench";
const LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(super) struct Field {
    pub(super) world: World,
    /// Warm: it has drained once.
    pub(super) lambda: Lambda,
    /// Between the function and the API server.
    pub(super) proxy: Proxy,
    /// What the function asked.
    pub(super) audit: AuditLog,
    /// The bare loop.
    pub(super) floor: std::path::PathBuf,
    nodes: usize,
    pub(super) rests: Rests,
}

/// A node and the pods that were put on it.
#[derive(Debug)]
pub(super) struct FullNode {
    pub(super) node: TestNode,
    pub(super) pods: Vec<Pod>,
}

impl Field {
    pub(super) async fn set(programs: &Programs) -> Result<Self, BedError> {
        let world = World::start_with(measure::world_options()).await?;
        pods::create_namespace(&world.admin(), NAMESPACE).await?;
        let options = LambdaOptions { binary: programs.drain.clone(), ..LambdaOptions::default() };
        let session = options.function_name.clone();
        let lambda = Lambda::start(&world, options).await?;
        let proxy = measure::proxy(&world)?;
        let aws = world.aws_side();
        aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&proxy.url()), None).await?;
        let audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/{ROLE}/{session}"));
        let mut field =
            Self { world, lambda, proxy, audit, floor: programs.floor.clone(), nodes: 0, rests: Rests::default() };
        let node = field.full_node(0).await?;
        super::drain::cold(&mut field, &node, Duration::ZERO).await?;
        Ok(field)
    }

    /// A node that nobody has touched, with this many pods that exit as soon as they are asked to, and a machine at rest.
    /// Nothing puts the pods back, so that only the drain keeps the API server busy.
    pub(super) async fn full_node(&mut self, count: usize) -> Result<FullNode, BedError> {
        self.nodes += 1;
        let node = self.world.add_node(NodeOptions { spot: true, ..NodeOptions::default() }).await?;
        let name = format!("pod-{}", self.nodes);
        let pods =
            measure::fill(&self.world.admin(), NAMESPACE, &node.name, &name, count, &PodShape::default()).await?;
        if count > 0 {
            self.rests.wait().await;
        }
        Ok(FullNode { node, pods })
    }

    /// A spot notice for the node, as the function's rule delivers it.
    pub(super) async fn notice(&self, node: &FullNode) -> Result<Value, BedError> {
        measure::spot_notice(&self.world, &format!("bench-{}", self.nodes), &node.node.instance_id).await
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
