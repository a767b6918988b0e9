//! Pods and what keeps them: builders that say only what a test is about, and waiting for them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
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
/// Pods of a node that are created at a time.
const CREATED_AT_ONCE: usize = 8;

/// What a workload's pods are like.
#[derive(Debug, Clone, Default)]
pub struct PodShape {
    annotations: BTreeMap<String, String>,
    grace_s: Option<u32>,
    priority_class: Option<String>,
    node: Option<String>,
    more: Vec<Value>,
}

impl PodShape {
    /// How long a pod takes to exit once asked to; at once when unsaid.
    #[must_use]
    pub fn exits_after(self, time: Duration) -> Self {
        self.timed("spillway.test/exit-after", time)
    }

    /// How long a pod takes to become Ready once bound; at once when unsaid.
    #[must_use]
    pub fn ready_after(self, time: Duration) -> Self {
        self.timed("spillway.test/ready-after", time)
    }

    /// How long a pod takes to succeed once Ready; for ever when unsaid.
    #[must_use]
    pub fn completes_after(self, time: Duration) -> Self {
        self.timed("spillway.test/completes-after", time)
    }

    /// `terminationGracePeriodSeconds`; the API server's 30 s when unsaid.
    #[must_use]
    pub fn grace(mut self, seconds: u32) -> Self {
        self.grace_s = Some(seconds);
        self
    }

    /// Such as `system-cluster-critical`.
    #[must_use]
    pub fn priority_class(mut self, name: &str) -> Self {
        self.priority_class = Some(name.to_owned());
        self
    }

    /// Schedules the pods to this node only.
    #[must_use]
    pub fn on_node(mut self, name: &str) -> Self {
        self.node = Some(name.to_owned());
        self
    }

    /// Whatever else `metadata` and `spec` say, laid over the rest.
    #[must_use]
    pub fn with(mut self, more: Value) -> Self {
        self.more.push(more);
        self
    }

    /// Binds the pods to this node itself, past the scheduler.
    #[must_use]
    pub fn bound_to(self, node: &str) -> Self {
        self.with(json!({"spec": {"nodeName": node}}))
    }

    fn timed(mut self, annotation: &str, time: Duration) -> Self {
        self.annotations.insert(annotation.to_owned(), format!("{}s", time.as_secs_f64()));
        self
    }

    fn template(&self, app: &str) -> Value {
        let Self { annotations, grace_s, priority_class, node, more } = self;
        let mut spec = json!({"containers": [{"name": "main", "image": "example.test/main"}]});
        if let Some(seconds) = grace_s {
            spec["terminationGracePeriodSeconds"] = json!(seconds);
        }
        if let Some(name) = priority_class {
            spec["priorityClassName"] = json!(name);
        }
        if let Some(name) = node {
            spec["nodeSelector"] = json!({"kubernetes.io/hostname": name});
        }
        let mut template = json!({"metadata": {"labels": {"app": app}, "annotations": annotations}, "spec": spec});
        for more in more {
            lay_over(&mut template, more);
        }
        template
    }
}

/// An object's fields one by one, anything else whole.
fn lay_over(base: &mut Value, more: &Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                lay_over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more.clone(),
    }
}

#[must_use]
pub fn deployment(namespace: &str, name: &str, replicas: u32, pods: &PodShape) -> Deployment {
    let own = json!({"replicas": replicas});
    workload("apps/v1", "Deployment", namespace, name, own, pods)
}

/// Its pods come and go all at once, in no order.
#[must_use]
pub fn stateful_set(namespace: &str, name: &str, replicas: u32, pods: &PodShape) -> StatefulSet {
    let own = json!({
        "replicas": replicas,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
    });
    workload("apps/v1", "StatefulSet", namespace, name, own, pods)
}

#[must_use]
pub fn daemon_set(namespace: &str, name: &str, pods: &PodShape) -> DaemonSet {
    workload("apps/v1", "DaemonSet", namespace, name, json!({}), pods)
}

