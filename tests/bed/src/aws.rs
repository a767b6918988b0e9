//! The bed's own API of the AWS side (`/bed/…`): what a test sets up, sends, breaks and counts.
//!
//! The product never comes here: it speaks the AWS APIs of the same server.

use std::time::Duration;

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::BedError;

#[derive(Debug, Clone)]
pub struct Aws {
    http: reqwest::Client,
    url: String,
}

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

/// A terminate hook of an Auto Scaling group.
#[derive(Debug, Clone, Serialize)]
pub struct Hook {
    pub name: String,
    pub transition: String,
    pub heartbeat_timeout_s: u32,
    pub default_result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
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
        }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    pub spot: bool,
    pub tags: std::collections::BTreeMap<String, String>,
    /// `ip` or `resource`: which form the private DNS name has.
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[derive(Debug, Clone, Deserialize)]
pub struct InstanceState {
    pub state: String,
    pub lifecycle_state: Option<String>,
    pub actions: Vec<LifecycleAction>,
}

/// One hook's hold on a terminating instance, and how it ended.
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

#[derive(Debug, Deserialize)]
struct Deliveries {
    delivered: Vec<Delivered>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Terminated {
    pub instance_id: String,
    pub provider_id: String,
    pub private_dns_name: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TerminatedPage {
    pub(crate) next: u64,
    pub(crate) instances: Vec<Terminated>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Drops the connection instead of answering.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
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

impl Aws {
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self {
            // The caller's proxy settings are for another network.
            http: reqwest::Client::builder().no_proxy().build().expect("a client without TLS has nothing to fail on"),
            url: url.trim_end_matches('/').to_owned(),
        }
    }

    /// Temporary credentials of a role, from STS.
    pub async fn credentials(&self, role: &str, session: &str) -> Result<Credentials, BedError> {
        self.post("credentials", &json!({"role": role, "session": session})).await
    }

    /// Registers a cluster for `DescribeCluster`, or updates it. `ca` is base64 of PEM.
    pub async fn put_cluster(&self, name: &str, endpoint: &str, ca: &str) -> Result<(), BedError> {
        let body = json!({"name": name, "endpoint": endpoint, "ca": ca});
        self.post::<Value>("clusters", &body).await.map(drop)
    }

    /// Shows this caller another endpoint for a cluster, such as a proxy's.
    pub async fn override_endpoint(
        &self,
        access_key_id: &str,
        cluster: &str,
        endpoint: Option<&str>,
        ca: Option<&str>,
    ) -> Result<(), BedError> {
        let mut body = json!({"access_key_id": access_key_id, "cluster": cluster});
        for (key, value) in [("endpoint", endpoint), ("ca", ca)] {
            if let Some(value) = value {
                body[key] = json!(value);
            }
        }
        self.post::<Value>("overrides", &body).await.map(drop)
    }

    pub async fn put_group(&self, name: &str, hooks: &[Hook]) -> Result<(), BedError> {
        let body = json!({"name": name, "hooks": hooks});
        self.post::<Value>("groups", &body).await.map(drop)
    }

    pub async fn run_instance(&self, request: &InstanceRequest) -> Result<Instance, BedError> {
        self.post("instances", &json!(request)).await
    }

    pub async fn instance(&self, instance_id: &str) -> Result<InstanceState, BedError> {
        self.call(Method::GET, &format!("instances/{instance_id}"), None).await
    }

    /// Puts an event on the bus; answers what the template's rules made of it.
    pub async fn send_notice(&self, event: &Value) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("notices", &json!({"event": event})).await
    }

    /// A spot interruption: the notice now, the instance gone after `window`.
    pub async fn interrupt(&self, instance_id: &str, window: Duration) -> Result<Vec<Delivered>, BedError> {
        let body = json!({"instance_id": instance_id, "in_s": window.as_secs_f64()});
        self.deliveries("interrupt", &body).await
    }

    /// Auto Scaling takes the instance away, past the hooks of its group.
    pub async fn terminate(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("terminate", &json!({"instance_id": instance_id})).await
    }

    /// The calls of one caller, or of all.
    pub async fn calls(&self, access_key_id: Option<&str>) -> Result<Vec<Call>, BedError> {
        let filter = access_key_id.map_or_else(String::new, |key| format!("?access_key_id={key}"));
        self.call(Method::GET, &format!("calls{filter}"), None).await
    }

    pub async fn add_fault(&self, fault: &Fault) -> Result<(), BedError> {
        self.post::<Value>("faults", &json!(fault)).await.map(drop)
    }

    pub async fn clear_faults(&self, access_key_id: &str) -> Result<(), BedError> {
        let path = format!("faults?access_key_id={access_key_id}");
        self.call::<Value>(Method::DELETE, &path, None).await.map(drop)
    }

    /// Puts a message on the function's failure queue, as Lambda's on-failure destination does.
    pub async fn put_failure(&self, body: &str) -> Result<(), BedError> {
        self.post::<Value>("failures", &json!({"body": body})).await.map(drop)
    }

    /// The messages in the function's failure queue.
    pub async fn failures(&self) -> Result<Vec<String>, BedError> {
        self.call(Method::GET, "failures", None).await
    }

    /// Waits up to `wait` for instances that have gone since `since`.
    pub(crate) async fn terminated(&self, since: u64, wait: Duration) -> Result<TerminatedPage, BedError> {
        let path = format!("terminated?since={since}&wait_s={}", wait.as_secs());
        self.call(Method::GET, &path, None).await
    }

    async fn deliveries(&self, path: &str, body: &Value) -> Result<Vec<Delivered>, BedError> {
        let answer: Deliveries = self.post(path, body).await?;
        Ok(answer.delivered)
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, BedError> {
        self.call(Method::POST, path, Some(body)).await
    }

    async fn call<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<&Value>) -> Result<T, BedError> {
        let call = format!("{method} /bed/{path}");
        let unreachable = |source| BedError::AwsUnreachable { call: call.clone(), source };
        let mut request = self.http.request(method.clone(), format!("{}/bed/{path}", self.url));
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let text = response.text().await.map_err(unreachable)?;
        let answer = |text: String| BedError::Aws { call: call.clone(), status: status.as_u16(), text };
        if !status.is_success() {
            return Err(answer(text));
        }
        // An endpoint that has nothing to say may say nothing.
        let text = if text.is_empty() { "null".to_owned() } else { text };
        serde_json::from_str(&text).map_err(|error| answer(format!("{text} ({error})")))
    }
}
