//! A world with nodes to drain, an API server as far away as asked for, and the rights that a peer wants.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Proxy;
use spillway_bed::watch::{Objects, until};
use spillway_bed::{BedError, NodeOptions, TestNode, World, WorldOptions};
use tempfile::TempDir;

use super::case::{Case, EXIT_AFTER, READY_AFTER};
use crate::measure;
use crate::measure::machine::Rests;

pub(super) const NAMESPACE: &str = "peers";
/// What the deployment and its budget are called.
const APP: &str = "web";
/// Nodes that are made, and filled, at a time.
const NODES_AT_ONCE: usize = 4;
const LIMIT: Duration = Duration::from_mins(2);
/// How long a tool may take: NTH as installed is done with fifty nodes before.
const LONGEST: Duration = Duration::from_mins(7);

#[derive(Debug)]
pub(super) struct PeersFixture {
    pub(super) world: World,
    /// Between every tool and the API server.
    pub(super) proxy: Proxy,
    /// A person's, with kubectl's cache of what the API server can do.
    pub(super) home: TempDir,
    scenes: usize,
    pub(super) rests: Rests,
}

/// Nodes and their pods, for one drain of one tool.
#[derive(Debug)]
pub(super) struct Scene {
    /// Also whom the tool signs in as, so that the audit log tells its requests from all others.
    pub(super) name: String,
    pub(super) nodes: Vec<TestNode>,
    /// On all nodes.
    pub(super) pods: usize,
    /// How long a tool may take.
    pub(super) limit: Duration,
    /// Whether what a tool has left is a result too.
    pub(super) may_be_left: bool,
}

impl PeersFixture {
    pub(super) async fn start(case: Case) -> Result<Self, BedError> {
        Self::start_with(case.world_options()).await
    }

    pub(super) async fn start_with(options: WorldOptions) -> Result<Self, BedError> {
        let world = World::start_with(options).await?;
        let client = world.admin();
        pods::create_namespace(&client, NAMESPACE).await?;
        grant(&client).await?;
        let proxy = world.proxy()?;
        let home = TempDir::new().map_err(BedError::io("make a folder"))?;
        Ok(Self { world, proxy, home, scenes: 0, rests: Rests::default() })
    }

    /// Nodes that nobody has touched, full of Ready pods, and a machine at rest.
    pub(super) async fn scene(&mut self, case: Case) -> Result<Scene, BedError> {
        self.scenes += 1;
        let name = format!("scene-{}", self.scenes);
        let nodes = match case {
            Case::Budget => self.behind_a_budget(case.pods(), PodShape::default()).await?,
            Case::SlowBudget => self.behind_a_budget(case.pods(), PodShape::default().ready_after(READY_AFTER)).await?,
            Case::FullNodeSlowPods | Case::FiftyNodesSlowPods => {
                self.free(&name, case.nodes(), case.pods(), &PodShape::default().exits_after(EXIT_AFTER)).await?
            }
            Case::SmallNode
            | Case::FullNode
            | Case::FullNodePlainWorld
            | Case::TenNodes
            | Case::FiftyNodes
            | Case::FiftyNodesFlowControl => self.free(&name, case.nodes(), case.pods(), &PodShape::default()).await?,
        };
        if case.begins_without_garbage() {
            self.collect_garbage().await?;
        }
        self.rests.wait().await;
        Ok(Scene { name, nodes, pods: case.nodes() * case.pods(), limit: LONGEST, may_be_left: false })
    }

    /// A scene of so many nodes and pods on each, for a tool that may take so long.
    pub(super) async fn storm(&mut self, nodes: usize, pods: usize, limit: Duration) -> Result<Scene, BedError> {
        self.scenes += 1;
        let name = format!("scene-{}", self.scenes);
        let added = self.free(&name, nodes, pods, &PodShape::default()).await?;
        self.collect_garbage().await?;
        self.rests.wait().await;
        Ok(Scene { name, nodes: added, pods: nodes * pods, limit, may_be_left: true })
    }

    /// Pods that nothing holds and nothing puts back.
    async fn free(&self, name: &str, nodes: usize, pods: usize, shape: &PodShape) -> Result<Vec<TestNode>, BedError> {
        let client = &self.world.admin();
        let nodes = (0..nodes).map(|number| async move {
            let node = self.add_node().await?;
            let shape = shape.clone().with(measure::of_one_owner(client, &node.name).await?);
            pods::fill_node(client, NAMESPACE, &node.name, &format!("{name}-{number}"), pods, &shape).await?;
            Ok(node)
        });
        futures_util::stream::iter(nodes).buffer_unordered(NODES_AT_ONCE).try_collect().await
    }

