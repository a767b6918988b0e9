//! Pods and their budgets: evictions and deletions (kubernetes, `pkg/registry/core/pod/storage/eviction.go`; apiserver,
//! `registry/rest/delete.go`).

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::answers::{self, ApiAnswer};
use super::request::ApiRequest;
use super::store::Resource;
use super::{Cluster, ClusterEvent};
use crate::fact::Fact;
use crate::plan::{Annotation, App, Owner};

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) app: usize,
    pub(crate) node: Option<String>,
    pub(crate) created: Timestamp,
    pub(crate) has_started: bool,
    pub(crate) is_ready: bool,
    pub(crate) deletion: Option<PodDeletion>,
    /// Has the condition `DisruptionTarget`, so that its Job does not count a failure.
    pub(crate) is_disruption_target: bool,
    /// Its containers have stopped.
    pub(crate) has_stopped: bool,
    /// Removed by the garbage collector, perhaps while it runs.
    pub(crate) is_collected: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PodDeletion {
    pub(crate) by: Timestamp,
    pub(crate) grace_s: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Budget {
    pub(super) app: usize,
    pub(super) desired: usize,
    pub(super) healthy: usize,
    pub(super) allowed: usize,
}

impl Cluster {
    pub(super) fn put_pod(&mut self, pod: Pod) {
        self.store.put(Resource::Pod, &pod.uid, &pod.json(&self.plan.apps[pod.app]));
        let app = pod.app;
        self.pods.insert(pod.uid.clone(), pod);
        self.recount_budgets(app);
    }

    pub(super) fn drop_pod(&mut self, uid: &str) {
        let Some(pod) = self.pods.remove(uid) else { return };
        self.effects.fact(Fact::PodGone { uid: uid.to_owned(), is_collected: pod.is_collected && !pod.has_stopped });
        self.store.drop(Resource::Pod, uid, &pod.json(&self.plan.apps[pod.app]));
        self.release_volume(&pod);
        self.recount_budgets(pod.app);
        self.replace_missing(pod.app);
    }

    pub(super) fn put_budget(&mut self, name: &str, budget: Budget) {
        let app = &self.plan.apps[budget.app];
        let json = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": app.namespace(), "uid": format!("uid-{name}"), "generation": 1},
            "spec": {"minAvailable": app.needs},
            "status": {"observedGeneration": 1, "disruptionsAllowed": budget.allowed, "currentHealthy": budget.healthy,
                "desiredHealthy": budget.desired, "expectedPods": app.pods},
        });
        self.store.put(Resource::Budget, name, &json);
        self.budgets.insert(name.to_owned(), budget);
    }

    /// Returns `true` if an app has one budget, which allows a disruption.
    pub(super) fn allows(&self, app: usize) -> bool {
        self.plan.apps[app].budgets == 1 && self.budgets.values().any(|budget| budget.app == app && budget.allowed > 0)
    }

    /// Adds the condition `DisruptionTarget`, the only change of a pod's status.
    pub(super) fn patch_pod_status(&mut self, request: &ApiRequest) -> ApiAnswer {
        let pod = match self.named(request) {
            Ok(pod) if request.body["metadata"]["uid"] == *pod.uid => pod,
            Ok(pod) => return answers::uid_is_immutable(&pod.name),
            Err(answer) => return *answer,
        };
        let uid = pod.uid.clone();
        self.put_pod(Pod { is_disruption_target: true, ..pod });
        ApiAnswer::Says(200, self.store.get(Resource::Pod, &uid).unwrap_or_default().to_owned())
    }

    pub(super) fn evict(&mut self, request: &ApiRequest) -> ApiAnswer {
        let pod = match self.named(request) {
            Ok(pod) => pod,
            Err(answer) => return *answer,
        };
        let is_dry_run = request.delete_options()["dryRun"] == json!(["All"]);
        // Budgets do not protect pods that are leaving or have not started.
        if pod.deletion.is_none() && pod.has_started {
            let of_app = self.budgets.iter().filter(|(_, budget)| budget.app == pod.app);
            let budgets: Vec<(String, Budget)> = of_app.map(|(name, budget)| (name.clone(), budget.clone())).collect();
            match &budgets[..] {
                // Policy IfHealthyBudget, the default.
                [(_, budget)] if !pod.is_ready && (1..=budget.healthy).contains(&budget.desired) => {}
                [(name, Budget { desired, healthy, allowed: 0, .. })] => {
                    let why = format!(
                        "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
                    );
                    return answers::blocked_by_budget(&pod.name, &why);
                }
                [(name, budget)] if !is_dry_run => {
                    self.put_budget(name, Budget { allowed: budget.allowed - 1, ..budget.clone() });
                }
                [] | [_] => {}
                _ => return answers::several_budgets(),
            }
        }
        if is_dry_run {
            return answers::success(201);
        }
        self.begin_deletion(&pod.uid, request.delete_options()["gracePeriodSeconds"].as_u64());
        answers::success(201)
    }

    pub(super) fn delete(&mut self, request: &ApiRequest) -> ApiAnswer {
        let pod = match self.named(request) {
            Ok(pod) => pod,
            Err(answer) => return *answer,
        };
        self.begin_deletion(&pod.uid, request.delete_options()["gracePeriodSeconds"].as_u64());
        let left = self.store.get(Resource::Pod, &pod.uid).map(str::to_owned);
        ApiAnswer::Says(200, left.unwrap_or_else(|| pod.json(&self.plan.apps[pod.app]).to_string()))
    }

    /// Returns the pod of a request, unless the UID is another.
    fn named(&self, request: &ApiRequest) -> Result<Pod, Box<ApiAnswer>> {
        let is_named = |pod: &&Pod| {
            pod.name == request.name && request.namespace.as_deref() == Some(self.plan.apps[pod.app].namespace())
        };
        let pod = self.pods.values().find(is_named);
        let Some(pod) = pod else { return Err(Box::new(answers::not_found("pods", &request.name))) };
        match request.delete_options()["preconditions"]["uid"].as_str() {
            Some(uid) if uid != pod.uid => Err(Box::new(answers::other_uid(&pod.name, uid, &pod.uid))),
            _ => Ok(pod.clone()),
        }
    }

    /// Begins the deletion of a pod, or shortens its grace period.
    fn begin_deletion(&mut self, uid: &str, grace_s: Option<u64>) {
        let Some(mut pod) = self.pods.get(uid).cloned() else { return };
        let now = self.clock.second();
        let own = grace_s.unwrap_or(self.plan.apps[pod.app].grace_s);
        let deletion = match pod.deletion {
            None if pod.node.is_none() => return self.drop_pod(uid),
            None => PodDeletion { by: now + seconds(own), grace_s: own },
            Some(before) if grace_s.is_some_and(|given| given < before.grace_s) => {
                let by = before.by - seconds(before.grace_s) + seconds(own);
                let is_late = by < now;
                PodDeletion { by: if is_late { now + seconds(1) } else { by }, grace_s: if is_late { 1 } else { own } }
            }
            Some(_) => return,
        };
        if deletion.grace_s == 0 {
            return self.drop_pod(uid);
        }
        let (node, app) = (self.id_of(pod.node.as_deref().unwrap_or_default()), pod.app);
        self.effects.fact(Fact::PodDeleted { uid: uid.to_owned(), node, grace_s: deletion.grace_s });
        pod.deletion = Some(deletion);
        self.put_pod(pod);
        // Exit by itself or at the end of its grace.
        let within = self.plan.apps[app].exits_after.min(std::time::Duration::from_secs(deletion.grace_s));
        let reported = within + self.dice.ms(20..900);
        self.later(reported, ClusterEvent::PodExits { uid: uid.to_owned() });
        self.replace_missing(app);
    }
}

