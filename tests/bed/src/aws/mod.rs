//! The bed's own API of the AWS side (`/bed/…`), for tests. The product uses the AWS APIs of the same server.

mod shapes;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use shapes::{AnnouncerStack, Change, ChangePage, Changed, FunctionLimits};
pub use shapes::{
    Call, CapacityReservation, Credentials, Delivered, Ec2State, Fault, Hook, Instance, InstanceRequest, InstanceState,
    Launched, LifecycleAction, Schedule,
};

use crate::error::BedError;
use crate::http_client;
use crate::lambda::Lambda;

/// Maximum wait for a schedule.
const WAIT_S: u64 = 120;
/// Hold of a request for the next synchronous invocation.
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
    /// Credentials of a role for a function with these variables, which decide some of its rights.
    pub(crate) fn credentials_of_function(role: &str, session: &str, variables: &BTreeMap<String, String>) -> Credentials;
    pub(crate) fn limits_of_function(role: &str) -> FunctionLimits;
    /// The template's variables of the function that refer to its stack, such as its schedule group.
    pub(crate) fn variables() -> BTreeMap<String, String>;
    fn put_served(function: &str) -> ();
    fn asked(function: &str, wait_s: u64) -> Value;
    fn said(id: &Value, result: &Value, failed: bool) -> ();

    /// Registers or updates a cluster. `ca` is base64 of PEM; the default mode is `API`.
    pub fn put_cluster(name: &str, endpoint: &str, ca: &str, mode: Option<&str>) -> ();
    /// Removes a cluster from EKS; its control plane runs on.
    pub fn hide_cluster(name: &str) -> ();
    /// Shows another endpoint of a cluster to one caller.
    pub fn override_endpoint(access_key_id: &str, cluster: &str, endpoint: Option<&str>, ca: Option<&str>) -> ();
    pub fn access_entries(cluster: &str) -> Vec<Value>;

    pub fn put_group(name: &str, hooks: &[Hook]) -> ();
    fn put_group_with_tags(name: &str, hooks: &[Hook], tags: &BTreeMap<&str, &str>) -> ();
    /// Hooks and tags of a group.
    pub fn group(name: &str) -> Value;
    /// Sets the state of a group that decides on a replacement, beside hooks and tags, and its replacements a minute ago.
    pub fn put_group_state(
        name: &str, suspended: &[String], warm_pool: bool, rebalances: bool, replaced: u32
    ) -> ();
    /// Gives the spot request of an instance a status of that age.
    pub fn mark_spot_request(instance_id: &str, status: &str, age_s: f64) -> ();
    /// The desired capacity of a group, and the instances that it launched in place of others.
    pub fn launched(name: &str) -> Value;
    pub fn instance(instance_id: &str) -> InstanceState;
    /// Ends an instance at once, as `ec2:TerminateInstances` does.
    pub fn terminate_instance(instance_id: &str) -> ();
    /// Reboots an instance, without an event.
    pub fn reboot(instance_id: &str) -> ();
    /// Takes an instance through these states, which must follow each other.
    pub fn change_state(instance_id: &str, states: &[Ec2State]) -> Vec<Delivered>;
    /// Puts scheduled events of an instance into `DescribeInstanceStatus`, without an event on the bus.
    pub fn announce(instance_id: &str, events: &[Value]) -> ();
    /// Changes of instances since `since`; waits for the first.
    pub(crate) fn changes(since: u64, wait_s: u64) -> ChangePage;
    fn interrupt_in(instance_id: &str, in_s: f64) -> Vec<Delivered>;
    fn move_past_hooks(instance_id: &str, how: &str) -> Vec<Delivered>;

    /// Puts an event on the bus; returns the deliveries of the template's rules.
    pub fn send_notice(event: &Value) -> Vec<Delivered>;
    /// Deliveries to the function since the last call. A sender is an access key id (its events and invocations) or an
    /// instance id (AWS' events of the instance).
    pub fn take_deliveries(sender: &str) -> Vec<Delivered>;
    fn await_deliveries(sender: &str, most: usize, wait_s: u64) -> Vec<Delivered>;
    /// Events of a caller on the bus, matched by a rule or not.
    pub fn events(access_key_id: &str) -> Vec<Value>;
    /// Schedules of a caller that Scheduler still keeps, the earliest first.
    pub fn schedules(access_key_id: &str) -> Vec<Schedule>;
    /// Puts a foreign rule on the bus, with a target by its ARN.
    pub fn put_rule(name: &str, pattern: &Value, target: &str) -> ();
    pub fn delete_rule(name: &str) -> ();
    /// Sets a rule of the world to `ENABLED` or `DISABLED`.
    pub fn switch_rule(name: &str, state: &str) -> ();

    /// Deploys a stack, as far as CloudFormation describes it.
    pub fn deploy_stack(name: &str, text: &str, outputs: &BTreeMap<&str, String>, parameters: &BTreeMap<&str, &str>) -> ();
    pub fn delete_stack(name: &str) -> ();
    /// Names of all that a stack, or its function, could leave in the account, by kind.
    pub fn left() -> Value;

    /// Leaves a caller one part in `by` of each of AWS' quotas.
    pub fn divide_quotas(access_key_id: &str, by: usize) -> ();
    /// Limits pages of instances and of tags to that size for one caller.
    pub fn limit_pages(access_key_id: &str, size: usize) -> ();
    /// Calls of one caller, or of all.
    pub fn calls(access_key_id: Option<&str>) -> Vec<Call>;
    pub fn clear_faults(access_key_id: &str) -> ();
    /// Puts a message into the function's failure queue.
    pub(crate) fn put_failure(body: &str) -> ();
    /// Messages in the function's failure queue.
    pub fn failures() -> Vec<String>;

    /// Deploys queues for the events of this sender, by the template's rule.
    pub(crate) fn deploy_announcer(sender: &str, name: &str, parameters: &BTreeMap<String, String>) -> AnnouncerStack;
    /// Takes messages from a queue as Lambda's records; waits for the first.
    pub(crate) fn receive(name: &str, most: usize, wait_s: f64) -> Vec<Value>;
    /// Deletes messages by their handles, and lets others be received again.
    pub(crate) fn settle(name: &str, done: &[String], come_back: &[String]) -> ();
    /// Receivable messages of a queue, without taking them; waits for `least` messages.
    pub(crate) fn messages(name: &str, least: usize, wait_s: u64) -> Vec<String>;
    fn put_queue(name: &str) -> ();
    fn send_messages(name: &str, bodies: &[String]) -> ();
    /// Creates a topic with a subscriber; returns its ARN.
    pub fn create_topic(name: &str) -> String;
    /// Messages of a topic's subscriber.
    pub fn published(name: &str) -> Vec<Value>;
    /// Puts a `SecureString` into Parameter Store.
    pub fn put_parameter(name: &str, value: &str) -> ();
    /// Puts a secret into Secrets Manager; returns its ARN.
    pub fn put_secret(name: &str, value: &str) -> String;
    pub fn change_secret(arn: &str, value: &str) -> ();
}

