//! Pods behind PodDisruptionBudgets leave when the budget has room, and in time when it has none.
//!
//! Reason: API semantics, connection.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_bed::audit::Request;
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::watch::until;
use spillway_e2e::{Stage, WAIT, assert_drained, fates, owned, receipt, spot_notice};

fn is_watch_of_budgets(request: &Request) -> bool {
    request.verb == "watch" && request.resource == "poddisruptionbudgets"
}

/// Runs a deployment on the stage's node; its replacements can run on a second node.
async fn deploy_with_replacements(stage: &Stage, app: &str, replicas: u32, shape: &PodShape) {
    let (client, labels) = (stage.client(), owned(&[("stage", &stage.name)]));
    let shape = shape.clone().with(json!({"spec": {"nodeSelector": labels}}));
    pods::create(&client, &pods::deployment(&stage.name, app, replicas, &shape)).await.expect("a deployment");
    pods::until_running_of(&client, &stage.name, app, replicas as usize).await.expect("its pods run");
    // The label selects only the second node from now on: the scheduler may observe a replacement before the cordon.
    stage.change_node(&json!({"metadata": {"labels": {"stage": null}}})).await;
    stage.world.add_node(NodeOptions { labels, ..NodeOptions::default() }).await.expect("the second node joins");
}

#[tokio::test]
async fn budgeted_pods_leave_as_fast_as_replacements_are_ready() {
    let mut stage = Stage::set("one-by-one").await;
    let shape = PodShape::default().ready_after(Duration::from_millis(300));
    deploy_with_replacements(&stage, "web", 20, &shape).await;
    stage.budget("web", 1, 20).await;

    let outcome = stage.drain().await;

    // One every five seconds would be too late, and some would be forced.
    assert_drained(&outcome, 20);
    let requests = stage.requests();
    let count = |code| requests.iter().filter(|r| r.is_eviction() && r.code == Some(code)).count();
    assert_eq!(count(201), 20);
    assert!(count(429) <= 2 * 20, "each pod is refused once, and rarely once more: {}", count(429));
    let budgets = requests.iter().filter(|r| r.resource == "poddisruptionbudgets");
    let budgets: Vec<&str> = budgets.map(|r| r.verb.as_str()).collect();
    // The API server ends a watch whose reader does not keep up with a burst of changes, and the watch is made again.
    assert!(budgets.starts_with(&["list", "watch"]) && budgets.len() <= 4, "{budgets:?}");
}

#[tokio::test]
async fn broken_watch_of_the_budgets_begins_again() {
    let stage = Stage::set("broken-watch").await.with_own_stack().await;
    stage.deploy("web", 5, PodShape::default()).await;
    stage.budget("web", 0, 5).await;
    let gateway = stage.through_gateway().await;
    let breaks = |n, fault| gateway.rules().add(Rule::new("watch poddisruptionbudgets", Which::Nth(n), fault));
    breaks(1, Fault::Reset);
    breaks(2, Fault::Answer(Answer::kubernetes(410)));
    breaks(3, Fault::Answer(Answer::kubernetes(503)));

    let drain = stage.start_drain().await;
    let watching = |requests: &[Request]| requests.iter().any(|r| is_watch_of_budgets(r) && r.code == Some(200));
    stage.until_requests("a watch of the budgets", watching).await;
    stage.budgets().delete("web", &DeleteParams::default()).await.expect("the budget existed");

    assert_drained(&drain.await.expect("no panic"), 5);
    assert_eq!(gateway.rules().struck(), 3, "{:?}", gateway.rules().calls());
}

/// Runs a Job of one pod behind a budget. The Job tolerates disruptions and no failure.
async fn job_behind_a_budget(stage: &Stage) -> Pod {
    let client = stage.client();
    let mut job = pods::job(&stage.name, "batch", &PodShape::default().grace(30).on_node(&stage.node.name));
    let spec = job.spec.as_mut().expect("a job has a spec");
    spec.backoff_limit = Some(0);
    let ignored = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    spec.pod_failure_policy = serde_json::from_value(ignored).expect("a policy");
    pods::create(&client, &job).await.expect("a job");
    let pod = pods::until_running_of(&client, &stage.name, "batch", 1).await.expect("its pod runs").remove(0);
    pods::create_budget(&client, &pods::budget(&stage.name, "batch", 1), 1).await.expect("the budget counts its pod");
    pod
}

/// Waits until the Job's controller has counted its pod's end; returns the failed pods, and `true` if the Job has failed.
async fn job_after_its_pod(stage: &Stage, pod: &Pod) -> (Option<i32>, bool) {
    // A kubelet's report before the object goes.
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    let pods = Api::<Pod>::namespaced(stage.client(), &stage.name);
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &failed).await.expect("its finalizer keeps the pod");
    let jobs = Api::<Job>::namespaced(stage.client(), &stage.name);
    until(&jobs, &WatchParams::default(), "the Job to go on or to fail", WAIT, |jobs| {
        let status = jobs.values().next().and_then(|job| job.status.clone()).ok_or("no status")?;
        let has_failed = status.conditions.iter().flatten().any(|is| is.type_ == "Failed" && is.status == "True");
        let goes_on =
            status.active == Some(1) && status.terminating.unwrap_or_default() == 0 && status.ready == Some(0);
        if has_failed || goes_on { Ok((status.failed, has_failed)) } else { Err(format!("{status:?}")) }
    })
    .await
    .expect("the controller updates the Job")
}

/// With deploy/optional/disruption-target.yaml. To a Job, a deletion without the condition is a failure.
#[tokio::test]
async fn job_counts_a_forced_deletion_as_a_disruption() {
    let mut stage = Stage::set("disrupted").await;
    let pod = job_behind_a_budget(&stage).await;
    // A minute is left, and half of the minute is the budget's.
    let late = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(60));

    let outcome = stage.lambda.invoke(late).await;

    assert_eq!(fates(&receipt(&outcome)), [("forced".to_owned(), 1)].into(), "{outcome:#?}");
    assert_eq!(job_after_its_pod(&stage, &pod).await, (None, false), "failed pods, and failure of the Job");
    let of_pod = |r: &&Request| r.resource == "pods" && r.name == pod.name_any() && !r.is_eviction();
    let requests = stage.requests();
    let requests: Vec<_> = requests.iter().filter(of_pod).map(|r| (&*r.verb, &*r.subresource, r.code)).collect();
    assert_eq!(requests, [("patch", "status", Some(200)), ("delete", "", Some(200))]);
}
