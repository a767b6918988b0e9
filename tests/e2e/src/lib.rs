//! Shared parts of the end-to-end tests: one world, and a stage for each test in it.
//!
//! Tests run side by side in one world, so each has a namespace, a node and a function of its own. The session of the
//! function's credentials is the test's name, which keeps its requests apart in every log.

mod admission;
pub mod announcing;
pub mod maintenance;
mod outcome;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::aws::{Fault as AwsFault, Hook, InstanceState, LifecycleAction, Schedule};
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::{Lambda, LambdaOptions, Outcome};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{Aws, NodeOptions, TestNode, World};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

pub use outcome::{answer, assert_drained, ended, fates, receipt, the_one};

/// Maximum wait for a condition.
pub const WAIT: Duration = Duration::from_mins(1);
/// Window of a spot notice.
pub const SPOT: Duration = Duration::from_mins(2);
/// Rule of a delivery that has none: an invocation by the function itself or by a schedule.
const INVOKED: &str = "Invoke";

/// World of this test program. It ends with the program.
pub async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD.get_or_init(|| async { World::start().await.unwrap_or_else(|error| panic!("{}", error.story())) }).await
}

pub fn function_options(env: &[(&str, &str)]) -> LambdaOptions {
    LambdaOptions { env: owned(env), ..LambdaOptions::default() }
}

/// Deploys a function.
pub async fn function(world: &World, name: &str, env: &[(&str, &str)]) -> Lambda {
    let options = LambdaOptions { function_name: name.to_owned(), ..function_options(env) };
    Lambda::start(world, options).await.unwrap_or_else(|error| panic!("{error}"))
}

pub fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A node, a namespace and a function with the test's name.
#[derive(Debug)]
pub struct Stage {
    pub world: &'static World,
    pub name: String,
    pub node: TestNode,
    pub lambda: Lambda,
    /// Requests of the function to the API server.
    pub audit: AuditLog,
}

impl Stage {
    /// A stage with an empty spot node.
    pub async fn set(name: &str) -> Self {
        Self::set_with(name, NodeOptions::spot()).await
    }

    /// A stage with a node of a group that has one hook.
    pub async fn set_in_group(name: &str, hook: Hook) -> Self {
        world().await.aws_side().put_group(name, &[hook]).await.expect("the group is new");
        Self::set_with(name, NodeOptions::in_group(name)).await
    }

    pub async fn set_with(name: &str, node: NodeOptions) -> Self {
        let world = world().await;
        pods::create_namespace(&world.admin(), name).await.expect("the namespace is new");
        let labels = owned(&[("stage", name)]);
        let node = world.add_node(NodeOptions { labels, ..node }).await.expect("the node joins");
        let lambda = function(world, name, &[]).await;
        // From now on: the user has made no request, and others many.
        let audit = AuditLog::of_user_from_now(&world.audit_log, &user(name)).expect("the audit log exists");
        Self { world, name: name.to_owned(), node, lambda, audit }
    }

    /// Limits the function's invocations.
    pub async fn with_invocations_of(self, timeout: Duration) -> Self {
        self.with_function(LambdaOptions { timeout, ..LambdaOptions::default() }).await
    }

    pub async fn with_settings(self, settings: &[(&str, &str)]) -> Self {
        self.with_function(function_options(settings)).await
    }

    /// Gives the function a stack of its own: no other scenario remembers an endpoint for it.
    pub async fn with_own_stack(self) -> Self {
        let name = self.name.clone();
        self.with_settings(&[("SPILLWAY_STACK", &name)]).await
    }

    /// Gives the function's stack a queue for messages, which the bed connects with the stage's announcer.
    pub async fn with_announcements(self) -> Self {
        let queue = "https://sqs.us-east-1.amazonaws.com/123456789012/spillway-Announcements-1A2B3C4D5E6F";
        self.with_settings(&[("SPILLWAY_ANNOUNCEMENTS", queue)]).await
    }

