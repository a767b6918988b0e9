//! The bed's own API of the AWS side (`/bed/…`): what a test sets up, sends, breaks and counts.
//!
//! The product never comes here: it speaks the AWS APIs of the same server.

mod shapes;

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use shapes::TerminatedPage;
pub use shapes::{
    Call, Credentials, Delivered, Fault, Hook, Instance, InstanceRequest, InstanceState, LifecycleAction, Schedule,
    Terminated,
};

use crate::error::BedError;

/// Longer than any test lets a schedule wait.
const DELIVERY_WAIT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub struct Aws {
    http: reqwest::Client,
    url: String,
}

#[derive(Debug, Deserialize)]
struct Deliveries {
    delivered: Vec<Delivered>,
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

    /// Ends an instance at once, as its owner does with `ec2:TerminateInstances`.
    pub async fn terminate_instance(&self, instance_id: &str) -> Result<(), BedError> {
        self.call::<Value>(Method::DELETE, &format!("instances/{instance_id}"), None).await.map(drop)
    }

    /// Puts an event on the bus; answers what the template's rules made of it.
    pub async fn send_notice(&self, event: &Value) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("notices", &json!({"event": event})).await
    }

    /// What the template's rules let through of the events that this caller has put on the bus itself,
    /// since the last time.
    pub async fn take_deliveries(&self, access_key_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("deliveries", &json!({"access_key_id": access_key_id})).await
    }

    /// Waits for the next of these, such as that of a schedule that fires.
    pub async fn wait_for_delivery(&self, access_key_id: &str) -> Result<Delivered, BedError> {
        let body = json!({"access_key_id": access_key_id, "most": 1, "wait_s": DELIVERY_WAIT.as_secs()});
        let delivered = self.deliveries("deliveries", &body).await?.pop();
        delivered.ok_or_else(|| BedError::Waited {
            what: "an event that a rule lets through".to_owned(),
            waited_s: DELIVERY_WAIT.as_secs(),
            last: "none".to_owned(),
        })
    }

    /// What this caller has scheduled and Scheduler still keeps, the earliest first.
    pub async fn schedules(&self, access_key_id: &str) -> Result<Vec<Schedule>, BedError> {
        self.call(Method::GET, &format!("schedules?access_key_id={access_key_id}"), None).await
    }

    /// The function's variables that refer to a part of its stack, such as its schedule group.
    pub(crate) async fn variables(&self) -> Result<BTreeMap<String, String>, BedError> {
        self.call(Method::GET, "variables", None).await
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

    /// Makes a queue for somebody else than the product; answers its URL.
    pub async fn create_queue(&self, account: &str, name: &str) -> Result<String, BedError> {
        self.post::<Value>("queues", &json!({"name": name})).await?;
        Ok(format!("{}/{account}/{name}", self.url))
    }

    /// Puts a message for each event into such a queue.
    pub async fn put_messages(&self, queue: &str, events: &[Value]) -> Result<(), BedError> {
        let bodies: Vec<String> = events.iter().map(Value::to_string).collect();
        self.post::<Value>("messages", &json!({"name": queue, "bodies": bodies})).await.map(drop)
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