fn seconds(seconds: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))
}

impl Pod {
    fn json(&self, app: &App) -> Value {
        let mut metadata = json!({"name": self.name, "namespace": app.namespace(), "uid": self.uid, "resourceVersion": "0",
            "creationTimestamp": self.created});
        let owner = match app.owner {
            Owner::StatefulSet => Some("StatefulSet"),
            Owner::ReplicaSet => Some("ReplicaSet"),
            Owner::DaemonSet => Some("DaemonSet"),
            Owner::Mirror | Owner::Unowned => None,
        };
        if let Some(kind) = owner {
            let uid = format!("owner-{}", self.app);
            metadata["ownerReferences"] =
                json!([{"apiVersion": "apps/v1", "kind": kind, "name": "owner", "uid": uid, "controller": true}]);
        }
        if app.owner == Owner::Mirror {
            metadata["annotations"] = json!({"kubernetes.io/config.mirror": "file"});
        } else if let Some((key, value)) = app.annotation.map(Annotation::pair) {
            metadata["annotations"] = json!({key: value});
        }
        if let Some(deletion) = self.deletion {
            metadata["deletionTimestamp"] = json!(deletion.by);
            metadata["deletionGracePeriodSeconds"] = json!(deletion.grace_s);
        }
        let mut spec = json!({"terminationGracePeriodSeconds": app.grace_s});
        let ready = json!({"type": "Ready", "status": if self.is_ready { "True" } else { "False" }});
        let mut conditions = vec![ready];
        let mut status = json!({"phase": if self.has_started { "Running" } else { "Pending" }});
        if let Some(node) = &self.node {
            spec["nodeName"] = json!(node);
            status["startTime"] = json!(self.created);
        }
        if self.is_disruption_target {
            conditions.insert(0, json!({"type": "DisruptionTarget", "status": "True"}));
        }
        if self.is_collected {
            let disrupted = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"});
            (status["phase"], conditions) = (json!("Failed"), vec![disrupted]);
        }
        status["conditions"] = json!(conditions);
        if app.has_volume {
            spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": self.claim()}}]);
        }
        if app.tolerates {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
        }
        if app.is_critical {
            spec["priorityClassName"] = json!("system-cluster-critical");
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
    }
}
