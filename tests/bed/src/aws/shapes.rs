//! Requests and answers of the bed's own API.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Temporary credentials of a role.
#[derive(Clone, Deserialize)]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

/// The template's limits of a function; absent where Lambda's defaults hold.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct FunctionLimits {
    pub(crate) maximum_retry_attempts: Option<usize>,
    pub(crate) maximum_event_age_s: Option<u64>,
    pub(crate) reserved_concurrency: Option<usize>,
}

/// The template's resources around the announce function, made for one test.
#[derive(Debug, Deserialize)]
pub(crate) struct AnnouncerStack {
    pub(crate) queue: String,
    pub(crate) undelivered: String,
    pub(crate) batch_size: usize,
    pub(crate) timeout_s: u64,
    pub(crate) variables: BTreeMap<String, String>,
}

/// A lifecycle hook of an Auto Scaling group.
#[must_use]
#[derive(Debug, Clone, Serialize)]
pub struct Hook {
    pub name: String,
    pub transition: String,
    pub heartbeat_timeout_s: u64,
    pub default_result: String,
}

impl Hook {
    /// A terminate hook with AWS' defaults.
    pub fn terminate(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            transition: "autoscaling:EC2_INSTANCE_TERMINATING".to_owned(),
            heartbeat_timeout_s: 300,
            default_result: "ABANDON".to_owned(),
        }
    }

    /// A launch hook with the same defaults.
    pub fn launch(name: &str) -> Self {
        Self { transition: "autoscaling:EC2_INSTANCE_LAUNCHING".to_owned(), ..Self::terminate(name) }
    }

    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        Self { heartbeat_timeout_s: timeout.as_secs(), ..self }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct InstanceRequest {
    /// Cluster of the instance's tags.
    pub cluster: Option<String>,
    pub group: Option<String>,
    pub zone: Option<String>,
    pub spot: bool,
    pub capacity_reservation: Option<CapacityReservation>,
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Instance {
    pub instance_id: String,
    pub private_dns_name: String,
    pub zone: String,
    pub provider_id: String,
    pub private_ip: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct CapacityReservation {
    pub id: String,
    /// EC2's lifecycle of the instance: `capacity-block` or `interruptible-capacity-reservation`.
    pub lifecycle: Option<String>,
}

/// An instance, and the notices of its group's launch hooks.
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
    Stopping,
    ShuttingDown,
}

#[derive(Debug, Clone, Deserialize)]
pub struct InstanceState {
    pub state: String,
    pub lifecycle_state: Option<String>,
    /// The latest action is the last.
    pub actions: Vec<LifecycleAction>,
}

/// A hook's hold on an instance, and its end.
#[derive(Debug, Clone, Deserialize)]
pub struct LifecycleAction {
    pub hook: String,
    pub token: String,
    pub heartbeats: u32,
    pub result: Option<String>,
    pub ended_by: Option<String>,
}

/// An event as the target of a template's rule gets it.
#[derive(Debug, Clone, Deserialize)]
pub struct Delivered {
    /// The rule's logical id in `template.yaml`.
    pub rule: String,
    pub event: Value,
}

/// A one-time schedule and its invocation.
#[derive(Debug, Clone, Deserialize)]
pub struct Schedule {
    pub name: String,
    pub at: Timestamp,
    /// Payload of the invocation.
    pub input: Value,
}

/// Change of an instance that its node observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Changed {
    Running,
    Stopped,
    Rebooted,
    Terminated,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Change {
    pub(crate) what: Changed,
    #[serde(flatten)]
    pub(crate) instance: Instance,
}

/// Changes since a number, and the number of the next request.
#[derive(Debug, Deserialize)]
pub(crate) struct ChangePage {
    pub(crate) next: u64,
    pub(crate) changes: Vec<Change>,
}

/// An AWS call in the journal of the AWS side.
#[derive(Debug, Clone, Deserialize)]
pub struct Call {
    /// Unix time in seconds.
    pub at: f64,
    pub service: String,
    pub action: String,
    pub status: u16,
}

/// A fault of each such AWS call of one caller.
#[must_use]
#[derive(Debug, Clone, Serialize)]
pub struct Fault {
    access_key_id: String,
    service: String,
    action: String,
    delay_ms: u64,
    status: Option<u16>,
    code: Option<String>,
    message: Option<String>,
}

impl Fault {
    pub fn refusal(call: (&str, &str, &str), status: u16, code: &str, message: &str) -> Self {
        let (code, message) = (Some(code.to_owned()), Some(message.to_owned()));
        Self { status: Some(status), code, message, ..Self::delay(call, Duration::ZERO) }
    }

    pub fn delay((access_key_id, service, action): (&str, &str, &str), delay: Duration) -> Self {
        Self {
            access_key_id: access_key_id.to_owned(),
            service: service.to_owned(),
            action: action.to_owned(),
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            status: None,
            code: None,
            message: None,
        }
    }
}