    pub async fn with_function(mut self, options: LambdaOptions) -> Self {
        let options = LambdaOptions { function_name: self.name.clone(), ..options };
        self.lambda = Lambda::start(self.world, options).await.unwrap_or_else(|error| panic!("{error}"));
        self
    }

    pub fn client(&self) -> Client {
        self.world.admin()
    }

    pub fn aws(&self) -> Aws {
        self.world.aws_side()
    }

    /// Runs a deployment on the node until its pods are Ready. Their replacements stay unscheduled.
    pub async fn deploy(&self, app: &str, replicas: u32, shape: PodShape) {
        let shape = shape.on_node(&self.node.name);
        pods::run_deployment(&self.client(), &self.name, app, replicas, &shape).await.expect("its pods run");
    }

    /// Runs a deployment whose pods exit a second after their evictions.
    pub async fn deploy_quick(&self, app: &str, replicas: u32) {
        self.deploy(app, replicas, PodShape::default().exits_after(Duration::from_secs(1))).await;
    }

    /// Puts a budget of unavailable pods before a deployment.
    pub async fn budget(&self, app: &str, max_unavailable: u32, healthy: usize) {
        let budget = pods::budget_of_unavailable(&self.name, app, max_unavailable);
        pods::create_budget(&self.client(), &budget, healthy).await.expect("the budget counts its pods");
    }

    pub fn budgets(&self) -> Api<PodDisruptionBudget> {
        Api::namespaced(self.client(), &self.name)
    }

    /// Sends a spot notice; returns the event as the function's rule delivers it.
    pub async fn interrupt(&self) -> Value {
        the_one(self.aws().interrupt(&self.node.instance_id, SPOT).await.expect("EC2 interrupts"))
    }

    /// Drains the node for a spot notice.
    pub async fn drain(&self) -> Outcome {
        self.lambda.invoke(self.interrupt().await).await
    }

    /// Starts the drain of a spot notice.
    pub async fn start_drain(&self) -> JoinHandle<Outcome> {
        self.start(self.interrupt().await)
    }

    /// Starts an invocation.
    pub fn start(&self, event: Value) -> JoinHandle<Outcome> {
        let lambda = self.lambda.clone();
        tokio::spawn(async move { lambda.invoke(event).await })
    }

    /// Terminates the instance by Auto Scaling; returns the event as the function's rule delivers it.
    pub async fn terminate(&self) -> Value {
        the_one(self.aws().terminate(&self.node.instance_id).await.expect("Auto Scaling terminates"))
    }

    /// Puts a notice on the bus; returns the event as the function's rule delivers it.
    pub async fn delivered(&self, notice: &Value) -> Value {
        the_one(self.aws().send_notice(notice).await.expect("the bus takes it"))
    }

    /// Puts a notice on the bus, and invokes the function with the delivery.
    pub async fn notify(&self, notice: &Value) -> Outcome {
        self.lambda.invoke(self.delivered(notice).await).await
    }

    /// The event with which the function has just invoked itself.
    pub async fn continuation(&self) -> Value {
        let delivered = self.aws().take_deliveries(self.lambda.access_key_id()).await;
        let mut delivered = delivered.expect("the AWS side answers");
        delivered.retain(|one| one.rule == INVOKED);
        the_one(delivered)
    }

    /// Waits until the function's next schedule fires; returns the event.
    pub async fn fired(&self) -> Value {
        let delivered = self.aws().wait_for_delivery(self.lambda.access_key_id()).await;
        let delivered = delivered.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(delivered.rule, INVOKED);
        delivered.event
    }

    pub async fn schedules(&self) -> Vec<Schedule> {
        self.aws().schedules(self.lambda.access_key_id()).await.expect("Scheduler answers")
    }

    pub async fn instance(&self) -> InstanceState {
        self.aws().instance(&self.node.instance_id).await.expect("the instance is known")
    }

    /// The first lifecycle action of the instance.
    pub async fn action(&self) -> LifecycleAction {
        self.instance().await.actions.remove(0)
    }

