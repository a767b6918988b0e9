//! Pods, their workloads and budgets: builders, and waits for pods.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::BedError;
use crate::watch::{Objects, until};

const WAIT: Duration = Duration::from_mins(1);
/// Creations at a time: more are not faster, as the API server has no more processors for them.
const CREATED_AT_ONCE: usize = 8;

/// Options of a workload's pods.
#[must_use]
#[derive(Debug, Clone, Default)]
pub struct PodShape {
    annotations: BTreeMap<String, String>,
    spec: BTreeMap<&'static str, Value>,
    more: Vec<Value>,
}

impl PodShape {
    /// Time from the deletion to the exit; zero by default.
    pub fn exits_after(self, time: Duration) -> Self {
        self.timed("spillway.test/exit-after", time)
    }

    /// Time from the binding to Ready; zero by default.
    pub fn ready_after(self, time: Duration) -> Self {
        self.timed("spillway.test/ready-after", time)
    }

    /// Time from Ready to success; infinite by default.
    pub fn completes_after(self, time: Duration) -> Self {
        self.timed("spillway.test/completes-after", time)
    }

    /// `terminationGracePeriodSeconds`; the API server's 30 s by default.
    pub fn grace(self, seconds: u32) -> Self {
        self.spec("terminationGracePeriodSeconds", json!(seconds))
    }

    pub fn priority_class(self, name: &str) -> Self {
        self.spec("priorityClassName", json!(name))
    }

    /// Has the scheduler choose this node.
    pub fn on_node(self, name: &str) -> Self {
        self.spec("nodeSelector", json!({"kubernetes.io/hostname": name}))
    }

    /// Binds the pods to this node without the scheduler.
    pub fn bound_to(self, node: &str) -> Self {
        self.spec("nodeName", json!(node))
    }

    /// Merges more of `metadata` and `spec` into the pods.
    pub fn with(mut self, more: Value) -> Self {
        self.more.push(more);
        self
    }

    fn spec(mut self, field: &'static str, value: Value) -> Self {
        self.spec.insert(field, value);
        self
    }

    fn timed(mut self, annotation: &str, time: Duration) -> Self {
        self.annotations.insert(annotation.to_owned(), format!("{}s", time.as_secs_f64()));
        self
    }

    fn template(&self, app: &str) -> Value {
        let mut template = json!({"metadata": {"labels": {"app": app}, "annotations": self.annotations}});
        template["spec"] = json!(self.spec);
        template["spec"]["containers"] = json!([{"name": "main", "image": "example.test/main"}]);
        for more in &self.more {
            merge(&mut template, more);
        }
        template
    }
}

/// Merges objects field by field, and replaces anything else.
fn merge(base: &mut Value, more: &Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more.clone(),
    }
}

pub fn deployment(namespace: &str, name: &str, replicas: u32, pods: &PodShape) -> Deployment {
    workload(namespace, name, json!({"replicas": replicas}), pods)
}

pub fn daemon_set(namespace: &str, name: &str, pods: &PodShape) -> DaemonSet {
    workload(namespace, name, json!({}), pods)
}

pub(crate) fn workload<K: DeserializeOwned>(namespace: &str, name: &str, mut spec: Value, pods: &PodShape) -> K {
    spec["selector"] = json!({"matchLabels": {"app": name}});
    spec["template"] = pods.template(name);
    object(json!({"metadata": {"namespace": namespace, "name": name}, "spec": spec}))
}

pub fn job(namespace: &str, name: &str, pods: &PodShape) -> Job {
    let mut template = pods.template(name);
    template["spec"]["restartPolicy"] = json!("Never");
    object(json!({"metadata": {"namespace": namespace, "name": name}, "spec": {"template": template}}))
}

/// A pod without a controller.
pub fn bare_pod(namespace: &str, name: &str, pod: &PodShape) -> Pod {
    let mut template = pod.template(name);
    template["metadata"]["namespace"] = json!(namespace);
    template["metadata"]["name"] = json!(name);
    object(template)
}

/// A budget for the pods of the workload of this name.
pub fn budget(namespace: &str, name: &str, min_available: u32) -> PodDisruptionBudget {
    budget_with(namespace, name, "minAvailable", min_available)
}

