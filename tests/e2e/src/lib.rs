//! What the end-to-end tests share: one world, and a stage for each test in it.
//!
//! Tests run side by side in one world, so each has a namespace, a node and a function of its own.
//! The function's session is its name, which keeps its calls apart in every log.

mod admission;
pub mod announcing;
pub mod chance;
pub mod deliver;
pub mod maintenance;
mod outcome;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::{Lambda, LambdaOptions, Outcome};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Proxy;
use spillway_bed::{NodeOptions, TestNode, World};
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

pub use outcome::{ended, fates, receipt, the_one};

/// Longer than anything takes that a test waits for, on a machine with much else to do.
const WAIT: Duration = Duration::from_mins(1);

/// Where another delivery has its rule: the function, or a schedule of its own, has invoked it.
pub const INVOKED: &str = "Invoke";

/// The world of this test program. It ends with the program: the supervisor sees the pipe close.
pub async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD.get_or_init(|| async { World::start().await.unwrap_or_else(|error| panic!("{error}")) }).await
}

/// A function of its own for a test.
pub async fn function(world: &World, name: &str, env: &[(&str, &str)]) -> Lambda {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = LambdaOptions { function_name: name.to_owned(), env, ..LambdaOptions::default() };
    Lambda::start(world, options).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A node, a namespace and a function, all named after the test.
#[derive(Debug)]
pub struct Stage {
    /// The world it is in.
    pub world: &'static World,
    /// The test's name: its namespace, its function's session, its label.
    pub name: String,
    /// The node to be drained.
    pub node: TestNode,
    /// The function under test.
    pub lambda: Lambda,
    /// What the function asked of the API server.
    pub audit: AuditLog,
    /// Events that were delivered so far.
    pub delivered: AtomicUsize,
}

impl Stage {
    /// A stage with an empty spot node.
    pub async fn set(name: &str) -> Self {
        Self::set_with(name, NodeOptions { spot: true, ..NodeOptions::default() }).await
    }

    /// A stage with a node of a group that has one terminate hook, `drain`.
    pub async fn set_in_group(name: &str, hook: spillway_bed::aws::Hook) -> Self {
        let world = world().await;
        world.aws_side().put_group(name, &[hook]).await.expect("the group is new");
        Self::set_with(name, NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() }).await
    }

    /// A stage with a node to order.
    pub async fn set_with(name: &str, node: NodeOptions) -> Self {
        let world = world().await;
        pods::create_namespace(&world.admin(), name).await.expect("the namespace is new");
        let labels = BTreeMap::from([("stage".to_owned(), name.to_owned())]);
        let node = world.add_node(NodeOptions { labels, ..node }).await.expect("the node joins");
        let lambda = function(world, name, &[]).await;
        // From here on: that user has made no request, and others many.
        let audit = AuditLog::of_user_from_now(&world.audit_log, &user(name));
        let audit = audit.expect("the audit log is there");
        Self { world, name: name.to_owned(), node, lambda, audit, delivered: AtomicUsize::new(0) }
    }

    /// The same stage with a function whose invocations take no longer than that.
    pub async fn with_invocations_of(self, timeout: Duration) -> Self {
        self.with_function(LambdaOptions { timeout, ..LambdaOptions::default() }).await
    }

    /// The same stage with a function that has such settings.
    pub async fn with_settings(self, settings: &[(&str, &str)]) -> Self {
        let env = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.with_function(LambdaOptions { env, ..LambdaOptions::default() }).await
    }

    /// The same stage with a function whose stack has a queue for messages: the bed leads it to the stage's own announcer.
    pub async fn that_announces(self) -> Self {
        let queue = "https://sqs.us-east-1.amazonaws.com/123456789012/spillway-Announcements-1A2B3C4D5E6F";
        self.with_settings(&[("SPILLWAY_ANNOUNCEMENTS", queue)]).await
    }

    /// The same stage with a function to order.
    pub async fn with_function(mut self, options: LambdaOptions) -> Self {
        let options = LambdaOptions { function_name: self.name.clone(), ..options };
        self.lambda = Lambda::start(self.world, options).await.unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// The continuation with which the function has just invoked itself.
    pub async fn continuation(&self) -> Value {
        let delivered = self.world.aws_side().take_deliveries(self.lambda.access_key_id()).await;
        let mut delivered = delivered.expect("the AWS side is there");
        delivered.retain(|one| one.rule == INVOKED);
        the_one(delivered)
    }

    /// A notice as the function's rule delivers it.
    pub async fn delivered(&self, notice: &Value) -> Value {
        the_one(self.world.aws_side().send_notice(notice).await.expect("the bus takes it"))
    }

    /// The function's rule delivers a notice, and the function is invoked with it.
    pub async fn notify(&self, notice: &Value) -> Outcome {
        self.lambda.invoke(self.delivered(notice).await).await
    }

    /// Waits for the next schedule of the function's to fire; answers what it invokes the function with.
    pub async fn fired(&self) -> Value {
        let delivered = self.world.aws_side().wait_for_delivery(self.lambda.access_key_id()).await;
        let delivered = delivered.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(delivered.rule, INVOKED);
        delivered.event
    }

    /// Runs a deployment on the node and waits until its pods are Ready. Nothing comes in their place.
    pub async fn deploy(&self, app: &str, replicas: u32, shape: PodShape) {
        let (client, shape) = (self.world.admin(), shape.on_node(&self.node.name));
        pods::run_deployment(&client, &self.name, app, replicas, &shape).await.expect("its pods run");
    }

    /// EC2 gives notice; answers the event as the function's rule delivers it.
    pub async fn interrupt(&self, window: Duration) -> Value {
        the_one(self.world.aws_side().interrupt(&self.node.instance_id, window).await.expect("EC2 interrupts"))
    }

    /// Auto Scaling terminates the instance; answers the event as the function's rule delivers it.
    pub async fn terminate(&self) -> Value {
        the_one(self.world.aws_side().terminate(&self.node.instance_id).await.expect("Auto Scaling terminates"))
    }

    /// Puts a proxy between the function and the API server.
    pub async fn through_proxy(&self) -> Proxy {
        let address = self.world.api_server.trim_start_matches("https://").parse().expect("an address and a port");
        let proxy = Proxy::start(address).expect("a free port");
        let (key, cluster) = (self.lambda.access_key_id(), &self.world.cluster);
        let shown = self.world.aws_side().override_endpoint(key, cluster, Some(&proxy.url()), None).await;
        shown.expect("EKS shows the proxy");
        proxy
    }

    /// Puts a gateway between the function and the API server: requests can go wrong there.
    pub async fn through_gateway(&self) -> Gateway {
        let gateway = Gateway::before_api_server(self.world, Rules::default()).expect("a gateway");
        gateway.show(self.world, self.lambda.access_key_id()).await.expect("EKS shows the gateway");
        gateway
    }

    /// The stage's node as it is now.
    pub async fn node_now(&self) -> Node {
        Api::all(self.world.admin()).get(&self.node.name).await.expect("the node is there")
    }

    /// Changes the stage's node by a merge patch, as somebody else than the function.
    pub async fn change_node(&self, change: &Value) {
        let nodes = Api::<Node>::all(self.world.admin());
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        nodes.patch(&self.node.name, &params, &Patch::Merge(change)).await.expect("it is changed");
    }

    /// The requests to the API server that were about nodes, in order, as `verb code`.
    pub fn node_requests(&mut self) -> Vec<String> {
        let requests = self.audit.requests().expect("the audit log is there").into_iter();
        let of_nodes = requests.filter(|request| request.resource == "nodes");
        of_nodes.map(|request| format!("{} {}", request.verb, request.code.unwrap_or_default())).collect()
    }

    /// Whether the node takes no pods.
    pub async fn is_cordoned(&self) -> bool {
        self.node_now().await.spec.and_then(|spec| spec.unschedulable).unwrap_or(false)
    }

    /// Whether the node takes pods, and has no mark of ours.
    pub async fn is_untouched(&self) -> bool {
        let marked = self.node_now().await.annotations().contains_key("spillway/claim");
        !marked && !self.is_cordoned().await
    }

    /// The node's taints, as kubectl writes them.
    pub async fn taints(&self) -> Vec<String> {
        let taints = self.node_now().await.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let text = |taint: Taint| format!("{}={}:{}", taint.key, taint.value.unwrap_or_default(), taint.effect);
        taints.into_iter().map(text).collect()
    }

    /// Drains the node for a spot notice, and does something before the API server sees the first of such requests. The
    /// drain watches no pods until one of them is answered: it would see what was done, and take its request back.
    pub async fn drain_with(&self, call: &str, before_it: impl AsyncFnOnce()) -> Outcome {
        let gateway = self.through_gateway().await;
        let (held, watches) = (Held::default(), Held::default());
        gateway.rules().add(Rule::new(call, Which::All, Fault::Hold(Side::Before, held.clone())));
        gateway.rules().add(Rule::new("watch pods", Which::All, Fault::Hold(Side::Before, watches.clone())));
        // With which a watch begins again that is not answered.
        gateway.rules().add(Rule::new("list pods", Which::Nth(2), Fault::Hold(Side::Before, watches.clone())));
        let mut drain = std::pin::pin!(self.lambda.invoke(self.interrupt(Duration::from_secs(120)).await));
        tokio::select! {
            outcome = &mut drain => panic!("{call} was not reached: {outcome:#?}"),
            () = held.reached() => {}
        }
        let meanwhile = async {
            before_it().await;
            held.release();
            let mut audit = self.audit.clone();
            let answered = |requests: &[Request]| requests.iter().any(|request| request.summary().starts_with(call));
            audit.wait_until(call, WAIT, answered).await.unwrap_or_else(|error| panic!("{error}"));
            watches.release();
        };
        tokio::join!(drain, meanwhile).0
    }

    /// Sees invocations through of which one claims the node. The others join it only when that one has had so many
    /// pods evicted: who joins evicts, three seconds later, what it has not seen leave, and a busy machine may need
    /// longer.
    pub async fn joined_after_evictions<T>(&mut self, pods: usize, invocations: impl Future<Output = T>) -> T {
        let gateway = self.through_gateway().await;
        let joining = Held::default();
        // Who joins looks at the node. When that fails it tries again, and lists the pods again, too.
        gateway.rules().add(Rule::new("get nodes", Which::All, Fault::Hold(Side::Instead, joining.clone())));
        let evicted = async {
            self.until_evicted(pods).await;
            gateway.rules().clear();
            joining.release();
        };
        tokio::join!(invocations, evicted).0
    }

    /// What the function asked of AWS, in order; but not of Parameter Store, which it asks when a busy machine answers late for
    /// EKS.
    pub async fn aws_calls(&self) -> Vec<String> {
        self.all_aws_calls().await.into_iter().filter(|call| !call.starts_with("ssm:")).collect()
    }

    /// All that the function asked of AWS, in order.
    pub async fn all_aws_calls(&self) -> Vec<String> {
        let calls = self.world.aws_side().calls(Some(self.lambda.access_key_id())).await.expect("the journal is there");
        calls.into_iter().map(|call| format!("{}:{}", call.service, call.action)).collect()
    }

    /// Waits until the function has asked that of AWS so often.
    pub async fn until_called(&self, call: &str, times: usize) {
        let called = async {
            while self.aws_calls().await.iter().filter(|made| *made == call).count() < times {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(WAIT, called).await.unwrap_or_else(|_| panic!("{call} is not called {times} times"));
    }

    /// The details of the events of that type that the function has put on the bus, in order.
    pub async fn told(&self, detail_type: &str) -> Vec<Value> {
        let events = self.world.aws_side().events(self.lambda.access_key_id()).await.expect("the AWS side is there");
        let of_type = events.into_iter().filter(|event| event["detail-type"] == detail_type);
        of_type.map(|mut event| event["detail"].take()).collect()
    }

    /// Waits until the API server has taken that many evictions of the function's.
    pub async fn until_evicted(&mut self, pods: usize) {
        let evicted = self.audit.wait_until("the evictions", WAIT, |requests| {
            requests.iter().filter(|request| request.subresource == "eviction" && request.code == Some(201)).count()
                >= pods
        });
        evicted.await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Waits until the hook has had so many heartbeats, or has run out.
    pub async fn until_held(&self, heartbeats: u32) {
        let held = async {
            loop {
                let instance = self.world.aws_side().instance(&self.node.instance_id).await.expect("it is known");
                if instance.actions[0].heartbeats >= heartbeats || instance.actions[0].ended_by.is_some() {
                    return;
                }
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(WAIT, held).await.unwrap_or_else(|_| panic!("the hook has no {heartbeats} heartbeats"));
    }

    /// The requests to the API server, as `verb resource[/subresource] name code`.
    pub fn requests(&mut self) -> Vec<String> {
        let requests = self.audit.requests().expect("the audit log is there");
        requests.iter().map(Request::summary).collect()
    }
}

/// What the name of the function's user ends with.
fn user(session: &str) -> String {
    format!("assumed-role/spillway-drain/{session}")
}

/// A spot notice as AWS words it, for an instance of one's own and a time of one's own.
#[must_use]
pub fn spot_notice(instance_id: &str, time: jiff::Timestamp) -> Value {
    let mut event = sample("spot-interruption");
    event["id"] = json!(format!("spot-{instance_id}"));
    event["time"] = json!(time.round(jiff::Unit::Second).unwrap_or(time).to_string());
    event["detail"]["instance-id"] = json!(instance_id);
    event
}

/// One of the samples in `events/`.
#[must_use]
pub fn sample(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