    /// Has AWS refuse such calls of the function.
    pub async fn refuse_call(&self, service: &str, action: &str, status: u16, code: &str, message: &str) {
        let call = (self.lambda.access_key_id(), service, action);
        self.aws().add_fault(&AwsFault::refusal(call, status, code, message)).await.expect("a fault");
    }

    /// Delays such calls of the function to AWS.
    pub async fn delay_call(&self, service: &str, action: &str, delay: Duration) {
        let call = (self.lambda.access_key_id(), service, action);
        self.aws().add_fault(&AwsFault::delay(call, delay)).await.expect("a fault");
    }

    pub async fn clear_faults(&self) {
        self.aws().clear_faults(self.lambda.access_key_id()).await.expect("no fault");
    }

    /// Puts a gateway between the function and the API server.
    pub async fn through_gateway(&self) -> Gateway {
        let gateway = self.gateway();
        gateway.show(self.world, self.lambda.access_key_id()).await.expect("EKS shows the gateway");
        gateway
    }

    /// A gateway before the API server that EKS does not show.
    pub fn gateway(&self) -> Gateway {
        Gateway::before_api_server(self.world, Rules::default()).expect("a gateway")
    }

    /// The node in the API server.
    pub async fn node_now(&self) -> Node {
        Api::all(self.client()).get(&self.node.name).await.expect("the node exists")
    }

    /// Changes the node by a merge patch of another field manager.
    pub async fn change_node(&self, change: &Value) {
        let nodes = Api::<Node>::all(self.client());
        let params = PatchParams { field_manager: Some("other".to_owned()), ..PatchParams::default() };
        nodes.patch(&self.node.name, &params, &Patch::Merge(change)).await.expect("the node changes");
    }

    pub async fn is_cordoned(&self) -> bool {
        self.node_now().await.spec.and_then(|spec| spec.unschedulable).unwrap_or(false)
    }

    /// Returns `true` if the node takes pods and has no claim.
    pub async fn is_untouched(&self) -> bool {
        let claimed = self.node_now().await.annotations().contains_key("spillway/claim");
        !claimed && !self.is_cordoned().await
    }

    /// The node's taints, as kubectl writes them.
    pub async fn taints(&self) -> Vec<String> {
        let taints = self.node_now().await.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let text = |taint: Taint| format!("{}={}:{}", taint.key, taint.value.unwrap_or_default(), taint.effect);
        taints.into_iter().map(text).collect()
    }

    /// Drains the node for a spot notice, and runs `before` before the API server receives such a request. The drain gets no
    /// watch of pods until the request is answered: a watch would have the drain take its request back.
    pub async fn drain_with(&self, call: &str, before: impl AsyncFnOnce()) -> Outcome {
        let gateway = self.through_gateway().await;
        let (held, watches) = (Held::default(), Held::default());
        gateway.rules().add(Rule::new(call, Which::All, Fault::Hold(Side::Before, held.clone())));
        gateway.rules().add(Rule::new("watch pods", Which::All, Fault::Hold(Side::Before, watches.clone())));
        // A watch without an answer begins again with a list.
        gateway.rules().add(Rule::new("list pods", Which::Nth(2), Fault::Hold(Side::Before, watches.clone())));
        let mut drain = std::pin::pin!(self.drain());
        tokio::select! {
            outcome = &mut drain => panic!("{call} was not reached: {outcome:#?}"),
            () = held.reached() => {}
        }
        let meanwhile = async {
            before().await;
            held.release();
            let answered = |requests: &[Request]| requests.iter().any(|request| request.summary().starts_with(call));
            self.until_requests(call, answered).await;
            watches.release();
        };
        tokio::join!(drain, meanwhile).0
    }

    /// Runs invocations of which one claims the node. The others join only after that many evictions: a joined invocation evicts
    /// the pods that have not left after three seconds, and a busy machine may need longer.
    pub async fn joined_after_evictions<T>(&self, pods: usize, invocations: impl Future<Output = T>) -> T {
        let gateway = self.through_gateway().await;
        let joining = Held::default();
        // A joining invocation gets the node. When that fails, it lists the pods again, too.
        gateway.rules().add(Rule::new("get nodes", Which::All, Fault::Hold(Side::Instead, joining.clone())));
        let evicted = async {
            self.until_evicted(pods).await;
            gateway.rules().clear();
            joining.release();
        };
        tokio::join!(invocations, evicted).0
    }