#[must_use]
pub fn job(namespace: &str, name: &str, pods: &PodShape) -> Job {
    let mut template = pods.template(name);
    template["spec"]["restartPolicy"] = json!("Never");
    made(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"template": template},
    }))
}

/// A pod that nothing will replace.
#[must_use]
pub fn bare_pod(namespace: &str, name: &str, pod: &PodShape) -> Pod {
    let mut object = pod.template(name);
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["name"] = json!(name);
    made(object)
}

/// For the pods of the workload of this name.
#[must_use]
pub fn budget(namespace: &str, name: &str, min_available: u32) -> PodDisruptionBudget {
    made(json!({
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": name}}},
    }))
}

/// For the pods of the workload of this name: one of them may be away at a time.
#[must_use]
pub fn budget_of_one_away(namespace: &str, name: &str) -> PodDisruptionBudget {
    made(json!({
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
    }))
}

pub async fn create_namespace(client: &Client, name: &str) -> Result<(), BedError> {
    let namespace: Namespace = made(json!({"metadata": {"name": name}}));
    let creating = BedError::kubernetes(format!("create namespace {name}"));
    let namespaces = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.map(drop).map_err(creating)
}

/// Creates what a builder above made.
pub async fn create<K>(client: &Client, object: &K) -> Result<K, BedError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let namespace = object.namespace().unwrap_or_default();
    let what = format!("create {} {namespace}/{}", K::kind(&()), object.name_any());
    let objects = Api::<K>::namespaced(client.clone(), &namespace);
    objects.create(&PostParams::default(), object).await.map_err(BedError::kubernetes(what))
}

/// Runs a deployment, and answers its pods when they are Ready. What comes in their place is never scheduled: a
/// scheduler that stands still while a node is cordoned and its pods leave may hear of the new ones first, and bind them
/// there.
pub async fn run_deployment(
    client: &Client,
    namespace: &str,
    name: &str,
    replicas: u32,
    shape: &PodShape,
) -> Result<Vec<Pod>, BedError> {
    let gated = shape.clone().with(json!({"spec": {"schedulingGates": [{"name": "spillway.test/later"}]}}));
    create(client, &deployment(namespace, name, replicas, &gated)).await?;
    let own = WatchParams::default().labels(&format!("app={name}"));
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let (count, what) = (replicas as usize, format!("{replicas} pods of {namespace}/{name} to be made"));
    let made = until(&pods, &own, &what, WAIT, |pods: &Objects<Pod>| {
        let made: Vec<String> = pods.values().map(Pod::name_any).collect();
        if made.len() >= count { Ok(made) } else { Err(format!("{} made", made.len())) }
    });
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    for pod in made.await? {
        let opening = BedError::kubernetes(format!("let pod {namespace}/{pod} be scheduled"));
        pods.patch(&pod, &PatchParams::default(), &open).await.map_err(opening)?;
    }
    until_running_of(client, namespace, name, count).await
}

/// Puts bare pods on a node, and answers them when they are Ready. Nothing puts them back.
pub async fn fill_node(
    client: &Client,
    namespace: &str,
    node: &str,
    name: &str,
    count: usize,
    shape: &PodShape,
) -> Result<Vec<Pod>, BedError> {
    let shape = shape.clone().on_node(node);
    let creations = (0..count).map(|number| {
        let pod = bare_pod(namespace, &format!("{name}-{number}"), &shape);
        async move { create(client, &pod).await }
    });
    let creations = futures_util::stream::iter(creations).buffer_unordered(CREATED_AT_ONCE);
    creations.try_collect::<Vec<Pod>>().await?;
    until_running_on(client, node, count).await
}

/// All pods that are bound to a node, finished and leaving ones too. One that has stopped, and that nothing keeps, is on
/// its way out of the store and is not counted: a moment later it would not be there.
pub async fn on_node(client: &Client, node: &str) -> Result<Vec<Pod>, BedError> {
    let bound = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let listing = BedError::kubernetes(format!("list the pods of {node}"));
    let mut pods = Api::<Pod>::all(client.clone()).list(&bound).await.map_err(listing)?.items;
    pods.retain(|pod| pod.metadata.deletion_grace_period_seconds != Some(0) || !pod.finalizers().is_empty());
    Ok(pods)
}

