//! Two clusters, one function: a notice drains in the cluster of its instance, and leaves the other untouched.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::lambda::{Lambda, Outcome};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{Cluster, NodeOptions, TestNode, World, WorldOptions};
use spillway_e2e::maintenance::in_s;
use spillway_e2e::{SPOT, answer, assert_drained, function, in_seconds, receipt, sample, the_one, user};
use tokio::sync::OnceCell;

const PODS: u32 = 3;

/// World of this test program.
async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    let options = WorldOptions { clusters: ["red", "blue"].map(str::to_owned).into(), ..WorldOptions::default() };
    let start = async || World::start_with(options).await.unwrap_or_else(|error| panic!("{}", error.story()));
    WORLD.get_or_init(start).await
}

/// A cluster's part in a test: a spot node with pods, and the function's requests.
struct Side {
    cluster: &'static Cluster,
    node: TestNode,
    pods: Vec<String>,
    audit: AuditLog,
}

impl Side {
    /// Namespace and workload have the same names in each cluster.
    async fn set(cluster: &'static Cluster, name: &str) -> Self {
        let client = cluster.admin();
        let node = cluster.add_node(NodeOptions::spot()).await.expect("the node joins");
        pods::create_namespace(&client, name).await.expect("the namespace is new");
        let shape = PodShape::default().exits_after(std::time::Duration::from_secs(1)).on_node(&node.name);
        let running = pods::run_deployment(&client, name, "web", PODS, &shape).await.expect("its pods run");
        let audit = AuditLog::of_user(&cluster.audit_log, &user(name));
        Self { cluster, node, pods: running.iter().map(ResourceExt::name_any).collect(), audit }
    }

    async fn interrupt(&self) -> Value {
        the_one(self.cluster.aws_side().interrupt(&self.node.instance_id, SPOT).await.expect("EC2 interrupts"))
    }

    /// Asserts that this node was drained, and that all the function's requests here were about the node and its pods.
    fn assert_only_node_drained(&mut self, outcome: &Outcome) {
        assert_drained(outcome, PODS as usize);
        let answer = answer(outcome);
        assert_eq!((&answer["cluster"], &answer["node"]), (&json!(self.cluster.cluster), &json!(self.node.name)));
        let requests = self.audit.requests().expect("the audit log exists").into_iter();
        let (reads, changes): (Vec<Request>, Vec<Request>) =
            requests.partition(|request| matches!(request.verb.as_str(), "get" | "list" | "watch"));
        // The pace of maintenance reads all cordoned nodes.
        let of_pace = |read: &Request| read.uri.contains("fieldSelector=spec.unschedulable");
        assert!(reads.iter().all(|read| read.uri.contains(&self.node.name) || of_pace(read)), "{reads:#?}");
        let changed: BTreeSet<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(changed, self.pods.iter().chain([&self.node.name]).map(String::as_str).collect());
    }
}

async fn set(name: &str) -> (Lambda, [Side; 2]) {
    let world = world().await;
    let [red, blue] = world.clusters() else { panic!("there are two clusters") };
    let (red, blue) = tokio::join!(Side::set(red, name), Side::set(blue, name));
    (function(world, name, &[]).await, [red, blue])
}

#[tokio::test]
async fn warm_function_of_one_cluster_drains_in_the_other() {
    let (lambda, [mut red, mut blue]) = set("in-turn").await;

    let in_red = lambda.invoke(red.interrupt().await).await;
    let process = lambda.process_ids();
    let in_blue = lambda.invoke(blue.interrupt().await).await;

    assert_eq!(lambda.process_ids(), process, "the same process was thawed");
    red.assert_only_node_drained(&in_red);
    blue.assert_only_node_drained(&in_blue);
}

#[tokio::test]
async fn health_event_of_two_clusters_drains_in_each() {
    let (lambda, [mut red, mut blue]) = set("one-event").await;
    let aws = world().await.aws_side();
    let mut event = sample("health-scheduled-maintenance");
    event["time"] = json!(in_seconds(Timestamp::now()));
    // Within the lead: the drain begins at once.
    event["detail"]["startTime"] = json!(in_seconds(in_s(60)));
    let entity = |side: &Side| json!({"entityValue": side.node.instance_id, "status": "PENDING"});
    event["detail"]["affectedEntities"] = json!([entity(&red), entity(&blue)]);
    let notice = the_one(aws.send_notice(&event).await.expect("the bus takes it"));

    let continued = lambda.invoke(notice).await;

    assert_eq!(answer(&continued)["ending"], "continued", "{continued:#?}");
    let delivered = aws.take_deliveries(lambda.access_key_id()).await.expect("the bus answers");
    let drains = join_all(delivered.into_iter().map(|one| lambda.invoke(one.event))).await;
    assert_eq!(drains.len(), 2, "{drains:#?}");
    for side in [&mut red, &mut blue] {
        let drain = drains.iter().find(|drain| receipt(drain)["instance"] == side.node.instance_id.as_str());
        side.assert_only_node_drained(drain.expect("a drain of the instance"));
    }
}