    /// Calls of the function to AWS, in order, without Parameter Store, which the function reads when EKS answers late.
    pub async fn aws_calls(&self) -> Vec<String> {
        self.all_aws_calls().await.into_iter().filter(|call| !call.starts_with("ssm:")).collect()
    }

    /// All calls of the function to AWS, in order.
    pub async fn all_aws_calls(&self) -> Vec<String> {
        let calls = self.aws().calls(Some(self.lambda.access_key_id())).await.expect("the journal exists");
        calls.into_iter().map(|call| format!("{}:{}", call.service, call.action)).collect()
    }

    /// Waits until the function has made that many such calls to AWS.
    pub async fn until_called(&self, call: &str, times: usize) {
        let made = async || self.aws_calls().await.iter().filter(|made| *made == call).count() >= times;
        until(&format!("{times} calls of {call}"), made).await;
    }

    /// Details of the function's events of that type on the bus, in order.
    pub async fn published(&self, detail_type: &str) -> Vec<Value> {
        let events = self.aws().events(self.lambda.access_key_id()).await.expect("the AWS side answers");
        let of_type = events.into_iter().filter(|event| event["detail-type"] == detail_type);
        of_type.map(|mut event| event["detail"].take()).collect()
    }

    /// Waits until the API server has granted that many evictions.
    pub async fn until_evicted(&self, pods: usize) {
        let granted = |requests: &[Request]| requests.iter().filter(|r| r.is_granted_eviction()).count() >= pods;
        self.until_requests("the evictions", granted).await;
    }

    /// Waits for a state of the function's requests to the API server.
    pub async fn until_requests(&self, what: &str, wanted: impl Fn(&[Request]) -> bool) {
        let found = self.audit.clone().wait_until(what, WAIT, wanted).await;
        found.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Requests to the API server.
    pub fn requests(&mut self) -> Vec<Request> {
        self.audit.requests().expect("the audit log exists")
    }

    /// Requests to the API server, as `verb resource[/subresource] name → code`.
    pub fn request_lines(&mut self) -> Vec<String> {
        self.requests().iter().map(Request::summary).collect()
    }

    /// Requests for nodes, in order, as `verb code`.
    pub fn node_requests(&mut self) -> Vec<String> {
        let of_nodes = self.requests().into_iter().filter(|request| request.resource == "nodes");
        of_nodes.map(|request| format!("{} {}", request.verb, request.code.unwrap_or_default())).collect()
    }
}

/// Waits for a condition.
pub async fn until(what: &str, met: impl AsyncFn() -> bool) {
    let waiting = async {
        while !met().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(WAIT, waiting).await.unwrap_or_else(|_| panic!("{what} did not come within {} s", WAIT.as_secs()));
}

/// End of the function's user name.
pub fn user(session: &str) -> String {
    format!("assumed-role/spillway-drain/{session}")
}

/// A time in whole seconds, as AWS writes it.
pub fn in_seconds(time: Timestamp) -> String {
    time.round(Unit::Second).unwrap_or(time).to_string()
}

/// A spot notice of an instance and a time.
pub fn spot_notice(instance_id: &str, time: Timestamp) -> Value {
    let mut event = notice("spot-interruption", instance_id);
    event["id"] = json!(format!("spot-{instance_id}"));
    event["time"] = json!(in_seconds(time));
    event
}

/// The sample of a notice, for another instance and the present.
pub fn notice(name: &str, instance_id: &str) -> Value {
    let mut event = sample(name);
    event["id"] = json!(format!("{name}-{instance_id}"));
    event["time"] = json!(in_seconds(Timestamp::now()));
    event["detail"]["instance-id"] = json!(instance_id);
    event
}

/// A sample of `events/`.
pub fn sample(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