/// Waits until at least `count` pods are Ready on the node, and answers them.
pub async fn until_running_on(client: &Client, node: &str, count: usize) -> Result<Vec<Pod>, BedError> {
    let bound = WatchParams::default().fields(&format!("spec.nodeName={node}"));
    let pods = Api::<Pod>::all(client.clone());
    until_running(&pods, &bound, &format!("{count} pods on {node}"), count).await
}

/// Waits until at least `count` pods of a workload are Ready, wherever, and answers them.
pub async fn until_running_of(
    client: &Client,
    namespace: &str,
    name: &str,
    count: usize,
) -> Result<Vec<Pod>, BedError> {
    let own = WatchParams::default().labels(&format!("app={name}"));
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    until_running(&pods, &own, &format!("{count} pods of {namespace}/{name}"), count).await
}

/// Waits until this very pod, and not only one of its name, is gone.
pub async fn until_gone(client: &Client, pod: &Pod) -> Result<(), BedError> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let own = WatchParams::default().fields(&format!("metadata.name={name}"));
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let what = format!("pod {namespace}/{name} to go");
    until(&pods, &own, &what, WAIT, |pods: &Objects<Pod>| {
        let there = pods.values().any(|other| other.uid() == pod.uid());
        if there { Err("it is still there".to_owned()) } else { Ok(()) }
    })
    .await
}

/// Waits until this very pod is as wanted; `wanted` says what it sees while it is not.
pub async fn until_pod(
    client: &Client,
    pod: &Pod,
    what: &str,
    wanted: impl Fn(&Pod) -> Result<(), String>,
) -> Result<(), BedError> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let own = WatchParams::default().fields(&format!("metadata.name={name}"));
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    until(&pods, &own, &format!("pod {namespace}/{name} {what}"), WAIT, |pods: &Objects<Pod>| {
        wanted(pods.values().find(|other| other.uid() == pod.uid()).ok_or("it has gone")?)
    })
    .await
}

/// Waits until a job's pod has finished well.
pub async fn until_succeeded(client: &Client, namespace: &str, name: &str) -> Result<(), BedError> {
    let own = WatchParams::default().labels(&format!("app={name}"));
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let what = format!("job {namespace}/{name} to finish");
    until(&pods, &own, &what, WAIT, |pods: &Objects<Pod>| {
        let phase = |pod: &Pod| pod.status.as_ref()?.phase.clone();
        let phases: Vec<String> = pods.values().filter_map(phase).collect();
        if phases.iter().any(|phase| phase == "Succeeded") { Ok(()) } else { Err(phases.join(", ")) }
    })
    .await
}

/// Waits until the budget's controller counts this many healthy pods: before, it refuses all.
pub async fn until_budget_sees(client: &Client, namespace: &str, name: &str, healthy: i32) -> Result<(), BedError> {
    let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), namespace);
    let own = WatchParams::default().fields(&format!("metadata.name={name}"));
    let what = format!("budget {namespace}/{name} to see {healthy} healthy pods");
    until(&budgets, &own, &what, WAIT, |budgets: &Objects<PodDisruptionBudget>| {
        let budget = budgets.values().next().ok_or("there is none")?;
        let seen = budget.status.as_ref().map_or(0, |status| status.current_healthy);
        if seen >= healthy { Ok(()) } else { Err(format!("it sees {seen}")) }
    })
    .await
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

/// Running, Ready and not on its way out.
#[must_use]
pub fn is_running(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_none()
        && status.and_then(|status| status.phase.as_deref()) == Some("Running")
        && conditions.clone().any(|is| is.type_ == "Ready" && is.status == "True")
}

fn workload<K: DeserializeOwned>(
    version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
    mut spec: Value,
    pods: &PodShape,
) -> K {
    spec["selector"] = json!({"matchLabels": {"app": name}});
    spec["template"] = pods.template(name);
    made(json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    }))
}

fn made<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("the builders above make what they say")
}
