//! What the bed's own API takes and gives, as JSON has it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What STS gave for a role.
#[derive(Clone, Deserialize)]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: String,
    pub role_arn: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .field("role_arn", &self.role_arn)
            .finish_non_exhaustive()
    }
}

/// What the template says of how a function is invoked; nothing, where Lambda's defaults hold.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct FunctionLimits {
    pub(crate) maximum_retry_attempts: Option<usize>,
    pub(crate) maximum_event_age_s: Option<u64>,
    pub(crate) reserved_concurrency: Option<usize>,
}

/// What the template has around the function that sends messages, made for one test.
#[derive(Debug, Deserialize)]
pub(crate) struct AnnouncerStack {
    pub(crate) queue: String,
    pub(crate) undelivered: String,
    pub(crate) batch_size: usize,
    pub(crate) window_s: f64,
    pub(crate) timeout_s: u64,
    /// The function's settings.
    pub(crate) variables: BTreeMap<String, String>,
}

/// A lifecycle hook of an Auto Scaling group.
#[derive(Debug, Clone, Serialize)]
pub struct Hook {
    pub name: String,
    pub transition: String,
    pub heartbeat_timeout_s: u32,
    pub default_result: String,
    pub metadata: Option<String>,
    /// How long it waits in all; AWS calculates it from the heartbeat timeout.
    pub global_timeout_s: Option<u32>,
    /// A queue or topic that hears of it beside the event bus, by its ARN. Nothing is sent there.
    pub notifies: Option<String>,
}

impl Hook {
    /// AWS's own defaults, as a node group's terminate hook has them.
    #[must_use]
    pub fn terminate(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            transition: "autoscaling:EC2_INSTANCE_TERMINATING".to_owned(),
            heartbeat_timeout_s: 300,
            default_result: "ABANDON".to_owned(),
            metadata: None,
            global_timeout_s: None,
            notifies: None,
        }
    }

    /// A launch hook, with the same defaults.
    #[must_use]
    pub fn launch(name: &str) -> Self {
        Self { transition: "autoscaling:EC2_INSTANCE_LAUNCHING".to_owned(), ..Self::terminate(name) }
    }

    /// Shorter than AWS would calculate it, for a test that sees it run out.
    #[must_use]
    pub fn global_timeout(self, timeout: Duration) -> Self {
        Self { global_timeout_s: Some(u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX)), ..self }
    }

    #[must_use]
    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        let heartbeat_timeout_s = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX);
        Self { heartbeat_timeout_s, ..self }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(default)]
pub struct InstanceRequest {
    /// Tags the instance as this cluster's.
    pub cluster: Option<String>,
    pub group: Option<String>,
    /// Into the group's warm pool, not into service.
    pub warm_pool: bool,
    pub zone: Option<String>,
    pub spot: bool,
    pub capacity_reservation: Option<CapacityReservation>,
    pub tags: BTreeMap<String, String>,
    /// `ip` or `resource`: which form the private DNS name has.
    pub name_form: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Instance {
    pub instance_id: String,
    pub private_dns_name: String,
    pub zone: String,
    pub provider_id: String,
    pub private_ip: String,
}

/// The capacity reservation that an instance runs in.
#[derive(Debug, Clone, Serialize)]
pub struct CapacityReservation {
    pub id: String,
    /// The instance's lifecycle in EC2's words: `capacity-block` or `interruptible-capacity-reservation`.
    pub lifecycle: Option<String>,
}

/// An instance and the notices of its group's launch hooks.
#[derive(Debug, Clone, Deserialize)]
pub struct Launched {
    #[serde(flatten)]
    pub instance: Instance,
    pub delivered: Vec<Delivered>,
}

/// EC2's states of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ec2State {
    Pending,
    Running,
    Stopping,
    Stopped,
    ShuttingDown,
    Terminated,
}

#[derive(Debug, Clone, Deserialize)]
pub struct InstanceState {
    pub state: String,
    pub lifecycle_state: Option<String>,
    pub actions: Vec<LifecycleAction>,
}

/// One hook's hold on an instance, and how it ended; the latest is the last.
#[derive(Debug, Clone, Deserialize)]
pub struct LifecycleAction {
    pub hook: String,
    pub token: String,
    pub heartbeats: u32,
    pub result: Option<String>,
    pub ended_by: Option<String>,
}

/// An event that one of the template's rules let through, as the rule's target got it.
#[derive(Debug, Clone, Deserialize)]
pub struct Delivered {
    /// The rule's logical id in `template.yaml`.
    pub rule: String,
    pub event: Value,
}

/// A one-time schedule, and the invocation that it is to make.
#[derive(Debug, Clone, Deserialize)]
pub struct Schedule {
    pub group: String,
    pub name: String,
    pub at: Timestamp,
    /// The function's ARN.
    pub target: String,
    /// The payload.
    pub input: Value,
    /// The queue for a payload that cannot be delivered.
    pub dead_letters: Option<String>,
}

impl Schedule {
    /// What it is for: the payload's one key.
    #[must_use]
    pub fn what(&self) -> &str {
        self.input.as_object().and_then(|input| input.keys().next()).map_or("", String::as_str)
    }
}

/// What a node notices of its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Changed {
    Running,
    Stopped,
    Rebooted,
    Terminated,
}

/// One change of one instance.
#[derive(Debug, Clone, Deserialize)]
pub struct Change {
    pub what: Changed,
    #[serde(flatten)]
    pub instance: Instance,
}

/// The changes since a number, and the number to ask with next.
#[derive(Debug, Deserialize)]
pub struct ChangePage {
    pub next: u64,
    pub changes: Vec<Change>,
}

/// One AWS call as the AWS side's journal has it.
#[derive(Debug, Clone, Deserialize)]
pub struct Call {
    /// Unix time in seconds.
    pub at: f64,
    pub service: String,
    pub action: String,
    pub status: u16,
    #[serde(default)]
    pub error_code: Option<String>,
}

/// How an AWS call of one caller goes wrong.
#[derive(Debug, Clone, Serialize)]
pub struct Fault {
    pub access_key_id: String,
    pub service: String,
    pub action: String,
    /// How often; -1 is always.
    pub times: i32,
    pub delay_ms: Option<u64>,
    pub status: Option<u16>,
    pub code: Option<String>,
    pub message: Option<String>,
    /// Drops the connection instead of answering.
    pub reset: bool,
}

impl Fault {
    /// A fault that does nothing yet: `Fault { status: Some(503), ..Fault::of(key, "ec2", "DescribeInstances") }`.
    #[must_use]
    pub fn of(access_key_id: &str, service: &str, action: &str) -> Self {
        Self {
            access_key_id: access_key_id.to_owned(),
            service: service.to_owned(),
            action: action.to_owned(),
            times: -1,
            delay_ms: None,
            status: None,
            code: None,
            message: None,
            reset: false,
        }
    }
}
