//! Pods that PodDisruptionBudgets hold leave when there is room, and in time when there is none.
//!
//! Reason: API semantics, connection.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, Patch, PatchParams, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_bed::audit::Request;
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::watch::until;
use spillway_e2e::{Stage, fates, receipt, spot_notice};

const SPOT: Duration = Duration::from_secs(120);
const WAIT: Duration = Duration::from_mins(1);

/// At most so many pods of the app may be unavailable.
async fn budget(stage: &Stage, app: &str, max_unavailable: u32, healthy: i32) {
    let object = json!({
        "metadata": {"namespace": stage.name, "name": app},
        "spec": {"maxUnavailable": max_unavailable, "selector": {"matchLabels": {"app": app}}},
    });
    let object: PodDisruptionBudget = serde_json::from_value(object).expect("it is a budget");
    let client = stage.world.admin();
    pods::create(&client, &object).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, app, healthy).await.expect("it counts");
}

/// Runs a deployment on the stage's node, whose pods can go on elsewhere: a second node joins.
async fn deploy_with_a_way_out(stage: &Stage, app: &str, replicas: u32, shape: &PodShape) {
    let client = stage.world.admin();
    let labels = BTreeMap::from([("stage".to_owned(), stage.name.clone())]);
    let mut deployment = pods::deployment(&stage.name, app, replicas, shape);
    let pod = deployment.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).expect("it has pods");
    pod.node_selector = Some(labels.clone());
    pods::create(&client, &deployment).await.expect("it is created");
    pods::until_running_of(&client, &stage.name, app, replicas as usize).await.expect("its pods run");
    // From here on the label leads to the second node only: a scheduler that stands still may hear of a replacement
    // before it hears of the cordon.
    stage.change_node(&json!({"metadata": {"labels": {"stage": null}}})).await;
    stage.world.add_node(NodeOptions { labels, ..NodeOptions::default() }).await.expect("the second node joins");
}

#[tokio::test]
async fn twenty_pods_behind_max_unavailable_one_leave_as_fast_as_their_replacements_become_ready() {
    let mut stage = Stage::set("one-by-one").await;
    let shape = PodShape::default().ready_after(Duration::from_millis(300));
    deploy_with_a_way_out(&stage, "web", 20, &shape).await;
    budget(&stage, "web", 1, 20).await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    // One every five seconds would not be done in time, and some would be forced.
    assert_eq!(fates(answer), [("clean".to_owned(), 20)].into(), "{answer:#}");
    let requests = stage.audit.requests().expect("the audit log");
    let count = |code| requests.iter().filter(|r| r.subresource == "eviction" && r.code == Some(code)).count();
    assert_eq!(count(201), 20);
    assert!(count(429) <= 2 * 20, "each pod once in vain, and now and then a probe: {}", count(429));
    let budgets = requests.iter().filter(|r| r.resource == "poddisruptionbudgets");
    let budgets: Vec<&str> = budgets.map(|r| r.verb.as_str()).collect();
    // A watch may end and be made again: the API server ends one whose reader does not keep up with a burst of changes.
    assert!(budgets.starts_with(&["list", "watch"]) && budgets.len() <= 4, "{budgets:?}");
}

/// It selects none of them from then on, and what it allows stays 0.
#[tokio::test]
async fn pods_leave_at_once_when_their_budget_is_edited_so_that_it_lets_them_go() {
    const PODS: usize = 8;
    let mut stage = Stage::set("edited-budget").await;
    stage.deploy("web", 8, PodShape::default()).await;
    budget(&stage, "web", 0, 8).await;

    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let refused = |requests: &[Request]| {
        let watched = requests.iter().any(|r| r.verb == "watch" && r.resource == "poddisruptionbudgets");
        watched && requests.iter().filter(|r| r.code == Some(429)).count() >= PODS
    };
    stage.audit.wait_until("refused evictions", WAIT, refused).await.expect("the budget refuses");
    let budgets = Api::<PodDisruptionBudget>::namespaced(stage.world.admin(), &stage.name);
    let others = Patch::Merge(json!({"spec": {"selector": {"matchLabels": {"app": "elsewhere"}}}}));
    budgets.patch("web", &PatchParams::default(), &others).await.expect("it is changed");

    let outcome = drain.await.expect("no panic");
    assert_eq!(fates(outcome.result.as_ref().expect("it drains"))["clean"], PODS);
}

