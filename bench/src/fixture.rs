//! A world for one case: its API server far away, its nodes and pods, and the observation of one drain.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use http::Request as HttpRequest;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Proxy;
use spillway_bed::usage::Usage;
use spillway_bed::watch::{Objects, until};
use spillway_bed::{BedError, NodeOptions, TestNode, World, WorldOptions};
use tempfile::TempDir;

use crate::case::Case;
use crate::figures::{Drained, Figures, Traffic, evicted};
use crate::machine::Rests;

pub(crate) const NAMESPACE: &str = "bench";
/// Round trip that is added on the way to the API server.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(20);
/// EKS' API server believes a token for so long.
const TOKEN_CACHE: Duration = Duration::from_mins(2);
/// Nodes that are created and filled at a time.
const NODES_AT_ONCE: usize = 4;
const LIMIT: Duration = Duration::from_mins(2);
/// The API server writes a request down when it has answered it.
const WRITTEN_DOWN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) world: World,
    /// Between every tool and the API server.
    pub(crate) proxy: Proxy,
    /// Folder of the tools' tokens.
    pub(crate) home: TempDir,
    pub(crate) rests: Rests,
    scenes: usize,
}

/// Nodes and their pods, for one drain of one tool.
#[derive(Debug)]
pub(crate) struct Scene {
    /// Identity of the tool as well: the audit log finds its requests by this name.
    pub(crate) name: String,
    pub(crate) case: Case,
    pub(crate) nodes: Vec<TestNode>,
}

/// Start of one drain: what the counters were at the notice.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) at: Timestamp,
    traffic: Traffic,
}

/// End of one drain.
#[derive(Debug)]
pub(crate) struct End<'a> {
    pub(crate) at: Timestamp,
    /// End of the user's name in the audit log.
    pub(crate) user: String,
    /// Caller on the AWS side, if it is one.
    pub(crate) access_key_id: Option<&'a str>,
    pub(crate) usage: Vec<Usage>,
    pub(crate) failed: usize,
}

impl Fixture {
    /// Starts a world. Filling nodes makes garbage, and the API server would collect it for a fifth of the time: with
    /// `GOGC=500` few drains meet a collection. kwok, controllers and scheduler stand back, as kubelets have machines of
    /// their own.
    pub(crate) async fn start() -> Result<Self, BedError> {
        let options = WorldOptions {
            token_cache: TOKEN_CACHE,
            flow_control: false,
            gogc: 500,
            controllers_nice: 10,
            ..WorldOptions::default()
        };
        let world = World::start_with(options).await?;
        let client = world.admin();
        pods::create_namespace(&client, NAMESPACE).await?;
        grant(&client).await?;
        let proxy = world.proxy()?;
        proxy.set_round_trip(ROUND_TRIP);
        let home = TempDir::new().map_err(BedError::io("make a folder"))?;
        Ok(Self { world, proxy, home, rests: Rests::default(), scenes: 0 })
    }

    /// Creates new nodes full of Ready pods, and waits for a machine at rest.
    pub(crate) async fn scene(&mut self, case: Case) -> Result<Scene, BedError> {
        self.scenes += 1;
        let name = format!("scene-{}", self.scenes);
        let this = &*self;
        let nodes = (0..case.nodes).map(|number| this.full_node(format!("{name}-{number}"), case));
        let nodes = futures_util::stream::iter(nodes).buffer_unordered(NODES_AT_ONCE).try_collect().await?;
        self.collect_garbage().await?;
        self.rests.wait().await;
        Ok(Scene { name, case, nodes })
    }