pub fn budget_of_unavailable(namespace: &str, name: &str, max_unavailable: u32) -> PodDisruptionBudget {
    budget_with(namespace, name, "maxUnavailable", max_unavailable)
}

fn budget_with(namespace: &str, name: &str, field: &str, pods: u32) -> PodDisruptionBudget {
    object(json!({
        "metadata": {"namespace": namespace, "name": name},
        "spec": {field: pods, "selector": {"matchLabels": {"app": name}}},
    }))
}

pub(crate) fn object<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("the builders make valid objects")
}

pub async fn create_namespace(client: &Client, name: &str) -> Result<(), BedError> {
    let namespace: Namespace = object(json!({"metadata": {"name": name}}));
    let creating = BedError::kubernetes(format!("create namespace {name}"));
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.map(drop).map_err(creating)
}

pub async fn create<K>(client: &Client, object: &K) -> Result<K, BedError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let namespace = object.namespace().unwrap_or_default();
    let what = format!("create {} {namespace}/{}", K::kind(&()), object.name_any());
    let objects = Api::<K>::namespaced(client.clone(), &namespace);
    objects.create(&PostParams::default(), object).await.map_err(BedError::kubernetes(what))
}

/// Creates many objects of one kind.
pub async fn create_all<K>(api: &Api<K>, objects: impl Iterator<Item = K>) -> Result<(), BedError>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let creations = objects.map(async |object| {
        let created = api.create(&PostParams::default(), &object).await;
        created.map(drop).map_err(BedError::kubernetes("create many objects"))
    });
    stream::iter(creations).buffer_unordered(CREATED_AT_ONCE).try_collect().await
}

/// Creates a budget, and waits until its controller counts this many healthy pods: before, the budget refuses all evictions.
pub async fn create_budget(client: &Client, budget: &PodDisruptionBudget, healthy: usize) -> Result<(), BedError> {
    create(client, budget).await?;
    let (namespace, name) = (budget.namespace().unwrap_or_default(), budget.name_any());
    let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), &namespace);
    let what = format!("budget {namespace}/{name} to count {healthy} healthy pods");
    until(&budgets, &named(&name), &what, WAIT, |budgets: &Objects<PodDisruptionBudget>| {
        let status = budgets.values().next().and_then(|budget| budget.status.as_ref());
        let counted = status.map_or(0, |status| status.current_healthy);
        if usize::try_from(counted).is_ok_and(|counted| counted >= healthy) { Ok(()) } else { Err(counted.to_string()) }
    })
    .await
}

/// Runs a deployment, and waits until its pods are Ready. Their replacements are never scheduled: the scheduler could bind them
/// to the node before it observes the cordon.
pub async fn run_deployment(
    client: &Client,
    namespace: &str,
    name: &str,
    replicas: u32,
    shape: &PodShape,
) -> Result<Vec<Pod>, BedError> {
    let gated = shape.clone().with(json!({"spec": {"schedulingGates": [{"name": "spillway.test/later"}]}}));
    create(client, &deployment(namespace, name, replicas, &gated)).await?;
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let (count, what) = (replicas as usize, format!("{replicas} pods of {namespace}/{name} to be created"));
    let selector = of_app(name);
    let created = until(&pods, &selector, &what, WAIT, |pods: &Objects<Pod>| {
        let names: Vec<String> = pods.values().map(Pod::name_any).collect();
        if names.len() >= count { Ok(names) } else { Err(format!("{} created", names.len())) }
    });
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    for pod in created.await? {
        let opening = BedError::kubernetes(format!("let pod {namespace}/{pod} be scheduled"));
        pods.patch(&pod, &PatchParams::default(), &open).await.map_err(opening)?;
    }
    until_running_of(client, namespace, name, count).await
}

/// Creates bare pods on a node, and waits until they are Ready.
pub async fn fill_node(
    client: &Client,
    namespace: &str,
    node: &str,
    name: &str,
    count: usize,
    shape: &PodShape,
) -> Result<Vec<Pod>, BedError> {
    let shape = shape.clone().on_node(node);
    let pods = (0..count).map(|number| bare_pod(namespace, &format!("{name}-{number}"), &shape));
    create_all(&Api::namespaced(client.clone(), namespace), pods).await?;
    until_running_on(client, node, count).await
}

