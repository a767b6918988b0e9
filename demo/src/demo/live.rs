//! Live view of a cluster: pods and nodes by watches, refused evictions by the API server's audit log.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use spillway_bed::audit::AuditLog;
use spillway_bed::{BedError, World, pods};

/// State of a pod without a node. Not printed: it is short, or the pod never starts.
const PENDING: &str = "pending";
/// Period of reads of the audit log.
const READ_EVERY: Duration = Duration::from_millis(50);

/// View of one drain.
pub(super) struct Live {
    nodes: Followed<Node>,
    pods: Followed<Pod>,
    refusals: Refusals,
    since: Timestamp,
}

impl Live {
    /// Begins to watch. Called before the notice is sent.
    pub(super) async fn begin(world: &World) -> Result<Self, BedError> {
        let client = world.admin();
        let user = "assumed-role/spillway-drain/spillway-drain";
        Ok(Self {
            nodes: Followed::begin(Api::all(client.clone())).await?,
            pods: Followed::begin(Api::all(client)).await?,
            refusals: Refusals { audit: AuditLog::of_user_from_now(&world.audit_log, user)?, printed: BTreeSet::new() },
            since: Timestamp::now(),
        })
    }

    /// Sets the time at which the seconds begin.
    pub(super) fn count_from(&mut self, time: Timestamp) {
        self.since = time;
    }

    pub(super) fn print(&self, subject: &str, event: &str) {
        print(self.since, subject, event);
    }

    /// Prints changes until a future is ready.
    pub(super) async fn during<T>(&mut self, other: impl Future<Output = T>) -> Result<T, BedError> {
        let Self { nodes, pods, refusals, since } = self;
        let failed = tokio::select! {
            done = other => return Ok(done),
            failed = nodes.follow(*since) => failed,
            failed = pods.follow(*since) => failed,
            failed = refusals.follow(*since) => failed,
        };
        failed.map(|never| match never {})
    }
}

fn print(since: Timestamp, subject: &str, event: &str) {
    println!("  {:>6.1} s  {subject:<34} {event}", Timestamp::now().duration_since(since).as_secs_f64());
}

/// An object of the view.
trait Stateful {
    fn called(&self) -> String;
    fn state(&self) -> String;
}

impl Stateful for Node {
    fn called(&self) -> String {
        format!("node {}", short(&self.name_any()))
    }

    fn state(&self) -> String {
        let is_cordoned = self.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
        if is_cordoned { "cordoned: no new pods come here" } else { "takes pods" }.to_owned()
    }
}

impl Stateful for Pod {
    fn called(&self) -> String {
        format!("{}/{}", self.namespace().unwrap_or_default(), self.name_any())
    }

    fn state(&self) -> String {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
        let node = self.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).map(short);
        match (self.metadata.deletion_timestamp.is_some(), node) {
            (true, _) => "evicted: shuts down".to_owned(),
            (false, Some(node)) if pods::is_running(self) => format!("running on {node}"),
            (false, Some(node)) if phase == "Pending" || phase == "Running" => format!("starting on {node}"),
            (false, Some(_)) => phase.to_lowercase(),
            (false, None) => PENDING.to_owned(),
        }
    }
}

/// Name of a node without its domain.
fn short(node: &str) -> &str {
    node.split('.').next().unwrap_or(node)
}

/// All objects of a kind, and their printed states.
struct Followed<K> {
    api: Api<K>,
    version: String,
    /// States by UID: a StatefulSet's next pod has the same name.
    states: BTreeMap<String, String>,
}

impl<K: Stateful + Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug> Followed<K> {
    async fn begin(api: Api<K>) -> Result<Self, BedError> {
        let listing = BedError::kubernetes(format!("list {}", K::plural(&())));
        let listed = api.list(&ListParams::default()).await.map_err(listing)?;
        let version = listed.metadata.resource_version.unwrap_or_default();
        let states = listed.items.iter().map(|object| (object.uid().unwrap_or_default(), object.state())).collect();
        Ok(Self { api, version, states })
    }

    /// Prints each change of a state. A watch ends every few minutes, and continues at its version.
    async fn follow(&mut self, since: Timestamp) -> Result<Infallible, BedError> {
        let watching = || BedError::kubernetes(format!("watch {}", K::plural(&())));
        loop {
            let events = self.api.watch(&WatchParams::default(), &self.version).await.map_err(watching())?;
            let mut events = pin!(events);
            while let Some(event) = events.try_next().await.map_err(watching())? {
                let (object, state) = match &event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, Some(object.state())),
                    WatchEvent::Deleted(object) => (object, None),
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(status) => return Err(watching()(kube::Error::Api(status.clone()))),
                };
                self.version = object.resource_version().unwrap_or_default();
                let uid = object.uid().unwrap_or_default();
                let before = match &state {
                    Some(state) => self.states.insert(uid, state.clone()),
                    None => self.states.remove(&uid),
                };
                if before != state && state.as_deref() != Some(PENDING) {
                    print(since, &object.called(), state.as_deref().unwrap_or("gone"));
                }
            }
        }
    }
}

/// Refused evictions, printed once for each pod.
struct Refusals {
    audit: AuditLog,
    printed: BTreeSet<String>,
}

impl Refusals {
    async fn follow(&mut self, since: Timestamp) -> Result<Infallible, BedError> {
        let mut reads = tokio::time::interval(READ_EVERY);
        loop {
            reads.tick().await;
            let requests = self.audit.requests()?;
            for request in requests.iter().filter(|request| request.subresource == "eviction") {
                let pod = format!("{}/{}", request.namespace, request.name);
                if request.code == Some(429) && self.printed.insert(pod.clone()) {
                    print(since, &pod, "blocked by its budget, requested until it may leave");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(more: &Value) -> String {
        let mut pod = json!({"metadata": {}, "spec": {"containers": []}, "status": {"phase": "Pending"}});
        for (part, fields) in more.as_object().into_iter().flatten() {
            pod[part].as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        }
        serde_json::from_value::<Pod>(pod).expect("a pod").state()
    }

    #[test]
    fn pod_has_a_state_from_start_to_end() {
        let spec = json!({"nodeName": "ip-10-0-0-1.ec2.internal"});
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        let deleted = json!({"deletionTimestamp": "2026-11-21T12:00:00Z"});
        assert_eq!(state(&json!({})), PENDING);
        assert_eq!(state(&json!({"spec": spec})), "starting on ip-10-0-0-1");
        assert_eq!(state(&json!({"spec": spec, "status": ready})), "running on ip-10-0-0-1");
        assert_eq!(state(&json!({"spec": spec, "status": {"phase": "Succeeded"}})), "succeeded");
        assert_eq!(state(&json!({"spec": spec, "metadata": deleted})), "evicted: shuts down");
    }
}