    /// A node whose pods have one owner that replaces none: the node itself. They exit at once.
    async fn full_node(&self, name: String, case: Case) -> Result<TestNode, BedError> {
        let client = self.world.admin();
        // NTH leaves an instance without this tag alone.
        let tags = BTreeMap::from([("aws-node-termination-handler/managed".to_owned(), String::new())]);
        let pods = u32::try_from(case.pods).unwrap_or(u32::MAX).max(NodeOptions::default().pods);
        let kubelet_sized = case.nodes > 1;
        let options = NodeOptions { spot: true, tags, pods, kubelet_sized, ..NodeOptions::default() };
        let node = self.world.add_node(options).await?;
        let getting = BedError::kubernetes(format!("get node {}", node.name));
        let uid = Api::<Node>::all(client.clone()).get(&node.name).await.map_err(getting)?.metadata.uid;
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uid, "controller": true});
        let shape = PodShape::default().with(json!({"metadata": {"ownerReferences": [owner]}}));
        pods::fill_node(&client, NAMESPACE, &node.name, &name, case.pods, &shape).await?;
        Ok(node)
    }

    /// The API server collects its garbage now, so that no collection falls due in a drain.
    async fn collect_garbage(&self) -> Result<(), BedError> {
        let heap = HttpRequest::get("/debug/pprof/heap?gc=1&debug=1").body(Vec::new()).expect("the path is valid");
        let collected = self.world.admin().request_text(heap).await;
        collected.map(drop).map_err(BedError::kubernetes("have the API server collect its garbage"))
    }

    /// Spot notices for the nodes of a scene, as the function's rule delivers them.
    pub(crate) async fn notices(&self, scene: &Scene) -> Result<Vec<Value>, BedError> {
        let aws = self.world.aws_side();
        let mut notices = Vec::with_capacity(scene.nodes.len());
        for node in &scene.nodes {
            notices.push(aws.spot_notice(&format!("{}-{}", scene.name, node.instance_id), &node.instance_id).await?);
        }
        Ok(notices)
    }

    pub(crate) fn begin(&self) -> Start {
        Start { at: Timestamp::now(), traffic: self.traffic() }
    }

    /// Collects the figures of a drain. Pods that were left are a result, no error.
    pub(crate) async fn end(&self, scene: &Scene, start: Start, end: End<'_>) -> Result<Figures, BedError> {
        let now = self.traffic();
        let traffic = Traffic {
            connections: now.connections - start.traffic.connections,
            client_hellos: now.client_hellos - start.traffic.client_hellos,
            bytes: now.bytes - start.traffic.bytes,
        };
        let mut audit = AuditLog::of_user(&self.world.audit_log, &end.user);
        let wanted = scene.case.nodes * scene.case.pods;
        let all = |requests: &[Request]| evicted(requests) >= wanted;
        let mut requests = match audit.wait_until("all evictions in the audit log", WRITTEN_DOWN, all).await {
            Err(BedError::Waited { .. }) => audit.requests()?,
            requests => requests?,
        };
        requests.retain(|request| request.received >= start.at);
        let mut calls = Vec::new();
        if let Some(caller) = end.access_key_id {
            calls = self.world.aws_side().calls(Some(caller)).await?;
            calls.retain(|call| call.at >= start.at.as_duration().as_secs_f64());
        }
        let drained = Drained { requests, calls, usage: end.usage, failed: end.failed, traffic };
        Ok(Figures::of(&drained, scene.case, start.at, end.at))
    }

    fn traffic(&self) -> Traffic {
        let (connections, client_hellos) = (self.proxy.connections(), self.proxy.client_hellos());
        Traffic { connections, client_hellos, bytes: self.proxy.bytes() }
    }

    /// Deletes pods and nodes, so that the next drain finds the same cluster.
    pub(crate) async fn clear(&self) -> Result<(), BedError> {
        let client = self.world.admin();
        let clearing = || BedError::kubernetes("clear the cluster");
        let all = ListParams::default();
        let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
        pods.delete_collection(&DeleteParams::default().grace_period(0), &all).await.map_err(clearing())?;
        until(&pods, &WatchParams::default(), "no pods", LIMIT, |pods: &Objects<Pod>| {
            if pods.is_empty() { Ok(()) } else { Err(format!("{} pods", pods.len())) }
        })
        .await?;
        let nodes = Api::<Node>::all(client);
        nodes.delete_collection(&DeleteParams::default(), &all).await.map(drop).map_err(clearing())
    }

    /// Creates a service account, and a token for it.
    pub(crate) async fn token(&self, name: &str) -> Result<String, BedError> {
        let client = self.world.admin();
        let account: ServiceAccount = object(json!({"metadata": {"namespace": NAMESPACE, "name": name}}));
        pods::create(&client, &account).await?;
        let asking = BedError::kubernetes(format!("request a token for {name}"));
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
        let accounts = Api::<ServiceAccount>::namespaced(client, NAMESPACE);
        let token = accounts.create_token_request(name, &PostParams::default(), &request).await.map_err(asking)?;
        Ok(token.status.map(|status| status.token).unwrap_or_default())
    }
}

/// User of a service account in the audit log.
pub(crate) fn service_account(name: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{name}")
}

/// Rights of NTH's chart, for all service accounts of the namespace.
async fn grant(client: &Client) -> Result<(), BedError> {
    let granting = || BedError::kubernetes("grant the tools their rights");
    let role: ClusterRole = object(json!({
        "metadata": {"name": NAMESPACE},
        "rules": [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch", "update"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
            {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get"]},
        ],
    }));
    let group = format!("system:serviceaccounts:{NAMESPACE}");
    let binding: ClusterRoleBinding = object(json!({
        "metadata": {"name": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAMESPACE},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    }));
    let post = PostParams::default();
    Api::all(client.clone()).create(&post, &role).await.map_err(granting())?;
    Api::all(client.clone()).create(&post, &binding).await.map(drop).map_err(granting())
}

fn object<K: DeserializeOwned + Debug>(value: Value) -> K {
    serde_json::from_value(value).expect("the JSON above is such an object")
}