impl Aws {
    pub fn new(url: &str) -> Self {
        Self { http: http_client::client(), url: url.trim_end_matches('/').to_owned() }
    }

    pub async fn credentials(&self, role: &str, session: &str) -> Result<Credentials, BedError> {
        self.credentials_of_function(role, session, &BTreeMap::new()).await
    }

    /// Puts a group with tags, which its instances do not get.
    pub async fn put_tagged_group(&self, name: &str, hooks: &[Hook], tags: &[(&str, &str)]) -> Result<(), BedError> {
        self.put_group_with_tags(name, hooks, &tags.iter().copied().collect()).await
    }

    /// Runs an instance. In a group with a launch hook, the instance waits for the hook.
    pub async fn run_instance(&self, request: &InstanceRequest) -> Result<Instance, BedError> {
        Ok(self.launch(request).await?.instance)
    }

    pub async fn launch(&self, request: &InstanceRequest) -> Result<Launched, BedError> {
        self.call("launch", &json!(request)).await
    }

    /// Sends a spot notice now, and takes the instance after `window`.
    pub async fn interrupt(&self, instance_id: &str, window: Duration) -> Result<Vec<Delivered>, BedError> {
        self.interrupt_in(instance_id, window.as_secs_f64()).await
    }

    /// Auto Scaling terminates the instance, past the hooks of its group.
    pub async fn terminate(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "terminate").await
    }

    /// Auto Scaling stops the instance and keeps it in the warm pool, past the terminate hooks.
    pub async fn return_to_warm_pool(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "return to warm pool").await
    }

    /// An instance refresh replaces the root volume: past the terminate hooks the instance boots again, and then the launch
    /// hooks give notice.
    pub async fn replace_root_volume(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "replace root volume").await
    }

    /// A spot notice of this moment, as the function's rule delivers it.
    pub async fn spot_notice(&self, id: &str, instance_id: &str) -> Result<Value, BedError> {
        let mut event: Value = serde_json::from_str(include_str!("../../../../events/spot-interruption.json"))
            .expect("the sample is JSON: a test of the product reads it");
        let now = Timestamp::now();
        event["id"] = json!(id);
        event["time"] = json!(now.round(Unit::Second).unwrap_or(now).to_string());
        event["detail"]["instance-id"] = json!(instance_id);
        let delivered = self.send_notice(&event).await?.into_iter().next();
        let missing = || BedError::NotMeasured { wanted: "a drain".to_owned(), seen: format!("no rule for {event}") };
        delivered.map(|delivered| delivered.event).ok_or_else(missing)
    }

    /// Waits for the next delivery ([`Aws::take_deliveries`]).
    pub async fn wait_for_delivery(&self, sender: &str) -> Result<Delivered, BedError> {
        let delivered = self.await_deliveries(sender, 1, WAIT_S).await?.pop();
        let what = format!("an invocation of {sender}");
        delivered.ok_or_else(|| BedError::Waited { what, waited_s: WAIT_S, last: "none".to_owned() })
    }

    pub async fn add_fault(&self, fault: &Fault) -> Result<(), BedError> {
        self.call("add_fault", &json!(fault)).await
    }

    /// Creates a queue outside the template; returns its URL.
    pub async fn create_queue(&self, account: &str, name: &str) -> Result<String, BedError> {
        self.put_queue(name).await?;
        Ok(format!("{}/{account}/{name}", self.url))
    }

    /// Puts a message for each event into a queue.
    pub async fn put_messages(&self, queue: &str, events: &[Value]) -> Result<(), BedError> {
        self.send_messages(queue, &events.iter().map(Value::to_string).collect::<Vec<_>>()).await
    }

    /// Has the function answer each synchronous invocation. Returns only an error.
    pub async fn serve(&self, function: &str, lambda: &Lambda) -> Result<std::convert::Infallible, BedError> {
        self.put_served(function).await?;
        loop {
            let request = self.asked(function, HOLD_S).await?;
            let Some(id) = request.get("id") else { continue };
            let (result, failed) = match lambda.invoke(&request["event"]).await.result {
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