    /// The API server has a collection behind it, so that none falls due in a drain for what came before it.
    async fn collect_garbage(&self) -> Result<(), BedError> {
        let heap =
            Request::get("/debug/pprof/heap?gc=1&debug=1").body(Vec::new()).expect("a path alone is a good request");
        let collected = self.world.admin().request_text(heap).await;
        collected.map(drop).map_err(BedError::kubernetes("have the API server collect its garbage"))
    }

    /// A deployment on one node, with another one for what replaces its pods.
    async fn behind_a_budget(&self, count: usize, shape: PodShape) -> Result<Vec<TestNode>, BedError> {
        let client = self.world.admin();
        let replicas = u32::try_from(count).expect("a node's pods are few");
        let node = self.add_node().await?;
        pods::create(&client, &pods::budget_of_one_away(NAMESPACE, APP)).await?;
        pods::create(&client, &pods::deployment(NAMESPACE, APP, replicas, &shape)).await?;
        pods::until_running_on(&client, &node.name, count).await?;
        self.add_node().await?;
        let healthy = i32::try_from(count).expect("a node's pods are few");
        pods::until_budget_sees(&client, NAMESPACE, APP, healthy).await?;
        Ok(vec![node])
    }

    async fn add_node(&self) -> Result<TestNode, BedError> {
        // Without this tag NTH leaves an instance alone.
        let tags = BTreeMap::from([("aws-node-termination-handler/managed".to_owned(), String::new())]);
        self.world.add_node(NodeOptions { spot: true, tags, ..NodeOptions::default() }).await
    }

    /// Takes everything away, so that the next drain finds the cluster as this one did.
    pub(super) async fn clear(&self) -> Result<(), BedError> {
        let client = self.world.admin();
        let clearing = || BedError::kubernetes("clear the cluster");
        let all = ListParams::default();
        let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), NAMESPACE);
        budgets.delete_collection(&DeleteParams::default(), &all).await.map_err(clearing())?;
        // In the foreground, so that nothing puts pods back when it is gone.
        let deployments = Api::<Deployment>::namespaced(client.clone(), NAMESPACE);
        deployments.delete_collection(&DeleteParams::foreground(), &all).await.map_err(clearing())?;
        until_none(&deployments, "deployments").await?;
        let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
        pods.delete_collection(&DeleteParams::default().grace_period(0), &all).await.map_err(clearing())?;
        until_none(&pods, "pods").await?;
        let nodes = Api::<Node>::all(client);
        nodes.delete_collection(&DeleteParams::default(), &all).await.map(drop).map_err(clearing())
    }

    /// A service account of this name, and a token for it.
    pub(super) async fn token(&self, name: &str) -> Result<String, BedError> {
        let client = self.world.admin();
        let account: ServiceAccount = made(json!({"metadata": {"namespace": NAMESPACE, "name": name}}));
        pods::create(&client, &account).await?;
        let asking = || BedError::kubernetes(format!("ask for a token of {name}"));
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
        let accounts = Api::<ServiceAccount>::namespaced(client, NAMESPACE);
        let given = accounts.create_token_request(name, &PostParams::default(), &request).await.map_err(asking())?;
        Ok(given.status.map(|status| status.token).unwrap_or_default())
    }
}

/// What NTH's chart gives it, and what `kubectl drain` needs: the same. For all service accounts of the namespace.
async fn grant(client: &Client) -> Result<(), BedError> {
    let granting = || BedError::kubernetes("grant the peers their rights");
    let role: ClusterRole = made(json!({
        "metadata": {"name": NAMESPACE},
        "rules": [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch", "update"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
            {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get"]},
        ],
    }));
    let group = format!("system:serviceaccounts:{NAMESPACE}");
    let binding: ClusterRoleBinding = made(json!({
        "metadata": {"name": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAMESPACE},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    }));
    let post = PostParams::default();
    Api::all(client.clone()).create(&post, &role).await.map_err(granting())?;
    Api::all(client.clone()).create(&post, &binding).await.map(drop).map_err(granting())
}

async fn until_none<K>(api: &Api<K>, what: &str) -> Result<(), BedError>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let everything = WatchParams::default();
    until(api, &everything, &format!("no {what}"), LIMIT, |objects: &Objects<K>| {
        if objects.is_empty() { Ok(()) } else { Err(format!("{} of them", objects.len())) }
    })
    .await
}

fn made<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("the object above is what it says")
}
