//! Two clusters, one function: a notice drains in the cluster of its instance, and the other is not touched.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::{Value, json};
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::lambda::{Lambda, Outcome};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{Cluster, NodeOptions, TestNode, World, WorldOptions};
use spillway_e2e::{fates, function, receipt, sample, the_one};
use tokio::sync::OnceCell;

const SPOT: Duration = Duration::from_secs(120);
const PODS: usize = 3;

/// The world of this test program: the same AWS side for both.
async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    let options = WorldOptions { clusters: ["red", "blue"].map(str::to_owned).into(), ..WorldOptions::default() };
    let start = async || World::start_with(options).await.unwrap_or_else(|error| panic!("{error}"));
    WORLD.get_or_init(start).await
}

/// One cluster's part in a test: a spot node with pods on it, and what the function asks there.
struct Side {
    cluster: &'static Cluster,
    node: TestNode,
    pods: Vec<String>,
    audit: AuditLog,
}

impl Side {
    /// The namespace and the workload have the same names in each cluster.
    async fn set(cluster: &'static Cluster, name: &str) -> Self {
        let client = cluster.admin();
        let node =
            cluster.add_node(NodeOptions { spot: true, ..NodeOptions::default() }).await.expect("the node joins");
        pods::create_namespace(&client, name).await.expect("the namespace is new");
        let shape = PodShape::default().exits_after(Duration::from_secs(1)).on_node(&node.name);
        let replicas = u32::try_from(PODS).expect("a few");
        let running = pods::run_deployment(&client, name, "web", replicas, &shape).await.expect("its pods run");
        let audit = AuditLog::of_user(&cluster.audit_log, &format!("assumed-role/spillway-drain/{name}"));
        Self { cluster, node, pods: running.iter().map(ResourceExt::name_any).collect(), audit }
    }

    /// EC2 gives notice; answers the event as the function's rule delivers it.
    async fn interrupt(&self) -> Value {
        the_one(self.cluster.aws_side().interrupt(&self.node.instance_id, SPOT).await.expect("EC2 interrupts"))
    }

    /// This node was drained, of all that the function asked here nothing was about anything else, and what it changed
    /// is the node and its pods.
    fn assert_drained_alone(&mut self, outcome: &Outcome) {
        let answer = outcome.result.as_ref().expect("it drains");
        assert_eq!(answer["ending"], "drained", "{outcome:#?}");
        assert_eq!(
            (&answer["cluster"], &answer["node"]),
            (&self.cluster.cluster.as_str().into(), &self.node.name.as_str().into())
        );
        assert_eq!(fates(answer)["clean"], PODS);

        let (reads, changes): (Vec<Request>, Vec<Request>) = self
            .audit
            .requests()
            .expect("the audit log is there")
            .into_iter()
            .partition(|request| matches!(request.verb.as_str(), "get" | "list" | "watch"));
        // The pace of maintenance looks at all nodes that are cordoned.
        let of_pace = |read: &Request| read.uri.contains("fieldSelector=spec.unschedulable");
        assert!(reads.iter().all(|read| read.uri.contains(&self.node.name) || of_pace(read)), "{reads:#?}");
        let touched: BTreeSet<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        let own = self.pods.iter().chain([&self.node.name]).map(String::as_str);
        assert_eq!(touched, own.collect());
    }
}

/// A function, and its part in each cluster.
async fn set(name: &str) -> (Lambda, [Side; 2]) {
    let world = world().await;
    let [red, blue] = world.clusters() else { panic!("there are two clusters") };
    let (red, blue) = tokio::join!(Side::set(red, name), Side::set(blue, name));
    (function(world, name, &[]).await, [red, blue])
}

#[tokio::test]
async fn two_notices_at_once_drain_a_node_in_each_cluster_and_touch_nothing_in_the_other() {
    let (lambda, [mut red, mut blue]) = set("at-once").await;
    let (in_red, in_blue) = (red.interrupt().await, blue.interrupt().await);

    let (in_red, in_blue) = tokio::join!(lambda.invoke(in_red), lambda.invoke(in_blue));

    red.assert_drained_alone(&in_red);
    blue.assert_drained_alone(&in_blue);
}

#[tokio::test]
async fn a_warm_function_that_knows_one_cluster_drains_in_the_other() {
    let (lambda, [mut red, mut blue]) = set("in-turn").await;

    let in_red = lambda.invoke(red.interrupt().await).await;
    let process = lambda.process_ids();
    let in_blue = lambda.invoke(blue.interrupt().await).await;

    assert_eq!(lambda.process_ids(), process, "the environment was thawed, not made again");
    red.assert_drained_alone(&in_red);
    blue.assert_drained_alone(&in_blue);
}

#[tokio::test]
async fn one_health_event_with_instances_of_both_drains_each_in_its_own_cluster() {
    let (lambda, [mut red, mut blue]) = set("one-event").await;
    let aws = world().await.aws_side();
    let mut event = sample("health-scheduled-maintenance");
    // It starts within the lead, so that the drain begins at once.
    event["time"] = json!(seconds_from_now(0));
    event["detail"]["startTime"] = json!(seconds_from_now(60));
    let entity = |side: &Side| json!({"entityValue": side.node.instance_id, "status": "PENDING"});
    event["detail"]["affectedEntities"] = json!([entity(&red), entity(&blue)]);
    let notice = the_one(aws.send_notice(&event).await.expect("the bus takes it"));

    let continued = lambda.invoke(notice).await;

    assert_eq!(continued.result.as_ref().expect("no failure")["ending"], "continued", "{continued:#?}");
    let delivered = aws.take_deliveries(lambda.access_key_id()).await.expect("the bus has them");
    let drains = delivered.into_iter().map(|one| lambda.invoke(one.event));
    let drains = futures_util::future::join_all(drains).await;
    let of = |side: &Side| {
        let is_of = |drain: &&Outcome| receipt(drain)["instance"] == side.node.instance_id.as_str();
        drains.iter().find(is_of).unwrap_or_else(|| panic!("none of {}: {drains:#?}", side.node.instance_id))
    };
    assert_eq!(drains.len(), 2, "{drains:#?}");
    red.assert_drained_alone(of(&red));
    blue.assert_drained_alone(of(&blue));
}

fn seconds_from_now(seconds: i64) -> String {
    let at = Timestamp::now() + SignedDuration::from_secs(seconds);
    at.round(jiff::Unit::Second).unwrap_or(at).to_string()
}