/// Pods that are bound to a node, without those that have stopped and are about to leave the store.
pub async fn on_node(client: &Client, node: &str) -> Result<Vec<Pod>, BedError> {
    let bound = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let listing = BedError::kubernetes(format!("list the pods of {node}"));
    let mut pods = Api::<Pod>::all(client.clone()).list(&bound).await.map_err(listing)?.items;
    pods.retain(|pod| pod.metadata.deletion_grace_period_seconds != Some(0) || !pod.finalizers().is_empty());
    Ok(pods)
}

/// Waits until at least `count` pods are Ready on the node.
pub async fn until_running_on(client: &Client, node: &str, count: usize) -> Result<Vec<Pod>, BedError> {
    let bound = WatchParams::default().fields(&format!("spec.nodeName={node}"));
    until_running(&Api::all(client.clone()), &bound, &format!("{count} pods on {node}"), count).await
}

/// Waits until at least `count` pods of a workload are Ready.
pub async fn until_running_of(
    client: &Client,
    namespace: &str,
    name: &str,
    count: usize,
) -> Result<Vec<Pod>, BedError> {
    let pods = Api::namespaced(client.clone(), namespace);
    until_running(&pods, &of_app(name), &format!("{count} pods of {namespace}/{name}"), count).await
}

async fn until_running(
    pods: &Api<Pod>,
    selector: &WatchParams,
    what: &str,
    count: usize,
) -> Result<Vec<Pod>, BedError> {
    until(pods, selector, what, WAIT, |pods: &Objects<Pod>| {
        let running: Vec<Pod> = pods.values().filter(|pod| is_running(pod)).cloned().collect();
        if running.len() >= count { Ok(running) } else { Err(format!("{} running", running.len())) }
    })
    .await
}

/// Waits until this pod, by its UID, is gone.
pub async fn until_gone(client: &Client, pod: &Pod) -> Result<(), BedError> {
    until_instance(client, pod, "to go", |pod| if pod.is_some() { Err("it is still there".to_owned()) } else { Ok(()) })
        .await
}

/// Waits until this pod, by its UID, is as wanted; `wanted` returns an observation otherwise.
pub async fn until_pod(
    client: &Client,
    pod: &Pod,
    what: &str,
    wanted: impl Fn(&Pod) -> Result<(), String>,
) -> Result<(), BedError> {
    until_instance(client, pod, what, |pod| wanted(pod.ok_or("it has gone")?)).await
}

async fn until_instance(
    client: &Client,
    pod: &Pod,
    what: &str,
    wanted: impl Fn(Option<&Pod>) -> Result<(), String>,
) -> Result<(), BedError> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    until(&pods, &named(&name), &format!("pod {namespace}/{name} {what}"), WAIT, |pods: &Objects<Pod>| {
        wanted(pods.values().find(|other| other.uid() == pod.uid()))
    })
    .await
}

/// Waits until a job's pod has succeeded.
pub async fn until_succeeded(client: &Client, namespace: &str, name: &str) -> Result<(), BedError> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    until(&pods, &of_app(name), &format!("{namespace}/{name} to succeed"), WAIT, |pods: &Objects<Pod>| {
        let phase = |pod: &Pod| pod.status.as_ref()?.phase.clone();
        let phases: Vec<String> = pods.values().filter_map(phase).collect();
        if phases.iter().any(|phase| phase == "Succeeded") { Ok(()) } else { Err(phases.join(", ")) }
    })
    .await
}

/// Returns `true` if the pod is running, Ready and not being deleted.
pub fn is_running(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let mut conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_none()
        && status.and_then(|status| status.phase.as_deref()) == Some("Running")
        && conditions.any(|is| is.type_ == "Ready" && is.status == "True")
}

fn of_app(name: &str) -> WatchParams {
    WatchParams::default().labels(&format!("app={name}"))
}

pub(crate) fn named(name: &str) -> WatchParams {
    WatchParams::default().fields(&format!("metadata.name={name}"))
}
