//! The bed's own API of the AWS side (`/bed/…`): what a test sets up, sends, breaks and counts.
//!
//! The product never comes here: it speaks the AWS APIs of the same server. `shapes` has the types that go over the wire.

mod shapes;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use shapes::{AnnouncerStack, FunctionLimits};
pub use shapes::{
    Call, CapacityReservation, Change, ChangePage, Changed, Credentials, Delivered, Ec2State, Fault, Hook, Instance,
    InstanceRequest, InstanceState, Launched, LifecycleAction, Schedule,
};

use crate::error::BedError;
use crate::http_client;
use crate::lambda::Lambda;

/// Upper bound of a schedule's wait in any test.
const WAIT_S: u64 = 120;
/// Time for which the AWS side holds the question for a caller of the function.
const HOLD_S: u64 = 20;

#[derive(Debug, Clone)]
pub struct Aws {
    http: reqwest::Client,
    url: String,
}

/// Methods that post their parameters, as the fields of an object, to the call of their own name.
macro_rules! calls {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident($($field:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Aws {
            $($(#[$doc])* $vis async fn $name(&self, $($field: $type),*) -> Result<$answer, BedError> {
                self.call(stringify!($name), &json!({$((stringify!($field)): $field),*})).await
            })*
        }
    };
}

calls! {
    /// Temporary credentials of a role, from STS, for a function with these variables, on which its rights may hang.
    pub(crate) fn credentials_of_function(role: &str, session: &str, variables: &BTreeMap<String, String>) -> Credentials;
    /// Limits of the function that has this role, as the template has them.
    pub(crate) fn limits_of_function(role: &str) -> FunctionLimits;
    /// The function's variables that refer to a part of its stack, such as its schedule group.
    pub(crate) fn variables() -> BTreeMap<String, String>;
    /// Has `Invoke` of a function wait for [`Aws::asked`].
    fn put_served(function: &str) -> ();
    fn asked(function: &str, wait_s: u64) -> Value;
    fn said(id: &Value, result: &Value, failed: bool) -> ();

    /// Registers a cluster for `DescribeCluster`, or updates it. `ca` is base64 of PEM; the mode is `API` by default.
    pub fn put_cluster(name: &str, endpoint: &str, ca: &str, mode: Option<&str>) -> ();
    /// Removes a cluster from EKS; its control plane runs on.
    pub fn hide_cluster(name: &str) -> ();
    /// Shows one caller another endpoint for a cluster, such as a proxy's.
    pub fn override_endpoint(access_key_id: &str, cluster: &str, endpoint: Option<&str>, ca: Option<&str>) -> ();
    /// The access entries of a cluster, as EKS describes them.
    pub fn access_entries(cluster: &str) -> Vec<Value>;

    pub fn put_group(name: &str, hooks: &[Hook]) -> ();
    /// A group that keeps an instance whose terminate hook is abandoned.
    pub fn put_group_that_keeps(name: &str, hooks: &[Hook]) -> ();
    fn put_group_with_tags(name: &str, hooks: &[Hook], tags: &BTreeMap<&str, &str>) -> ();
    /// The hooks and the tags of a group.
    pub fn group(name: &str) -> Value;
    pub fn instance(instance_id: &str) -> InstanceState;
    /// Ends an instance at once, as its owner does with `ec2:TerminateInstances`.
    pub fn terminate_instance(instance_id: &str) -> ();
    /// EC2 reboots an instance, and sends no event of it.
    pub fn reboot(instance_id: &str) -> ();
    /// EC2 takes the instance through these states, which must follow each other.
    pub fn change_state(instance_id: &str, states: &[Ec2State]) -> Vec<Delivered>;
    /// Scheduled events of an instance, for `DescribeInstanceStatus`. EC2 sends no event of them.
    pub fn announce(instance_id: &str, events: &[Value]) -> ();
    /// Changes of instances since `since`, for their nodes; waits for the first.
    pub(crate) fn changes(since: u64, wait_s: u64) -> ChangePage;
    /// Puts an instance into a target group of a load balancer of the cluster.
    pub fn register_target(instance_id: &str, cluster: &str) -> ();
    pub fn deregister_target(instance_id: &str) -> ();
    fn interrupt_in(instance_id: &str, in_s: f64) -> Vec<Delivered>;
    fn move_past_hooks(instance_id: &str, how: &str) -> Vec<Delivered>;

    /// Puts an event on the bus; answers what the template's rules made of it.
    pub fn send_notice(event: &Value) -> Vec<Delivered>;
    /// Deliveries to the function since the last call. A sender is an access key id (events it put, invocations it asked for)
    /// or an instance id (events of AWS about it).
    pub fn take_deliveries(sender: &str) -> Vec<Delivered>;
    fn await_deliveries(sender: &str, most: usize, wait_s: u64) -> Vec<Delivered>;
    /// Events that a caller has put on the bus, matched by a rule or not.
    pub fn events(access_key_id: &str) -> Vec<Value>;
    /// Schedules that a caller has created and Scheduler still keeps, the earliest first.
    pub fn schedules(access_key_id: &str) -> Vec<Schedule>;
    /// Somebody else's rule on the bus, which leads to a target by its ARN.
    pub fn put_rule(name: &str, pattern: &Value, target: &str) -> ();
    pub fn delete_rule(name: &str) -> ();
    /// Switches a rule on or off, for everybody in the world: `ENABLED` or `DISABLED`.
    pub fn switch_rule(name: &str, state: &str) -> ();

    /// Deploys a stack, as far as CloudFormation describes it.
    pub fn deploy_stack(name: &str, text: &str, outputs: &BTreeMap<&str, String>, parameters: &BTreeMap<&str, &str>) -> ();
    /// CloudFormation deletes a stack, which the bed has from its beginning.
    pub fn delete_stack(name: &str) -> ();
    /// Names of all that a stack, or a function of it, could leave in the account, by kind.
    pub fn left() -> Value;

    /// Gives one caller pages of at most that size, of instances and of tags.
    pub fn limit_pages(access_key_id: &str, size: usize) -> ();
    /// Calls of one caller, or of all.
    pub fn calls(access_key_id: Option<&str>) -> Vec<Call>;
    pub fn clear_faults(access_key_id: &str) -> ();
    fn put_limit(access_key_id: &str, bucket: &str, most: u32, per_second: u32) -> ();
    /// Puts a message on the function's failure queue, as Lambda's on-failure destination does.
    pub fn put_failure(body: &str) -> ();
    /// Messages in the function's failure queue.
    pub fn failures() -> Vec<String>;

    /// Queues of one stack, which events of this sender go to by the template's rule.
    pub(crate) fn deploy_announcer(sender: &str, name: &str, parameters: &BTreeMap<String, String>) -> AnnouncerStack;
    /// Records an event source mapping of a function.
    pub fn create_mapping(function: &str, source: &str) -> ();
    /// Takes messages from a queue, as Lambda's records of them; waits for the first.
    pub(crate) fn receive(name: &str, most: usize, wait_s: f64) -> Vec<Value>;
    /// Deletes messages by their handles, and lets others be received again.
    pub(crate) fn settle(name: &str, done: &[String], come_back: &[String]) -> ();
    /// Messages in a queue that can be received, without taking them. Waits until there are so many.
    pub(crate) fn messages(name: &str, least: usize, wait_s: u64) -> Vec<String>;
    fn put_queue(name: &str) -> ();
    fn send_messages(name: &str, bodies: &[String]) -> ();
    /// An SNS topic with a subscriber; answers its ARN.
    pub fn create_topic(name: &str) -> String;
    /// Messages that the subscriber of a topic has got, as SNS hands them over.
    pub fn published(name: &str) -> Vec<Value>;
    /// A `SecureString` of Parameter Store.
    pub fn put_parameter(name: &str, value: &str) -> ();
    /// A secret of Secrets Manager; answers its ARN.
    pub fn put_secret(name: &str, value: &str) -> String;
    /// Gives a secret another value.
    pub fn change_secret(arn: &str, value: &str) -> ();
}

impl Aws {
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self { http: http_client::client(), url: url.trim_end_matches('/').to_owned() }
    }

    /// Temporary credentials of a role, from STS.
    pub async fn credentials(&self, role: &str, session: &str) -> Result<Credentials, BedError> {
        self.credentials_of_function(role, session, &BTreeMap::new()).await
    }

    /// A group with tags of its own, which its instances do not get.
    pub async fn put_tagged_group(&self, name: &str, hooks: &[Hook], tags: &[(&str, &str)]) -> Result<(), BedError> {
        self.put_group_with_tags(name, hooks, &tags.iter().copied().collect()).await
    }

    /// Runs an instance. In a group that has a launch hook, it waits for that.
    pub async fn run_instance(&self, request: &InstanceRequest) -> Result<Instance, BedError> {
        Ok(self.launch(request).await?.instance)
    }

    /// Runs an instance, and answers the notices of its group's launch hooks too.
    pub async fn launch(&self, request: &InstanceRequest) -> Result<Launched, BedError> {
        self.call("launch", &json!(request)).await
    }

    /// A spot interruption: the notice now, the instance gone after `window`.
    pub async fn interrupt(&self, instance_id: &str, window: Duration) -> Result<Vec<Delivered>, BedError> {
        self.interrupt_in(instance_id, window.as_secs_f64()).await
    }

    /// Auto Scaling takes the instance away, past the hooks of its group.
    pub async fn terminate(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "terminate").await
    }

    /// Auto Scaling scales in and keeps the instance in the warm pool: past the terminate hooks it is stopped.
    pub async fn return_to_warm_pool(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "return to warm pool").await
    }

    /// Auto Scaling scales in and keeps the instance in a warm pool whose instances go on running.
    pub async fn return_to_running_warm_pool(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "return to running warm pool").await
    }

    /// Auto Scaling scales out with an instance of the warm pool: it is started, if it does not run, and waits for the
    /// launch hooks.
    pub async fn launch_from_warm_pool(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "launch from warm pool").await
    }

    /// An instance refresh gives the instance another root volume: past the terminate hooks it boots again, and then
    /// the launch hooks give notice.
    pub async fn replace_root_volume(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "replace root volume").await
    }

    pub async fn stop(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.change_state(instance_id, &[Ec2State::Stopping, Ec2State::Stopped]).await
    }

    pub async fn start(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.change_state(instance_id, &[Ec2State::Pending, Ec2State::Running]).await
    }

    /// A spot notice of this moment for an instance, as the function's rule delivers it.
    pub async fn spot_notice(&self, id: &str, instance_id: &str) -> Result<Value, BedError> {
        let mut event: Value = serde_json::from_str(include_str!("../../../../events/spot-interruption.json"))
            .expect("the sample is JSON: a test of the product reads it");
        let now = Timestamp::now();
        event["id"] = json!(id);
        event["time"] = json!(now.round(Unit::Second).unwrap_or(now).to_string());
        event["detail"]["instance-id"] = json!(instance_id);
        let delivered = self.send_notice(&event).await?.into_iter().next();
        let nobody = || BedError::NotMeasured { wanted: "a drain".to_owned(), seen: format!("no rule for {event}") };
        delivered.map(|delivered| delivered.event).ok_or_else(nobody)
    }

    /// Waits for the next delivery ([`Aws::take_deliveries`]).
    pub async fn wait_for_delivery(&self, sender: &str) -> Result<Delivered, BedError> {
        let delivered = self.await_deliveries(sender, 1, WAIT_S).await?.pop();
        delivered.ok_or_else(|| BedError::Waited {
            what: format!("an invocation of {sender}"),
            waited_s: WAIT_S,
            last: "none".to_owned(),
        })
    }

    pub async fn add_fault(&self, fault: &Fault) -> Result<(), BedError> {
        self.call("add_fault", &json!(fault)).await
    }

    /// Gives one caller another bucket of that name (`limits.py`): calls at once, and no more.
    pub async fn limit_calls(&self, access_key_id: &str, bucket: &str, most: u32) -> Result<(), BedError> {
        self.put_limit(access_key_id, bucket, most, 0).await
    }

    /// Makes a queue for somebody else than the product; answers its URL.
    pub async fn create_queue(&self, account: &str, name: &str) -> Result<String, BedError> {
        self.put_queue(name).await?;
        Ok(format!("{}/{account}/{name}", self.url))
    }

    /// Puts a message for each event into such a queue.
    pub async fn put_messages(&self, queue: &str, events: &[Value]) -> Result<(), BedError> {
        self.send_messages(queue, &events.iter().map(Value::to_string).collect::<Vec<_>>()).await
    }

    /// Has the function answer each synchronous invocation. Returns with an error alone.
    pub async fn serve(&self, function: &str, lambda: &Lambda) -> Result<std::convert::Infallible, BedError> {
        self.put_served(function).await?;
        loop {
            let asked = self.asked(function, HOLD_S).await?;
            let Some(id) = asked.get("id") else { continue };
            let (result, failed) = match lambda.invoke(&asked["event"]).await.result {
                Ok(result) => (result, false),
                Err(error) => (json!({"errorMessage": format!("{error:?}")}), true),
            };
            self.said(id, &result, failed).await?;
        }
    }

    async fn call<T: DeserializeOwned>(&self, name: &str, fields: &Value) -> Result<T, BedError> {
        let unreachable = |source| BedError::AwsUnreachable { call: name.to_owned(), source };
        let request = self.http.post(format!("{}/bed/{name}", self.url)).json(fields);
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let text = response.text().await.map_err(unreachable)?;
        let answer = |text| BedError::Aws { call: name.to_owned(), status: status.as_u16(), text };
        if !status.is_success() {
            return Err(answer(text));
        }
        serde_json::from_str(&text).map_err(|error| answer(format!("{text} ({error})")))
    }
}
