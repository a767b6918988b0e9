//! The bed's own API of the AWS side (`/bed/…`): what a test sets up, sends, breaks and counts.
//!
//! * this file: the client; credentials, clusters and groups, calls and faults, queues;
//! * `instances`: an instance's life, as EC2 and Auto Scaling have it;
//! * `bus`: events and schedules, and what the template's rules make of them;
//! * `announcing`: the queues of messages about drains, and what they go to;
//! * `enrolling`: the stack, access entries, and a function that answers who invokes it;
//! * `shapes`: what goes over the wire.
//!
//! The product never comes here: it speaks the AWS APIs of the same server.

mod announcing;
mod bus;
mod enrolling;
mod instances;
mod shapes;

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use shapes::FunctionLimits;
pub use shapes::{
    Call, CapacityReservation, Change, ChangePage, Changed, Credentials, DeadLetter, Delivered, Ec2State, Fault, Hook,
    Instance, InstanceRequest, InstanceState, Launched, LifecycleAction, Refusal, Schedule,
};

use crate::error::BedError;
use crate::http_client;

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
        Self { http: http_client::client(), url: url.trim_end_matches('/').to_owned() }
    }

    /// Temporary credentials of a role, from STS.
    pub async fn credentials(&self, role: &str, session: &str) -> Result<Credentials, BedError> {
        self.credentials_of_function(role, session, &BTreeMap::new()).await
    }

    /// The same for a function with these variables, on which its rights may hang.
    pub(crate) async fn credentials_of_function(
        &self,
        role: &str,
        name: &str,
        variables: &BTreeMap<String, String>,
    ) -> Result<Credentials, BedError> {
        self.post("credentials", &json!({"role": role, "session": name, "variables": variables})).await
    }

    /// What the template says of the function that has this role.
    pub(crate) async fn limits_of_function(&self, role: &str) -> Result<FunctionLimits, BedError> {
        self.call(Method::GET, &format!("functions?role={role}"), None).await
    }

    /// Registers a cluster for `DescribeCluster`, or updates it. `ca` is base64 of PEM; the mode is `API` if nobody says.
    pub async fn put_cluster(&self, name: &str, endpoint: &str, ca: &str, mode: Option<&str>) -> Result<(), BedError> {
        let body = json!({"name": name, "endpoint": endpoint, "ca": ca, "mode": mode.unwrap_or("API")});
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
        self.put_tagged_group(name, hooks, &[]).await
    }

    /// A group with tags of its own, which its instances do not get.
    pub async fn put_tagged_group(&self, name: &str, hooks: &[Hook], tags: &[(&str, &str)]) -> Result<(), BedError> {
        let tags: BTreeMap<_, _> = tags.iter().copied().collect();
        let body = json!({"name": name, "hooks": hooks, "tags": tags});
        self.post::<Value>("groups", &body).await.map(drop)
    }

    /// A group that keeps an instance whose terminate hook is abandoned.
    pub async fn put_group_that_keeps(&self, name: &str, hooks: &[Hook]) -> Result<(), BedError> {
        let body = json!({"name": name, "hooks": hooks, "tags": {}, "keeps_abandoned": true});
        self.post::<Value>("groups", &body).await.map(drop)
    }

    /// Gives this caller pages of that size at most, of instances and of tags.
    pub async fn limit_pages(&self, access_key_id: &str, size: usize) -> Result<(), BedError> {
        self.post::<Value>("pages", &json!({"access_key_id": access_key_id, "size": size})).await.map(drop)
    }

    /// The calls of one caller, or of all.
    pub async fn calls(&self, access_key_id: Option<&str>) -> Result<Vec<Call>, BedError> {
        let filter = access_key_id.map_or_else(String::new, |key| format!("?access_key_id={key}"));
        self.call(Method::GET, &format!("calls{filter}"), None).await
    }

    pub async fn add_fault(&self, fault: &Fault) -> Result<(), BedError> {
        self.post::<Value>("faults", &json!(fault)).await.map(drop)
    }

    /// Gives this caller another bucket of that name (`limits.py`): calls at once, and no more.
    pub async fn limit_calls(&self, access_key_id: &str, bucket: &str, most: u32) -> Result<(), BedError> {
        let body = json!({"access_key_id": access_key_id, "bucket": bucket, "most": most, "per_second": 0});
        self.post::<Value>("limits", &body).await.map(drop)
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