#[tokio::test]
async fn a_watch_of_the_budgets_that_breaks_is_begun_again() {
    let mut stage = Stage::set("broken-watch").await;
    stage.deploy("web", 5, PodShape::default()).await;
    budget(&stage, "web", 0, 5).await;
    let gateway = stage.through_gateway().await;
    let breaks = |n, fault| gateway.rules().add(Rule::new("watch poddisruptionbudgets", Which::Nth(n), fault));
    breaks(1, Fault::Reset);
    breaks(2, Fault::Answer(Answer::kubernetes(410)));
    breaks(3, Fault::Answer(Answer::kubernetes(503)));

    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let watching = |requests: &[Request]| {
        requests.iter().any(|r| r.verb == "watch" && r.resource == "poddisruptionbudgets" && r.code == Some(200))
    };
    stage.audit.wait_until("a watch of the budgets", WAIT, watching).await.expect("it watches in the end");
    let budgets = Api::<PodDisruptionBudget>::namespaced(stage.world.admin(), &stage.name);
    budgets.delete("web", &DeleteParams::default()).await.expect("it is deleted");

    let outcome = drain.await.expect("no panic");
    assert_eq!(fates(outcome.result.as_ref().expect("it drains"))["clean"], 5);
    assert_eq!(gateway.rules().struck(), 3, "{:?}", gateway.rules().calls());
}

/// Runs a Job of one pod on the stage's node, behind a budget. It puts up with no failure, but with disruptions.
async fn job_behind_a_budget(stage: &Stage) -> Pod {
    let client = stage.world.admin();
    let mut job = pods::job(&stage.name, "batch", &PodShape::default().grace(30).on_node(&stage.node.name));
    let spec = job.spec.as_mut().expect("it has one");
    spec.backoff_limit = Some(0);
    let ignored = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    spec.pod_failure_policy = serde_json::from_value(ignored).expect("a policy");
    pods::create(&client, &job).await.expect("it is created");
    let pod = pods::until_running_of(&client, &stage.name, "batch", 1).await.expect("it runs").remove(0);
    pods::create(&client, &pods::budget(&stage.name, "batch", 1)).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, "batch", 1).await.expect("it counts");
    pod
}

/// Waits until the Job's controller has taken note of its pod's end: how often it failed, and whether that is the Job's end.
async fn job_after_its_pod(stage: &Stage, pod: &Pod) -> (Option<i32>, bool) {
    let client = stage.world.admin();
    // As a kubelet tells it, before the object goes.
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    let pods = Api::<Pod>::namespaced(client.clone(), &stage.name);
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &failed).await.expect("its finalizer keeps it");
    let jobs = Api::<Job>::namespaced(client, &stage.name);
    let all = WatchParams::default();
    until(&jobs, &all, "the Job to go on or to fail", WAIT, |jobs| {
        let status = jobs.values().next().and_then(|job| job.status.clone()).ok_or("it has no status")?;
        let has_failed = status.conditions.iter().flatten().any(|is| is.type_ == "Failed" && is.status == "True");
        let goes_on =
            status.active == Some(1) && status.terminating.unwrap_or_default() == 0 && status.ready == Some(0);
        if has_failed || goes_on { Ok((status.failed, has_failed)) } else { Err(format!("{status:?}")) }
    })
    .await
    .expect("its controller looks")
}

/// With deploy/optional/disruption-target.yaml. A pod that is deleted without the condition is a failure to its Job.
#[tokio::test]
async fn a_job_whose_pod_is_deleted_past_its_budget_counts_a_disruption_and_no_failure() {
    let mut stage = Stage::set("disrupted").await;
    let pod = job_behind_a_budget(&stage).await;
    // A minute is left; half of it the budget has.
    let late = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(60));

    let outcome = stage.lambda.invoke(late).await;

    assert_eq!(fates(&receipt(&outcome)), [("forced".to_owned(), 1)].into(), "{outcome:#?}");
    assert_eq!(job_after_its_pod(&stage, &pod).await, (None, false), "how often it failed, and whether for good");
    let requests = stage.audit.requests().expect("the audit log");
    let of_pod = |r: &&Request| r.resource == "pods" && r.name == pod.name_any() && r.subresource != "eviction";
    let requests: Vec<_> = requests.iter().filter(of_pod).map(|r| (&*r.verb, &*r.subresource, r.code)).collect();
    assert_eq!(requests, [("patch", "status", Some(200)), ("delete", "", Some(200))]);
}
